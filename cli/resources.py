"""Streams and conditions in files: read them and bring them to the service (``apply``).

A file is YAML or JSON and holds one or many documents. Each is the REST document with its
``name``, and its ``kind`` tells what it is: ``stream``, or the kind of a condition::

    kind: stream
    name: acoustic
    topic: acoustic
    longest: 200ms
    max_delay: 1s
    ---
    kind: mutual_deadline
    name: near
    a: acoustic
    b: seismic
    window: 2s
    threshold: "0.6"
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

from cli.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cli.rest import Change, ServiceClient

_STREAM = "stream"


@dataclass(frozen=True, slots=True)
class ResourceFile:
    """A stream or condition as it stands in a file.

    Parameters
    ----------
    kind
        What it is.
    name
        Its name.
    document
        The REST document.
    """

    kind: Literal["stream", "condition"]
    name: str
    document: dict[str, Any]

    @property
    def path(self) -> str:
        """Its path in the REST interface."""
        return f"/v1/{self.kind}s/{self.name}"

    @property
    def streams(self) -> frozenset[str]:
        """The streams that a condition reads."""
        if self.kind == _STREAM:
            return frozenset()
        return frozenset(str(self.document[role]) for role in ("a", "b") if role in self.document)


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one resource; ``unchecked`` where a dry run could not ask the service."""

    kind: str
    name: str
    change: Change | Literal["unchecked"]


def read_resources(paths: Iterable[Path]) -> list[ResourceFile]:
    """Read the resources of files, streams first, otherwise in the order given.

    Parameters
    ----------
    paths
        Files; ``-`` is standard input.

    Raises
    ------
    UsageError
        A file is not there or not YAML, or a document lacks its kind or name.
    """
    found = [resource for path in paths for resource in _read_file(path)]
    if not found:
        raise UsageError("the files hold no document")
    return sorted(found, key=lambda resource: resource.kind != _STREAM)


def apply_resources(
    service: ServiceClient, resources: Iterable[ResourceFile], *, dry_run: bool = False
) -> Iterable[Applied]:
    """Bring resources to the service, and give what became of each as soon as it is known.

    Parameters
    ----------
    service
        The service.
    resources
        In the order in which they are to be written.
    dry_run
        Let the service check everything and write nothing. A condition on a stream that would be
        new cannot be checked then.

    Raises
    ------
    ServiceError
        The service does not answer, or refuses a document.
    """
    unwritten: set[str] = set()
    for resource in resources:
        if resource.streams & unwritten:
            yield Applied(resource.kind, resource.name, "unchecked")
            continue
        change = service.put(resource.path, resource.document, dry_run=dry_run).change
        if dry_run and resource.kind == _STREAM and change == "created":
            unwritten.add(resource.name)
        yield Applied(resource.kind, resource.name, change)


def _read_file(path: Path) -> Iterable[ResourceFile]:
    """Read the documents of one file."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
        documents = list(yaml.safe_load_all(text))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is neither YAML nor JSON: {error}") from error
    for number, document in enumerate(documents, start=1):
        # A trailing separator makes an empty document.
        if document is not None:
            yield _resource(document, f"{path}, document {number}")


def _resource(document: object, place: str) -> ResourceFile:
    """Split a document into what it is and the document of the REST interface."""
    if not isinstance(document, dict):
        raise UsageError(f"{place} is not a mapping of fields")
    rest = dict(document)
    name = rest.pop("name", None)
    if not isinstance(name, str) or not name:
        raise UsageError(f"{place} has no name")
    kind = rest.get("kind")
    if kind == _STREAM:
        del rest["kind"]
        return ResourceFile("stream", name, rest)
    if not isinstance(kind, str):
        raise UsageError(f"{place} has no kind: write stream, or the kind of condition")
    return ResourceFile("condition", name, rest)
