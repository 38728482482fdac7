"""Records of results, and the filters that select them.

A result of a condition has the header `ce_source` of its condition (`make_heading`). Records
without it are foreign. The value is kept as it was written, and is parsed when it is asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from correlation.result_format import as_text
from kafka_client.messages import as_bytes, message_headers
from service.alarms.showing import show_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Message

    from correlation.reporting import ShownRecord

# Memory of a record beside its key and value, in bytes: measured with sys.getsizeof, rounded up.
_OVERHEAD_BYTES = 500
_SOURCE = re.compile(rb"/coincide/conditions/([a-z0-9][a-z0-9._-]{0,62})")
_TYPE = re.compile(rb"[A-Za-z0-9._-]{1,100}")
# Error of a record whose value is not a JSON object.
UNREADABLE = "unreadable"


class Place(NamedTuple):
    """A partition of a topic. The tag is that of the topic's id, not of its name."""

    tag: bytes
    partition: int


class Age(NamedTuple):
    """Order of records in a list: by Kafka's timestamp, then by offset and place."""

    timestamp_ms: int
    offset: int
    partition: int
    topic: str


@dataclass(frozen=True, slots=True, eq=False)
class ResultRecord:
    """A record of a result.

    Parameters
    ----------
    place : Place
        Its partition.
    age : Age
        Its order in a list, with its topic, partition and offset.
    key, value : bytes
        As written.
    condition : str
        Name of its condition.
    type : str or None
        CloudEvents type; None if the header is missing or not valid.
    """

    place: Place
    age: Age
    key: bytes
    value: bytes
    condition: str
    type: str | None

    @property
    def nbytes(self) -> int:
        """Memory that the record takes, in bytes."""
        return len(self.key) + len(self.value) + _OVERHEAD_BYTES

    def parse(self) -> dict[str, Any]:
        """Return its value; an empty dict if it is not a JSON object."""
        try:
            found = orjson.loads(self.value)
        except orjson.JSONDecodeError:
            return {}
        return found if isinstance(found, dict) else {}


def read_message(message: Message, place: Place) -> ResultRecord | None:
    """Return the record of a message; None if it is not a result of a condition."""
    headers = dict(message_headers(message))
    source = _SOURCE.fullmatch(_header(headers, "ce_source"))
    value = as_bytes(message.value())
    if source is None or value is None:
        return None
    ce_type = _header(headers, "ce_type")
    age = Age(
        max(0, message.timestamp()[1]),
        message.offset() or 0,
        place.partition,
        message.topic() or "",
    )
    return ResultRecord(
        place,
        age,
        as_bytes(message.key()) or b"",
        value,
        source.group(1).decode(),
        ce_type.decode() if _TYPE.fullmatch(ce_type) else None,
    )


def _header(headers: dict[str, Any], name: str) -> bytes:
    return as_bytes(headers.get(name)) or b""


@dataclass(frozen=True, slots=True)
class Selection:
    """Filter of results; a field that is None selects all.

    Parameters
    ----------
    condition : str or None
        Name of the condition.
    key : str or None
        Key of the record, or the field `key` of its value.
    since_us, until_us : int or None
        First and last time of detection, in µs since 1970: `detected_at`, or Kafka's timestamp of
        a record without this field.
    """

    condition: str | None = None
    key: str | None = None
    since_us: int | None = None
    until_us: int | None = None

    def show(self, record: ResultRecord) -> bytes | None:
        """Return a selected record as one line of JSON; None: it is not selected."""
        if self.condition is not None and record.condition != self.condition:
            return None
        value = record.parse()
        # Not a set: a foreign value may not be hashable.
        if self.key is not None and self.key not in [as_text(record.key), value.get("key")]:
            return None
        moment_us = value.get("detected_at")
        if not isinstance(moment_us, int):
            moment_us = record.age.timestamp_ms * 1000
        if self.since_us is not None and moment_us < self.since_us:
            return None
        if self.until_us is not None and moment_us > self.until_us:
            return None
        return orjson.dumps(as_item(record, value, show_record(value)))


def as_item(
    record: ResultRecord, value: Mapping[str, Any], shown: ShownRecord | None
) -> dict[str, Any]:
    """Return a record as an item of a list.

    Parameters
    ----------
    record : ResultRecord
        The record.
    value : mapping
        Its parsed value; empty: it is not readable.
    shown : ShownRecord or None
        How it is shown; None: its kind is unknown or it is not valid.
    """
    age = record.age
    # A line break in valid JSON is white space between its parts.
    line = record.value.replace(b"\n", b" ").replace(b"\r", b" ")
    return {
        "topic": age.topic,
        "partition": age.partition,
        "offset": age.offset,
        "timestamp": age.timestamp_ms * 1000,
        "type": record.type,
        "error": None if value else UNREADABLE,
        "description": None if shown is None else shown.description,
        # As written: a parser would round long numbers.
        "record": orjson.Fragment(line) if value else None,
    }
