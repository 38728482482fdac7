"""Templates, streams and conditions in files.

A file is YAML or JSON and contains one or more documents. Each is the REST document with its
``name``, and with its ``kind``: ``template``, ``stream``, or the kind of a condition::

    kind: stream
    name: acoustic
    topic: acoustic
    max_uncertainty: 200ms
    max_delay: 1s
    ---
    kind: mutual_deadline
    name: near
    a: acoustic
    b: seismic
    window: 2s
    threshold: "0.6"

A document may also be the configuration of the REST API: a list of such documents, ``resources``.
The document of a condition may have ``paused``.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

from cli.client.yaml_loader import Loader
from cli.errors import UsageError
from correlation.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Kind = Literal["template", "stream", "condition"]
# Resources refer only to resources of earlier kinds.
_ORDER: tuple[Kind, ...] = ("template", "stream", "condition")
# Values of `kind` that name a resource kind; any other is a kind of condition.
_NAMED: Mapping[object, Kind] = {"template": "template", "stream": "stream"}
# The parser's message for a tab in the indentation or after an indicator.
_TAB = "found character '\\t' that cannot start any token"
# The service refuses deeper documents; a recursive alias nests without end.
_DEEPEST = 80


@dataclass(frozen=True, slots=True)
class ResourceFile:
    """A template, stream or condition in a file.

    Parameters
    ----------
    kind
        Kind of the resource.
    name
        Name of the resource.
    document
        The REST document.
    place
        File, number and first line of the document.
    paused
        Whether the condition is paused; None: the file does not determine it.
    """

    kind: Kind
    name: str
    document: dict[str, Any]
    place: str = field(default="", compare=False)
    paused: object = None

    def to_document(self) -> dict[str, Any]:
        """Return the document with kind and name, as in a file."""
        head: dict[str, Any] = {"kind": self.document.get("kind", self.kind), "name": self.name}
        if self.paused is not None:
            head["paused"] = self.paused
        return head | {key: it for key, it in self.document.items() if key != "kind"}

    @property
    def streams(self) -> frozenset[str]:
        """The streams that a condition reads."""
        if self.kind != "condition":
            return frozenset()
        kind = KINDS.get(self.document.get("kind", ""))
        named = kind.streams_named(self.document) if kind is not None else ()
        return frozenset(it.stream for it in named)

    @property
    def needs(self) -> frozenset[tuple[str, str]]:
        """Kinds and names of the resources that the document refers to."""
        if self.kind == "stream":
            named = self.document.get("templates")
            names = named if isinstance(named, list) else []
            return frozenset(("template", str(name)) for name in names)
        return frozenset(("stream", name) for name in self.streams)


def read_resources(paths: Iterable[Path]) -> list[ResourceFile]:
    """Read the resources of files: templates, then streams, then conditions, in file order.

    Parameters
    ----------
    paths
        Files; ``-`` is standard input.

    Raises
    ------
    UsageError
        A file is missing or not YAML, a document lacks its kind or name or has a value that JSON
        cannot represent, a scalar is ambiguous, or a key or a resource is repeated.
    """
    found = [resource for path in paths for resource in _read_file(path)]
    if not found:
        raise UsageError("the files contain no document")
    for (kind, name), times in Counter((it.kind, it.name) for it in found).items():
        if times > 1:
            raise UsageError(f"{kind} {name} occurs {times} times; keep one of them")
    return sorted(found, key=lambda resource: _ORDER.index(resource.kind))


def _read_file(path: Path) -> Iterable[ResourceFile]:
    """Read the documents of one file."""
    where = "standard input" if str(path) == "-" else str(path)
    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        # A safe loader: it builds plain values only.
        documents = list(_documents(content.decode()))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(f"{where} cannot be read: {reason}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}" if mark else ""
        if mark and error.note:
            place += f", column {mark.column + 1}"
        problem, remedy = error.problem or error.context, error.note
        if problem == _TAB:
            problem, remedy = "a tab, which YAML does not allow here", "write spaces instead"
        remedy = remedy or "write YAML or JSON, each key of a mapping once"
        raise UsageError(f"{where}{place}: {problem}; {remedy}") from error
    except RecursionError:
        raise UsageError(f"{where} is nested too deeply; use fewer levels") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{where} is neither YAML nor JSON: {error}") from error
    for number, (line, document) in enumerate(documents, start=1):
        place = f"{where}, document {number}"
        if isinstance(document, dict) and document.keys() == {"resources"}:
            yield from _listed(document["resources"], place, line)
        # A trailing separator yields an empty document.
        elif document is not None:
            yield _resource(document, place, line)


def _listed(resources: object, place: str, line: int) -> Iterator[ResourceFile]:
    """Yield the resources of a configuration, as `coincide export --json` writes it."""
    if not isinstance(resources, list):
        raise UsageError(f"{place}: resources: must be a list; write a list of documents")
    for number, document in enumerate(resources, start=1):
        yield _resource(document, f"{place}, resource {number}", line)


def _documents(content: str) -> Iterator[tuple[int, object]]:
    """Yield the line in which each document begins, from 1, and the document."""
    loader = Loader(content)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                yield node.start_mark.line + 1, loader.construct_document(node)
    finally:
        loader.dispose()


def _resource(document: object, place: str, line: int) -> ResourceFile:
    """Split a document into kind, name and REST document."""
    if not isinstance(document, dict):
        raise UsageError(f"{place} must be a mapping of fields")
    rest = dict(document)
    name = rest.pop("name", None)
    if isinstance(name, int | Decimal | date):
        raise UsageError(f"{place}: name: must be a string; {_as_read(name)}; put it in quotes")
    if not isinstance(name, str) or not name:
        raise UsageError(f"{place}: name: is missing; add it")
    _check_json(document, place)
    kind = rest.get("kind")
    begin = f"{place} (line {line})"
    if kind in _NAMED:
        del rest["kind"]
        return ResourceFile(_NAMED[kind], name, rest, begin)
    if not isinstance(kind, str):
        raise UsageError(
            f"{place}: kind: is missing; write template, stream, or the kind of condition"
        )
    paused = rest.pop("paused", None)
    return ResourceFile("condition", name, rest, begin, paused)


def _check_json(value: object, place: str, depth: int = 0) -> None:
    """Raise UsageError if JSON cannot represent a value."""
    if depth > _DEEPEST:
        raise UsageError(f"{place} is nested deeper than {_DEEPEST} levels")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise UsageError(f"{place}: the key {key} must be a string; put it in quotes")
            _check_json(item, f"{place}: {key}", depth + 1)
    elif isinstance(value, list):
        for number, item in enumerate(value, start=1):
            _check_json(item, f"{place}: item {number}", depth + 1)
    else:
        _check_scalar(value, place)


def _check_scalar(value: object, place: str) -> None:
    """Raise UsageError if JSON cannot represent a scalar."""
    if isinstance(value, str) and any("\ud800" <= found <= "\udfff" for found in value):
        raise UsageError(f"{place} contains half of a surrogate pair; write valid Unicode")
    if not isinstance(value, str | int | Decimal | None):
        raise UsageError(
            f"{place}: {_as_read(value)}, which JSON does not support; put it in quotes"
        )


def _as_read(value: object) -> str:
    """Return a description of a value that YAML did not read as a string."""
    if isinstance(value, date):
        return f"{value} is a date"
    if isinstance(value, bool):
        return f"{str(value).lower()} is a boolean"
    if isinstance(value, int | Decimal):
        return f"{value} is a number"
    return f"it is a {type(value).__name__}"
