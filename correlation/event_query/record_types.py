"""Type of the records that `EventQueryAlarms` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from correlation.event_query.alarm_format import ALARM_VERSION, CE_TYPE, KIND
from correlation.operators import result_headers
from correlation.resources.event_values import ATTRIBUTES, CONFIDENCE, EVENT_IDENTITY, RESULT_ID
from correlation.resources.schemas import (
    FLAG,
    POSITIVE,
    STRING,
    TIME_US,
    RecordType,
    constant,
    described,
    map_of,
    object_of,
)

if TYPE_CHECKING:
    from correlation.resources.schemas import Schema


def _event(first: str, last: str) -> Schema:
    times = {first: TIME_US, last: TIME_US}
    return object_of({**EVENT_IDENTITY, **times, "attributes": ATTRIBUTES})


# Instants, which may be uncertain, and events that last.
_EVENT: Schema = {"oneOf": [_event("earliest", "latest"), _event("begin", "end")]}
_FIELDS: dict[str, Schema] = {
    "v": constant(ALARM_VERSION),
    "condition": described(STRING, "Name of the condition."),
    "version": described(POSITIVE, "Version of the condition."),
    "kind": constant(KIND),
    "type": described(STRING, "Type of the result, as the query names it."),
    "threshold": described(CONFIDENCE, "Missing if all times are exact."),
    "detected_at": described(TIME_US, "Time at which the correlation completed, in µs."),
    "alarm_id": described(RESULT_ID, "Id by which duplicates are recognised."),
    "attributes": described(ATTRIBUTES, "Attributes of the result, as the query defines them."),
    "begin": described(
        TIME_US, "Begin of the result; by default the min begin of its events, in µs."
    ),
    "end": described(TIME_US, "End of the result; by default the max end of its events, in µs."),
    "late": described(FLAG, "Whether one of the events was late."),
    "probability": described(CONFIDENCE, "Missing if all times are exact."),
    "events": described(map_of(_EVENT), "The positive events, by alias."),
}
RECORDS = (
    RecordType(
        "event_query_result",
        "Combination of positive events for which no negated event exists.",
        object_of(
            _FIELDS,
            ["threshold", "probability"],
            dependencies={"threshold": ["probability"], "probability": ["threshold"]},
        ),
        "The join key, or the name of the condition if the streams are partitioned by grid.",
        result_headers(CE_TYPE),
    ),
)
