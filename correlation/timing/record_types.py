"""Types of the records of timing conditions: alarms, and factored records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from correlation.operators import result_headers
from correlation.resources.event_values import (
    ATTRIBUTE_VALUE,
    ATTRIBUTES,
    CONFIDENCE,
    EVENT_IDENTITY,
    RESULT_ID,
)
from correlation.resources.schemas import (
    COUNT,
    FLAG,
    INTEGER,
    NULL,
    POSITIVE,
    STRING,
    TIME_US,
    RecordType,
    choice,
    constant,
    described,
    list_of,
    map_of,
    nullable,
    object_of,
    tuple_of,
)
from correlation.timing.alarms import ALARM_VERSION, CE_TYPE, WATERMARK
from correlation.timing.factored.batch import BASE, TARGETS, VERSION
from correlation.timing.factored.batch import CE_TYPE as FACTORED_CE_TYPE
from correlation.timing.intervals.pairs import DECIDED_BY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from correlation.resources.schemas import Schema

_KEY = "The join key, or the name of the condition if the streams are partitioned by grid."
_CONDITION: dict[str, Schema] = {
    "condition": described(STRING, "Name of the condition."),
    "version": described(POSITIVE, "Version of the condition."),
}
_LATE = described(FLAG, "Whether one of the events was late.")
_DETECTED_AT = described(TIME_US, "Time at which the correlation completed, in µs.")
_EVENT = object_of(
    {**EVENT_IDENTITY, "earliest": TIME_US, "latest": TIME_US, "attributes": ATTRIBUTES},
    ["attributes"],
)
_TABLE = described(RESULT_ID, "Id of the table of targets.")


def timing_records(kinds: Sequence[str]) -> tuple[RecordType, ...]:
    """Return the types of the records of the timing kinds, which share them."""
    return (_pair(kinds), _unmatched(kinds), _targets(kinds), _base())


def _alarm_fields(kinds: Sequence[str], decided_by: Schema) -> dict[str, Schema]:
    return {
        "v": constant(ALARM_VERSION),
        **_CONDITION,
        "kind": choice(kinds),
        "threshold": CONFIDENCE,
        "detected_at": _DETECTED_AT,
        "alarm_id": described(RESULT_ID, "Id by which duplicates are recognised."),
        "decided_by": decided_by,
        "late": _LATE,
        "a": _EVENT,
    }


def _pair(kinds: Sequence[str]) -> RecordType:
    fields = {
        **_alarm_fields(kinds, choice(DECIDED_BY)),
        "probability": described(CONFIDENCE, "Missing if `report_probability` is false."),
        "b": _EVENT,
    }
    return RecordType(
        "pair_alarm",
        "Pair of events that satisfies a timing condition.",
        object_of(fields, ["probability"]),
        _KEY,
        result_headers(CE_TYPE),
    )


def _unmatched(kinds: Sequence[str]) -> RecordType:
    return RecordType(
        "unmatched_alarm",
        "Event of A without a B (`emit: unmatched`).",
        object_of({**_alarm_fields(kinds, constant(WATERMARK)), "b": NULL}),
        _KEY,
        result_headers(CE_TYPE),
    )


def _targets(kinds: Sequence[str]) -> RecordType:
    fields: dict[str, Schema] = {
        "v": constant(VERSION),
        **_CONDITION,
        "record": constant(TARGETS),
        "table": _TABLE,
        "kind": choice(kinds),
        "threshold": CONFIDENCE,
        "report_probability": FLAG,
        "lower_us": described(nullable(INTEGER), "Min of T_B - T_A, in µs."),
        "upper_us": described(nullable(INTEGER), "Max of T_B - T_A, in µs."),
        "stream": EVENT_IDENTITY["stream"],
        "key": EVENT_IDENTITY["key"],
        "size": described(POSITIVE, "Number of targets of the table."),
        "uses": described(POSITIVE, "Number of base records that refer to the table."),
        "first": described(COUNT, "Place of the first target of this record in the table."),
        "ids": list_of(STRING),
        "earliest": list_of(TIME_US),
        "latest": list_of(TIME_US),
        "late": list_of(COUNT, description="Places of the late targets in this record."),
        "attributes": described(
            map_of(list_of(ATTRIBUTE_VALUE)), "Values of each declared attribute, by target."
        ),
    }
    return RecordType(
        "factored_targets",
        "Table of targets to which base records refer (`output: factored`).",
        object_of(fields, ["attributes"]),
        _KEY,
        result_headers(FACTORED_CE_TYPE),
    )


def _base() -> RecordType:
    fields: dict[str, Schema] = {
        "v": constant(VERSION),
        **_CONDITION,
        "record": constant(BASE),
        "table": _TABLE,
        "a": described(_EVENT, "The base event, if it is of A."),
        "b": described(_EVENT, "The base event, if it is of B."),
        "late": described(FLAG, "Whether the base event was late."),
        "pairs": described(POSITIVE, "Number of pairs of this record."),
        "certain": described(tuple_of(COUNT, COUNT), "First and end of the range of targets."),
        "probed": list_of(
            tuple_of(COUNT, {"type": "string", "contentEncoding": "base64"}),
            description="Place of the first target of a bitmap, and the bitmap.",
            minItems=1,
            maxItems=2,
        ),
        "detected_at": _DETECTED_AT,
    }
    return RecordType(
        "factored_base",
        "Base event with its pairs: a range and bitmaps of targets (`output: factored`).",
        object_of(
            fields,
            ["a", "b", "certain", "probed"],
            oneOf=[{"required": ["a"]}, {"required": ["b"]}],
            anyOf=[{"required": ["certain"]}, {"required": ["probed"]}],
        ),
        _KEY,
        result_headers(FACTORED_CE_TYPE),
    )
