"""Heartbeats, which state that a partition is complete up to a time, and their records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from correlation.errors import InvalidFieldError
from correlation.limits import TIME_LIMIT_US
from correlation.resources.checks import check_name
from correlation.resources.records import VERSION, Document, require

# Watermark of a closed partition, and `read_up_to` of the heartbeat that closes it: later than any
# time.
CLOSED = 2**61
# `read_up_to` of the heartbeat that resets a watermark: earlier than any time.
RESET = -CLOSED
# Kafka's timestamps are whole milliseconds, rounded down.
_TIMESTAMP_ERROR_US = 999
# Values of `read_up_to` that are words.
READ_UP_TO: Mapping[str, int] = {"end": CLOSED, "reset": RESET}


class Heartbeat(NamedTuple):
    """Statement that a partition has been read up to a time.

    Parameters
    ----------
    stream : str
        Name of the stream.
    partition : int or None
        Kafka partition; None: all partitions of the stream.
    read_up_to_us : int
        All events up to this time minus the stream's max_delay have been read. CLOSED: the
        partition ends. RESET: the watermark becomes unknown.
    at_offset : int or None
        Offset up to which the partition must be read before the heartbeat takes effect; None: it
        takes effect immediately.
    record_timestamp_us : int or None
        Kafka's timestamp of its record, in µs; None: not read from Kafka.
    """

    stream: str
    partition: int | None
    read_up_to_us: int
    at_offset: int | None
    record_timestamp_us: int | None = None

    def is_ahead(self, max_skew_us: int) -> bool:
        """Return whether `read_up_to_us` is after Kafka's timestamp by more than `max_skew_us`.

        Parameters
        ----------
        max_skew_us : int
            max_skew of the stream, whose clock is live.
        """
        if self.record_timestamp_us is None:
            return False
        return self.read_up_to_us > self.record_timestamp_us + _TIMESTAMP_ERROR_US + max_skew_us


def heartbeat_from_record(record: Mapping[str, Any]) -> Heartbeat:
    """Read a heartbeat: `{"v"?, "stream", "partition"?, "read_up_to", "offset"?}`.

    `read_up_to` is a time in µs since 1970; or "end", which closes the partition; or "reset", which
    makes the watermark unknown. If `partition` is missing or null, the heartbeat is for every
    partition of the stream. If `offset` is set, the heartbeat takes effect when the partition has
    been read up to that offset.

    Raises
    ------
    InvalidFieldError
        A field is missing or not valid.
    """
    if not isinstance(record, Mapping):
        raise InvalidFieldError("heartbeat", "must be an object", 'write {"stream", "read_up_to"}')
    if record.get("v", VERSION) != VERSION:
        # The message omits the value: `repr` of a deeply nested value raises RecursionError.
        raise InvalidFieldError("v", f"must be {VERSION}", f"write {VERSION}, or leave it out")
    stream = require(record, "stream")
    if not isinstance(stream, str):
        raise InvalidFieldError("stream", "must be a string", "write the name of the stream")
    read_up_to = require(record, "read_up_to")
    if isinstance(read_up_to, str) and read_up_to in READ_UP_TO:
        read_up_to = READ_UP_TO[read_up_to]
    elif not _is_whole(read_up_to) or abs(read_up_to) > TIME_LIMIT_US:
        remedy = 'write µs since 1970, "end", or "reset"'
        raise InvalidFieldError("read_up_to", "is not a valid time", remedy)
    for field in ("partition", "offset"):
        value = record.get(field)
        if value is not None and not (_is_whole(value) and 0 <= value < 2**63):
            raise InvalidFieldError(
                field, "must be a whole number of at least 0", "correct it, or leave it out"
            )
    if record.get("offset") is not None and record.get("partition") is None:
        raise InvalidFieldError("partition", "is missing", "add the partition of the offset")
    return Heartbeat(
        check_name(stream, "stream"), record.get("partition"), read_up_to, record.get("offset")
    )


def heartbeat_to_record(heartbeat: Heartbeat) -> Document:
    """Write a heartbeat as the value of its record."""
    words = {value: word for word, value in READ_UP_TO.items()}
    return {
        "v": VERSION,
        "stream": heartbeat.stream,
        "partition": heartbeat.partition,
        "read_up_to": words.get(heartbeat.read_up_to_us, heartbeat.read_up_to_us),
        "offset": heartbeat.at_offset,
    }


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
