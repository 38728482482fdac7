"""Schemas of the parts of an event that results of several kinds contain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from correlation.resources.schemas import STRING, described, map_of, nullable

if TYPE_CHECKING:
    from correlation.resources.schemas import Schema

ATTRIBUTE_VALUE: Schema = {"type": ["string", "number", "boolean", "null"]}
ATTRIBUTES = described(
    map_of(ATTRIBUTE_VALUE),
    "Values of the attributes that the stream declares; null: missing in the record.",
)
EVENT_IDENTITY: dict[str, Schema] = {
    "id": described(STRING, "Id of the event; bytes that are not UTF-8 are escaped."),
    "stream": described(STRING, "Name of the stream."),
    "key": described(nullable(STRING), "Join key; null if the streams are partitioned by grid."),
}
# A confidence threshold, or the probability of a result.
CONFIDENCE: Schema = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
RESULT_ID: Schema = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
