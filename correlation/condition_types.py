"""Types of the records of kinds of conditions: their stored documents, and their results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from correlation.operators import result_headers
from correlation.resources.record_types import (
    DECIMAL,
    FILTER,
    RESOURCE_NAME,
    TOPIC_NAME,
    condition_type,
)
from correlation.resources.schemas import (
    ANY_OBJECT,
    FLAG,
    INTEGER,
    STRING,
    RecordType,
    Schema,
    choice,
    described,
    map_of,
    nullable,
    object_of,
)
from correlation.resources.topics import ALARMS

if TYPE_CHECKING:
    from correlation.condition_kind import ConditionKind, Field

_SIMPLE: dict[str, Schema] = {
    "duration": INTEGER,
    "probability": DECIMAL,
    "decimal": DECIMAL,
    "stream": RESOURCE_NAME,
    "flag": FLAG,
    "topic": TOPIC_NAME,
    "names": map_of(RESOURCE_NAME),
    "text_or_object": {"type": ["string", "object"]},
}


def document_type(kind: ConditionKind) -> RecordType:
    """Return the type of the config records of conditions of a kind."""
    fields = {it.stored_name: described(_stored(it), it.description) for it in kind.fields}
    optional = [it.stored_name for it in kind.fields if not it.required]
    return condition_type(kind.name, fields, optional)


def _stored(field: Field) -> Schema:
    found = _SIMPLE.get(field.type)
    if field.type == "count":
        found = {"type": "integer", "minimum": 1 if field.minimum is None else field.minimum}
        if field.maximum is not None:
            found["maximum"] = field.maximum
    elif field.type == "choice":
        found = choice(field.choices) if field.choices else STRING
    elif field.type == "filters":
        found = object_of(dict.fromkeys(field.choices, FILTER), field.choices, minProperties=1)
    if found is None:
        raise NotImplementedError(field.type)
    return nullable(found) if not field.required and field.default is None else found


def result_types(kind: ConditionKind) -> Iterable[RecordType]:
    """Return the types of the results of a kind; any JSON objects if it declares none."""
    if kind.records:
        return kind.records
    return [
        RecordType(
            f"{kind.name}_{channel.name.replace('.', '_')}",
            f"Result of a condition of kind {kind.name}, which declares no schema.",
            nullable(ANY_OBJECT) if channel.compacted else ANY_OBJECT,
            "Chosen by the kind.",
            result_headers(),
            channel.name,
        )
        for channel in (ALARMS, *kind.channels)
    ]
