"""Registry of the kinds of conditions: built-in kinds and entry points of other packages."""

from __future__ import annotations

from importlib.metadata import entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from correlation.errors import CorrelationError, InvalidFieldError
from correlation.event_query.kind import EVENT_QUERY_KIND
from correlation.resources.records import require
from correlation.timing.kinds import TIMING_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from correlation.condition_kind import ConditionKind, ResultReader
    from correlation.operators import Condition
    from correlation.resources.records import Resource

# Packages register further kinds as an entry point of this group: an iterable of ConditionKind.
ENTRY_POINTS = "coincide.condition_kinds"


def _all_kinds() -> dict[str, ConditionKind]:
    found = {kind.name: kind for kind in (*TIMING_KINDS, EVENT_QUERY_KIND)}
    for point in entry_points(group=ENTRY_POINTS):
        for kind in point.load():
            if kind.name in found:
                raise CorrelationError(f"{point.value}: kind {kind.name!r} is already registered")
            found[kind.name] = kind
    return found


KINDS: Mapping[str, ConditionKind] = MappingProxyType(_all_kinds())


def to_condition(resource: Resource) -> Condition:
    """Return the condition that a resource describes.

    Raises
    ------
    InvalidFieldError
        A field is missing or not valid.
    """
    return condition_from_document(resource.name, resource.version, resource.document)


def condition_from_document(name: str, version: int, document: Mapping[str, Any]) -> Condition:
    """Read a condition of any kind from its normalised document.

    Raises
    ------
    InvalidFieldError
        A field is missing or not valid.
    """
    kind = KINDS.get(document.get("kind", ""))
    if kind is None:
        raise InvalidFieldError(
            "kind", f"{document.get('kind')!r} is unknown", f"use one of: {', '.join(KINDS)}"
        )
    values = {}
    for field in kind.fields:
        if field.required:
            values[field.stored_name] = require(document, field.stored_name)
        else:
            values[field.stored_name] = document.get(field.stored_name, field.default)
    return kind.build(name, version, values)


def open_readers() -> list[ResultReader]:
    """Return new readers of the output records of all kinds; kinds may share a reader."""
    shared = {kind.open_reader for kind in KINDS.values() if kind.open_reader is not None}
    own = [kind.reader() for kind in KINDS.values() if kind.open_reader is None]
    return [*(open_reader() for open_reader in shared), *own]
