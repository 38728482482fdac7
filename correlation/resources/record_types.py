"""Types of the records of the config topic: schemas of `Resource.to_record`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import get_args

from correlation.limits import SLOTS_LIMIT
from correlation.resources.attributes import ATTRIBUTE_TYPES, ATTRIBUTES_LIMIT
from correlation.resources.checks import NAME
from correlation.resources.job_slots import JOB, SLOTS
from correlation.resources.records import VERSION
from correlation.resources.schemas import (
    COUNT,
    FLAG,
    INTEGER,
    POSITIVE,
    STRING,
    TIME_US,
    RecordType,
    Schema,
    choice,
    constant,
    described,
    headers_of,
    list_of,
    map_of,
    nullable,
    object_of,
)
from correlation.resources.times import TimeFormat

TOPIC = "config"
# Header of a record of a transaction, except the last one: another record follows.
CONTINUED_HEADER = "coincide.continued"
CONTINUED: dict[str, Schema] = {
    CONTINUED_HEADER: described(constant("1"), "The next record belongs to the same write.")
}
RESOURCE_NAME: Schema = {"type": "string", "pattern": f"^{NAME.pattern}$"}
TOPIC_NAME: Schema = {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,249}$"}
# A number with all its digits.
DECIMAL: Schema = {"type": "string", "pattern": "^-?[0-9]+([.][0-9]+)?$"}
_PATH: Schema = {"anyOf": [STRING, list_of(STRING, minItems=1)]}
_CONSTANT: Schema = {"type": ["string", "number", "boolean"]}
_CONSTANTS: Schema = {"anyOf": [_CONSTANT, list_of(_CONSTANT, minItems=1)]}
_BOUND: Schema = {"type": ["string", "number"]}
_REQUIREMENT: Schema = {
    "anyOf": [
        *_CONSTANTS["anyOf"],
        object_of(
            {"min": _BOUND, "max": _BOUND, "not": _CONSTANTS},
            ["min", "max", "not"],
            minProperties=1,
        ),
    ]
}
# A filter over attributes: a requirement by name of the attribute.
FILTER: Schema = {**map_of(_REQUIREMENT), "minProperties": 1}
_BUCKETS = list_of(object_of({"lo": INTEGER, "hi": INTEGER, "p": DECIMAL}), minItems=1)
_BUCKETS_DESCRIBED = described(
    _BUCKETS, "Bounds in µs, as offsets from the time of detection, and masses."
)
_PATHS = (
    *("id", "key", "time", "earliest", "latest", "detected", "template", "histogram"),
    *("begin", "end"),
)
_MAPPING: dict[str, Schema] = {
    **dict.fromkeys(_PATHS, nullable(_PATH)),
    "before_us": COUNT,
    "after_us": COUNT,
    "format": choice(get_args(TimeFormat)),
    "timezone": STRING,
}
_TOKENS = object_of(
    {"path": _PATH, "tokenizer": STRING, "lower_case": FLAG, "stop_words": list_of(STRING)}
)
_ATTRIBUTES: Schema = {
    **map_of(object_of({"path": _PATH, "type": choice(ATTRIBUTE_TYPES)}), RESOURCE_NAME),
    "maxProperties": ATTRIBUTES_LIMIT,
}
_STREAM: dict[str, Schema] = {
    "topic": TOPIC_NAME,
    "max_delay_us": COUNT,
    "partitioning": object_of({"by": choice(["key", "grid"]), "groups": POSITIVE}, ["groups"]),
    "mapping": described(nullable(object_of(_MAPPING, _MAPPING)), "null: canonical events."),
    "min_uncertainty_us": nullable(COUNT),
    "max_uncertainty_us": nullable(COUNT),
    "min_length_us": nullable(COUNT),
    "max_length_us": nullable(COUNT),
    "clock": choice(["live", "replay"]),
    "max_skew_us": COUNT,
    "templates": list_of(
        object_of({"name": RESOURCE_NAME, "version": POSITIVE, "buckets": _BUCKETS_DESCRIBED})
    ),
    "histograms": FLAG,
    "max_rate": nullable(POSITIVE),
    "attributes": _ATTRIBUTES,
    "where": nullable(FILTER),
    "tokens": nullable(_TOKENS),
}


def resource_type(
    kind: str, document: Schema, name: str, more: Mapping[str, Schema] | None = None
) -> RecordType:
    """Return the type of the records of a resource.

    Parameters
    ----------
    kind : str
        stream, condition or template.
    document : Schema
        Schema of the stored document.
    name : str
        Name of the type.
    more : mapping of name to schema or None
        Further fields of the record.
    """
    fields: dict[str, Schema] = {
        "v": constant(VERSION),
        "kind": constant(kind),
        "name": RESOURCE_NAME,
        "version": described(POSITIVE, "Version of the document; it increases."),
        "updated_at": TIME_US,
        "document": document,
        **(more or {}),
    }
    return RecordType(
        name,
        f"Registered {kind}; the newest record of a key counts.",
        object_of(fields),
        f"{kind}/NAME",
        headers_of(CONTINUED, CONTINUED),
        TOPIC,
    )


def condition_type(kind: str, fields: Mapping[str, Schema], optional: Sequence[str]) -> RecordType:
    """Return the type of the records of conditions of a kind.

    Parameters
    ----------
    kind : str
        Name of the kind.
    fields : mapping of name to schema
        Stored fields of its document, except `kind`.
    optional : sequence of str
        Fields that may be missing.
    """
    document = object_of({"kind": constant(kind), **fields}, optional)
    return resource_type("condition", document, f"{kind}_condition", {"paused": FLAG})


# A field with a default may be missing: an earlier version of this software did not know it.
STREAM = resource_type(
    "stream",
    object_of(_STREAM, [it for it in _STREAM if it not in ("topic", "max_delay_us")]),
    "stream",
)
TEMPLATE = resource_type("template", object_of({"buckets": _BUCKETS_DESCRIBED}), "template")
JOB_SLOTS = replace(
    resource_type(
        JOB,
        object_of({SLOTS: {"type": "integer", "minimum": 1, "maximum": SLOTS_LIMIT}}),
        "job_slots",
    ),
    summary="Wanted number of slots of the job; without this record, COINCIDE_SLOTS of the job.",
    key=f"{JOB}/{SLOTS}",
)
