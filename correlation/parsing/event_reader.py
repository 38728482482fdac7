"""Conversion of a record's JSON to an event of its stream, or to the reason of its rejection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from correlation.errors import RejectedEventError
from correlation.parsing.event_times import timestamp_reader
from correlation.parsing.time_limits import TimeLimits
from correlation.parsing.token_reader import EventTokens, TokensReader, tokens_reader
from correlation.reasons import Reason
from correlation.resources.paths import Path, type_name

if TYPE_CHECKING:
    from correlation.resources.mapping import EventMapping
    from correlation.resources.streams import Stream


class MappedEvent(NamedTuple):
    """An event read from a record: id (None: missing in the record), key, interval in µs.

    `shape` is `Histogram.shape_bytes`, or None if the time is uniform on the interval. `tokens` are
    distinct, and empty if the stream does not declare tokens.
    """

    id: bytes | None
    key: bytes
    earliest: int
    latest: int
    shape: bytes | None = None
    tokens: EventTokens = ()


EventReader = Callable[[object, bytes | None, bytes | None, int], MappedEvent]
IdReader = Callable[[object], bytes | None]


def compile_mapping(stream: Stream) -> EventReader:
    """Return the function that converts parsed JSON to an event of the stream.

    Parameters
    ----------
    stream : Stream
        Stream with the mapping, the partitioning and the limits that every event is checked for.

    Returns
    -------
    callable
        `(value, text, record_key, record_timestamp_us) -> MappedEvent`; raises RejectedEventError
        with the reason if the record is not a valid event of the stream. `value` is the parsed
        value of the JSON `text`. Numbers that float64 cannot represent are read from `text`; if
        `text` is None, floats count as exact.
    """
    mapping = stream.mapping
    read_timestamp = timestamp_reader(stream)
    keyed = stream.partitioning.by == "key"
    id_path = id_path_of(mapping)
    key_path = key_path_of(mapping)
    key_needed = mapping.key_path is not None
    check = TimeLimits(stream).check

    read_id = None if id_path is None else _text_reader(id_path, "id")
    read_key = None if key_path is None or not keyed else _text_reader(key_path, "key")
    no_key = (
        f"field {'.'.join(mapping.key_path)!r} is missing"
        if mapping.key_path is not None
        else "neither the record nor the event has a key"
    )

    def read(
        value: object, text: bytes | None, record_key: bytes | None, record_timestamp_us: int
    ) -> MappedEvent:
        if not isinstance(value, dict):
            raise RejectedEventError(
                Reason.NOT_AN_OBJECT, f"the value must be a JSON object; got {type_name(value)}"
            )
        earliest, latest, shape = read_timestamp(value, text)
        check(earliest, latest, record_timestamp_us)
        event_id = None if read_id is None else read_id(value)
        if not keyed:
            return MappedEvent(event_id, b"", earliest, latest, shape)
        key = None if read_key is None else read_key(value)
        if key is None and not key_needed:
            key = record_key
        if key is None:
            raise RejectedEventError(Reason.MISSING_KEY, no_key)
        return MappedEvent(event_id, key, earliest, latest, shape)

    return read if stream.tokens is None else _with_tokens(read, tokens_reader(stream.tokens))


def _with_tokens(read: EventReader, read_tokens: TokensReader) -> EventReader:
    """Return a reader that also reads the tokens of a record that is otherwise valid."""

    def read_both(
        value: object, text: bytes | None, record_key: bytes | None, record_timestamp_us: int
    ) -> MappedEvent:
        event_id, key, earliest, latest, shape, _ = read(
            value, text, record_key, record_timestamp_us
        )
        return MappedEvent(event_id, key, earliest, latest, shape, read_tokens(value))

    return read_both


def compile_id_reader(mapping: EventMapping) -> IdReader:
    """Return the function that reads only the id of a record, even of a rejected record.

    Parameters
    ----------
    mapping : EventMapping
        Mapping of the stream.

    Returns
    -------
    callable
        `(value) -> id`; None if the id is missing or not valid.
    """
    id_path = id_path_of(mapping)
    read_id = None if id_path is None else _text_reader(id_path, "id")

    def read(value: object) -> bytes | None:
        if read_id is None or not isinstance(value, dict):
            return None
        try:
            return read_id(value)
        except RejectedEventError:
            return None

    return read


def id_path_of(mapping: EventMapping) -> Path | None:
    """Return the path of the id; None: a record has no id."""
    return mapping.id_path or (("id",) if mapping.form == "canonical" else None)


def key_path_of(mapping: EventMapping) -> Path | None:
    """Return the path of the join key; None: the key is that of the Kafka record."""
    return mapping.key_path or (("key",) if mapping.form == "canonical" else None)


def _text_reader(path: Path, name: str) -> Callable[[Mapping[str, object]], bytes | None]:
    """Return the reader of an id or key: a string or an integer; None if missing or null."""
    first, *rest = path

    def read(value: Mapping[str, object]) -> bytes | None:
        found = value.get(first)
        for part in rest:
            found = found.get(part) if isinstance(found, dict) else None
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, str | int):
            raise RejectedEventError(
                Reason.WRONG_TYPE, f"{name} must be a string or an integer; got {type_name(found)}"
            )
        try:
            return str(found).encode()
        except UnicodeEncodeError:
            raise RejectedEventError(
                Reason.WRONG_ENCODING, f"{name} is not valid Unicode"
            ) from None

    return read
