"""Types of the records of event topics: events in the canonical form, or mapped by their stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from correlation.limits import BUCKET_LIMIT
from correlation.resources.schemas import (
    ANY_OBJECT,
    STRING,
    RecordType,
    described,
    headers_of,
    list_of,
    nullable,
    object_of,
    tuple_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from correlation.resources.schemas import Schema

# Channel of all event topics.
TOPIC = "events"
_NAME: Schema = {"type": ["string", "integer", "null"]}
_TIME: Schema = {
    "type": ["integer", "string"],
    "description": "µs since 1970, or a string with a date and an offset; without one: UTC.",
}
_DURATION = nullable({"type": ["integer", "string"], "description": 'µs, or "250ms".'})
_MASS: Schema = {"type": ["number", "string"], "description": "Mass of the bucket, a decimal."}
_BUCKET: Schema = {
    "anyOf": [
        tuple_of(_TIME, _TIME, _MASS),
        object_of({"lo": _TIME, "hi": _TIME, "p": _MASS}),
    ]
}
# Fields of the time, by the form of the event.
_FORMS: Mapping[str, Mapping[str, Schema]] = {
    "interval": {"earliest": _TIME, "latest": _TIME},
    "time": {"time": _TIME, "before": _DURATION, "after": _DURATION},
    "template": {
        "detected": _TIME,
        "template": described(STRING, "Name of a template that the stream declares."),
    },
    "histogram": {"histogram": list_of(_BUCKET, minItems=1, maxItems=BUCKET_LIMIT)},
}
_ANY_HEADERS = headers_of({}, others=True)
_KEY = "The join key, unless the event contains it. Any bytes, or none."


def _form(name: str, times: Mapping[str, Schema]) -> RecordType:
    fields = {
        "id": described(_NAME, "Id; if missing: topic-partition-offset."),
        "key": described(_NAME, "Join key; if missing: the key of the record."),
        **times,
    }
    # Other fields are ignored, or read as attributes and tokens.
    value = {
        **object_of(fields, ["id", "key", "before", "after"]),
        "additionalProperties": True,
    }
    return RecordType(
        f"event_{name}",
        f"Event in the canonical form, with {' and '.join(times)}.",
        value,
        _KEY,
        _ANY_HEADERS,
        TOPIC,
    )


CANONICAL_EVENTS = tuple(_form(name, times) for name, times in _FORMS.items())
MAPPED_EVENT = RecordType(
    "event_mapped",
    "Event in the form that the mapping of its stream declares; see GET /v1/streams.",
    ANY_OBJECT,
    _KEY,
    _ANY_HEADERS,
    TOPIC,
)
