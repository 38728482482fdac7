"""Heartbeats: how far a partition has been read, and their records on the heartbeats topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from correlation.errors import InvalidFieldError
from correlation.limits import TIME_LIMIT_US
from correlation.resources.checks import check_name
from correlation.resources.records import VERSION, Document, require

# Watermark of a partition that is closed, and `read_up_to` of the heartbeat that closes it: later
# than any time.
CLOSED = 2**61
# read_up_to of the heartbeat that resets a watermark: earlier than any time.
RESET = -CLOSED
# Kafka's timestamps are whole milliseconds, rounded down.
_TIMESTAMP_ERROR_US = 999
# Words for `read_up_to`.
_READ_UP_TO: Mapping[str, int] = {"end": CLOSED, "reset": RESET}


class Heartbeat(NamedTuple):
    """Word that a partition has been read up to a time.

    Parameters
    ----------
    stream : str
        Its stream.
    partition : int or None
        Kafka partition; None for all of the stream.
    read_up_to_us : int
        Every event that occurred up to then, less the stream's max_delay, has been read;
        CLOSED when nothing will follow; RESET when what was known before does not count any more.
    at_offset : int or None
        It holds only once the partition has been read up to this offset; None: it holds now.
    record_timestamp_us : int or None
        Kafka's timestamp of its record, in µs; None where it does not come from Kafka.
    """

    stream: str
    partition: int | None
    read_up_to_us: int
    at_offset: int | None
    record_timestamp_us: int | None = None

    def is_ahead(self, max_skew_us: int) -> bool:
        """Return whether it is of a later time than its own record, by more than clocks differ.

        Parameters
        ----------
        max_skew_us : int
            Of its stream, whose clock is live.
        """
        if self.record_timestamp_us is None:
            return False
        return self.read_up_to_us > self.record_timestamp_us + _TIMESTAMP_ERROR_US + max_skew_us


def heartbeat_from_record(record: Mapping[str, Any]) -> Heartbeat:
    """Read a heartbeat: `{"v"?, "stream", "partition"?, "read_up_to", "offset"?}`.

    `read_up_to` is a time in µs since 1970, or "end": nothing will follow, or "reset": what was
    known before does not count any more. `partition` missing or null means every partition of the
    stream. With `offset` the heartbeat holds only once the partition has been read up to that
    offset.

    Raises
    ------
    InvalidFieldError
        Naming the field and what to write instead.
    """
    if not isinstance(record, Mapping):
        raise InvalidFieldError("heartbeat", "is not an object", 'use {"stream", "read_up_to"}')
    if record.get("v", VERSION) != VERSION:
        # Without the value: `repr` of one that is nested deep raises RecursionError.
        raise InvalidFieldError("v", f"is not {VERSION}", f"use {VERSION}, or leave it out")
    stream = require(record, "stream")
    if not isinstance(stream, str):
        raise InvalidFieldError("stream", "is not a text", "write the stream's name")
    read_up_to = require(record, "read_up_to")
    if isinstance(read_up_to, str) and read_up_to in _READ_UP_TO:
        read_up_to = _READ_UP_TO[read_up_to]
    elif not _is_whole(read_up_to) or abs(read_up_to) > TIME_LIMIT_US:
        remedy = 'use µs since 1970, "end", or "reset"'
        raise InvalidFieldError("read_up_to", "is not a time", remedy)
    for field in ("partition", "offset"):
        value = record.get(field)
        if value is not None and not (_is_whole(value) and 0 <= value < 2**63):
            raise InvalidFieldError(
                field, "is not a whole number from 0", "leave it out, or fix it"
            )
    if record.get("offset") is not None and record.get("partition") is None:
        raise InvalidFieldError("partition", "is missing", "name the partition of the offset")
    return Heartbeat(
        check_name(stream, "stream"), record.get("partition"), read_up_to, record.get("offset")
    )


def heartbeat_to_record(heartbeat: Heartbeat) -> Document:
    """Write a heartbeat as its record's value."""
    words = {value: word for word, value in _READ_UP_TO.items()}
    return {
        "v": VERSION,
        "stream": heartbeat.stream,
        "partition": heartbeat.partition,
        "read_up_to": words.get(heartbeat.read_up_to_us, heartbeat.read_up_to_us),
        "offset": heartbeat.at_offset,
    }


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
