"""The kinds of conditions: one registration each."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from correlation.errors import InvalidFieldError
from correlation.resources.records import require
from correlation.timing.kinds import TIMING_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from correlation.operators import Condition, ConditionKind
    from correlation.resources.records import Resource

KINDS: Mapping[str, ConditionKind] = MappingProxyType({kind.name: kind for kind in TIMING_KINDS})


def to_condition(resource: Resource) -> Condition:
    """Return the condition that a resource describes.

    Raises
    ------
    InvalidFieldError
        Naming the field and what to write instead.
    """
    return condition_from_document(resource.name, resource.version, resource.document)


def condition_from_document(name: str, version: int, document: Mapping[str, Any]) -> Condition:
    """Read a condition of any kind from its normalised document.

    Raises
    ------
    InvalidFieldError
        Naming the field and what to write instead.
    """
    kind = KINDS.get(document.get("kind", ""))
    if kind is None:
        raise InvalidFieldError(
            "kind", f"unknown: {document.get('kind')!r}", f"use one of: {', '.join(KINDS)}"
        )
    values = {}
    for field in kind.fields:
        if field.required:
            values[field.stored_name] = require(document, field.stored_name)
        else:
            values[field.stored_name] = document.get(field.stored_name, field.default)
    return kind.build(name, version, values)
