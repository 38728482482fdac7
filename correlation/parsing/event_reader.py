"""How a record's JSON becomes an event of its stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from correlation.errors import RejectedEventError
from correlation.limits import TIME_LIMIT_US
from correlation.parsing.event_times import timestamp_reader
from correlation.reasons import Reason
from correlation.resources.paths import Path, type_name

if TYPE_CHECKING:
    from correlation.resources.mapping import EventMapping
    from correlation.resources.streams import Stream


class MappedEvent(NamedTuple):
    """An event as its record gives it: id (None: the record names none), key, interval in µs.

    `shape` is `Histogram.shape_bytes`: None where the time is uniform on the interval.
    """

    id: bytes | None
    key: bytes
    earliest: int
    latest: int
    shape: bytes | None = None


EventReader = Callable[[object, bytes | None, bytes | None, int], MappedEvent]
IdReader = Callable[[object], bytes | None]


def compile_mapping(stream: Stream) -> EventReader:
    """Make the function that turns parsed JSON into an event of the stream.

    Parameters
    ----------
    stream : Stream
        Gives mapping, partitioning and the contract that every event is held to.

    Returns
    -------
    callable
        `(value, text, record_key, record_timestamp_us) -> MappedEvent`; it raises
        RejectedEventError, with the reason, for anything that is not an event of the stream.
        `value` is the parsed JSON `text`, which is asked for numbers that float64 does not hold;
        without a text (None) a float is exact.
    """
    mapping = stream.mapping
    read_timestamp = timestamp_reader(stream)
    keyed = stream.partitioning.by == "key"
    id_path = _id_path(mapping)
    key_path = mapping.key_path or (("key",) if mapping.form == "canonical" else None)
    key_needed = mapping.key_path is not None
    check = _contract_checker(stream)

    read_id = None if id_path is None else _text_reader(id_path, "id")
    read_key = None if key_path is None or not keyed else _text_reader(key_path, "key")
    no_key = (
        f"no field {'.'.join(mapping.key_path)!r}"
        if mapping.key_path is not None
        else "the record has no key and the event none either"
    )

    def read(
        value: object, text: bytes | None, record_key: bytes | None, record_timestamp_us: int
    ) -> MappedEvent:
        if not isinstance(value, dict):
            raise RejectedEventError(
                Reason.NOT_AN_OBJECT, f"a JSON object is needed, not {type_name(value)}"
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

    return read


def compile_id_reader(mapping: EventMapping) -> IdReader:
    """Make the function that reads nothing but the id of a record, event or not.

    Parameters
    ----------
    mapping : EventMapping
        Of the stream.

    Returns
    -------
    callable
        `(value) -> id`; None for a record that names none, or something that is no id.
    """
    id_path = _id_path(mapping)
    read_id = None if id_path is None else _text_reader(id_path, "id")

    def read(value: object) -> bytes | None:
        if read_id is None or not isinstance(value, dict):
            return None
        try:
            return read_id(value)
        except RejectedEventError:
            return None

    return read


def _id_path(mapping: EventMapping) -> Path | None:
    return mapping.id_path or (("id",) if mapping.form == "canonical" else None)


def _contract_checker(stream: Stream) -> Callable[[int, int, int], None]:
    """Hold an interval to ρ, π and the clock (spec: timing, sections 1 and 7)."""
    shortest, longest, skew = (
        stream.min_uncertainty_us,
        stream.max_uncertainty_us,
        stream.max_skew_us,
    )
    live = stream.clock == "live"

    def check(earliest: int, latest: int, record_timestamp_us: int) -> None:
        length = latest - earliest
        if length < 0:
            raise RejectedEventError(
                Reason.EARLIEST_AFTER_LATEST, f"earliest is {-length} us after latest"
            )
        if not (-TIME_LIMIT_US <= earliest and latest <= TIME_LIMIT_US):
            raise RejectedEventError(
                Reason.TIME_OUT_OF_RANGE, "times lie within 36,000 years of 1970"
            )
        if length < shortest:
            raise RejectedEventError(
                Reason.SHORTER_THAN_DECLARED, f"{length} us long, at least {shortest} declared"
            )
        if length > longest:
            raise RejectedEventError(
                Reason.LONGER_THAN_DECLARED, f"{length} us long, at most {longest} declared"
            )
        if live and earliest > record_timestamp_us + skew:
            raise RejectedEventError(
                Reason.FUTURE_DATED,
                f"earliest is {earliest - record_timestamp_us} us after the record was appended, "
                f"at most {skew} allowed",
            )

    return check


def _text_reader(path: Path, name: str) -> Callable[[Mapping[str, object]], bytes | None]:
    """Make the reader of an id or a key: a text or an integer; None where missing or null."""
    first, *rest = path

    def read(value: Mapping[str, object]) -> bytes | None:
        found = value.get(first)
        for part in rest:
            found = found.get(part) if isinstance(found, dict) else None
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, str | int):
            raise RejectedEventError(
                Reason.WRONG_TYPE, f"{name} is a text or an integer, not {type_name(found)}"
            )
        try:
            return str(found).encode()
        except UnicodeEncodeError:
            raise RejectedEventError(
                Reason.WRONG_ENCODING, f"{name} is not valid Unicode"
            ) from None

    return read
