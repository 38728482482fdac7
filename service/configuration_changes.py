"""Changes of resources by a configuration write, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import orjson

from correlation.resources.records import Resource
from service.documents.unchanged import as_written_now


class FieldChange(NamedTuple):
    """A field whose value changes; None: the field does not exist."""

    field: str
    old: object
    new: object


class Change(NamedTuple):
    """The change of a resource; `resource` is the resource after it, for a deletion before it."""

    change: Literal["created", "changed", "unchanged", "deleted"]
    resource: Resource
    fields: tuple[FieldChange, ...] = ()


def change_of(current: Resource | None, resource: Resource) -> Change:
    """Return the change of a resource that a configuration contains.

    Parameters
    ----------
    current : Resource or None
        The resource in force.
    resource : Resource
        The resource after the write; `current` itself if nothing changes.
    """
    if current is None:
        return Change("created", resource)
    if current is resource:
        return Change("unchanged", resource)
    old, new = _flat(_shown(current)), _flat(_shown(resource))
    fields = tuple(
        FieldChange(field, old.get(field), new.get(field))
        for field in sorted(old.keys() | new.keys())
        if field not in old or field not in new or not _is_equal(old[field], new[field])
    )
    return Change("changed", resource, fields)


def _is_equal(old: object, new: object) -> bool:
    """Return whether two values have the same JSON: in Python ``True == 1``."""
    first, second = (orjson.dumps(it, option=orjson.OPT_SORT_KEYS) for it in (old, new))
    return first == second


def _shown(resource: Resource) -> dict[str, Any]:
    """Return the fields that a change shows."""
    document = as_written_now(resource)
    if resource.kind == "condition":
        return document | {"paused": resource.paused}
    if resource.kind == "stream":
        used = [{"name": it["name"], "version": it["version"]} for it in document["templates"]]
        return document | {"templates": used}
    return document


def _flat(document: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Return the fields of a document, those of inner objects with dots."""
    found: dict[str, Any] = {}
    for name, value in document.items():
        if isinstance(value, Mapping) and value:
            found |= _flat(value, f"{above}{name}.")
        else:
            found[f"{above}{name}"] = value
    return found
