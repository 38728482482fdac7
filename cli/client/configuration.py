"""The configuration of a service: write it, compare it with files, show the changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rich.markup import escape

from cli.client.near_names import hint_names
from cli.client.problems import describe_problems
from cli.errors import RefusedError
from correlation.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console

    from cli.client.resources import ResourceFile
    from cli.client.rest import ServiceClient

Document = dict[str, Any]
ChangeOfResource = Literal["created", "changed", "unchanged", "deleted"]
_COLOURS: Mapping[ChangeOfResource, str] = {
    "created": "green",
    "changed": "yellow",
    "unchanged": "dim",
    "deleted": "red",
}
_SHOWN = 200


class Applied(NamedTuple):
    """Change of one resource.

    Parameters
    ----------
    kind, name
        Kind and name of the resource.
    change
        The change.
    warnings
        Warnings of the service.
    """

    kind: str
    name: str
    change: ChangeOfResource
    warnings: list[str]


def put_configuration(
    service: ServiceClient,
    resources: Sequence[ResourceFile],
    *,
    prune: bool = False,
    dry_run: bool = False,
) -> Document:
    """Let the service register resources, all or none, and return the changes.

    Parameters
    ----------
    service
        The service.
    resources
        Resources of files.
    prune
        Delete the resources that the files do not contain.
    dry_run
        Check everything, write nothing.

    Raises
    ------
    ServiceError
        The service does not answer, or rejects a document; the message names the documents.
    """
    documents = [it.to_document() for it in resources]
    try:
        return service.put_configuration(documents, prune=prune, dry_run=dry_run)
    except RefusedError as error:
        if not any(it.get("resource") for it in error.problems):
            raise
        lines = _describe_refusal(service, error, resources)
        raise RefusedError("\n".join(lines), error.status) from error


def changes_of(difference: Document, resources: Sequence[ResourceFile]) -> Iterator[Applied]:
    """Yield the changes of resources in the order of the files, then the deleted resources.

    Parameters
    ----------
    difference
        Answer of the service.
    resources
        The resources that were sent.
    """
    change_of: dict[tuple[str, str], ChangeOfResource] = {
        (it["kind"], it["name"]): change for change in _COLOURS for it in difference[change]
    }
    for it in resources:
        warnings = difference["warnings"].get(it.name, []) if it.kind == "stream" else []
        yield Applied(it.kind, it.name, change_of[it.kind, it.name], warnings)
    for deleted in difference["deleted"]:
        yield Applied(deleted["kind"], deleted["name"], "deleted", [])


def show_change(applied: Applied, console: Console) -> None:
    """Write the change of a resource and its warnings, a line each."""
    change = f"[{_COLOURS[applied.change]}]{applied.change:<9}[/]"
    console.print(f"{change} {applied.kind} {applied.name}")
    for sentence in applied.warnings:
        console.print("[yellow]warning:[/] " + escape(printable(sentence)))


def show_difference(
    difference: Document, resources: Sequence[ResourceFile], console: Console
) -> None:
    """Write the changed resources, each with its changed fields: old value, arrow, new value."""
    fields = {(it["kind"], it["name"]): it["fields"] for it in difference["changed"]}
    for applied in changes_of(difference, resources):
        if applied.change != "unchanged":
            show_change(applied, console)
        for it in fields.get((applied.kind, applied.name), ()):
            old, new = (escape(_value(it[side])) for side in ("old", "new"))
            field = escape(printable(it["field"]))
            console.print(f"          {field}: [red]{old}[/] → [green]{new}[/]")


def is_different(difference: Document) -> bool:
    """Return whether the service and the files differ."""
    return any(difference[change] for change in _COLOURS if change != "unchanged")


def _value(value: object) -> str:
    """Return a value as JSON, truncated if it is long."""
    text = printable(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _describe_refusal(
    service: ServiceClient, error: RefusedError, resources: Sequence[ResourceFile]
) -> Iterator[str]:
    """Yield a line for each rejected resource, with its place in the files."""
    files = {f"{it.kind}/{it.name}": it for it in resources}
    own = {(it.kind, it.name) for it in resources}
    problems: dict[str, list[Document]] = {}
    for problem in error.problems:
        problems.setdefault(problem.get("resource") or "", []).append(problem)
    for key, found in problems.items():
        file = files.get(key)
        place = f"{key}: " if key else ""
        hint = ""
        if file is not None:
            place = f"{file.place}, {file.kind} {file.name}: "
            hint = hint_names(service, file.needs, own)
        yield f"{place}PUT /v1/config: {error.status} {describe_problems(found)}{hint}"
