"""Reader of the records of the topics of alarms, changes and lists."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING

from coincide.alarms.decoding import (
    decode_change,
    decode_list,
    decode_query_alarm,
    decode_timing_alarm,
    decode_withdrawal,
)
from coincide.alarms.recent import RecentAlarms
from coincide.alarms.values import EventQueryAlarm, LastingEvent, TimingAlarm
from correlation.errors import InvalidRecordError, UnknownRecordVersionError
from correlation.event_query.alarm_format import CE_TYPE as QUERY_TYPE
from correlation.record_fields import Fields
from correlation.result_format import ALARM_TYPE, LIST_TYPE, TYPE_HEADER
from correlation.timing.alarm_format import BASE, FACTORED_TYPE, TARGETS
from correlation.timing.factored.expanding import Expander, is_factored
from correlation.topk.change_format import CE_TYPE as CHANGE_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from coincide.alarms.values import Event, Result

# Alarms that are remembered by default: about 15 MB.
REMEMBERED_ALARMS = 100_000
# Decoders of records with one result, by CloudEvents type.
_DECODERS: dict[str, Callable[[Fields], Result]] = {
    ALARM_TYPE: decode_timing_alarm,
    QUERY_TYPE: decode_query_alarm,
    CHANGE_TYPE: decode_change,
    LIST_TYPE: decode_list,
}


class AlarmReader:
    """Reads the records of one or several partitions, in the order of each partition.

    Alarms that were read before are left out: alarms with the same id, and the same join keys and
    times of their events. A repeated alarm is recognised if fewer than `remembered_alarms` other
    alarms were read since.

    Parameters
    ----------
    remembered_alarms : int
        Number of alarms that are remembered, about 150 bytes each; 0 leaves no alarm out.

    Raises
    ------
    ValueError
        `remembered_alarms` is negative.
    """

    def __init__(self, *, remembered_alarms: int = REMEMBERED_ALARMS) -> None:
        self._recent = RecentAlarms(remembered_alarms)
        self._expander = Expander()

    @property
    def holds_tables(self) -> bool:
        """Whether a table is held that further base records refer to.

        Commit offsets only while this is False: reading must not begin after a table.
        """
        return self._expander.held > 0

    def drop_tables(self) -> None:
        """Forget all tables: call this when partitions are assigned, or the position is set."""
        self._expander = Expander()

    def read(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[tuple[str, bytes | str | None]] | None,
    ) -> Iterator[Result]:
        """Read a record and yield its results: none, one, or many if it is factored.

        A record is read while the results are iterated; read it to the end before the next one. An
        alarm is remembered when the next result is requested: if the body of the loop raises an
        error, the alarm is yielded again when its record is read again.

        Parameters
        ----------
        key, value : bytes or None
            Key and value of the record.
        headers : iterable of (name, value) or None
            Headers of the record, as confluent-kafka, kafka-python and aiokafka return them.

        Raises
        ------
        InvalidRecordError
            The header `ce_type` or a field is missing or not valid; the error names the field.
        UnknownRecordVersionError
            The type, the format version or the kind of the record is unknown.
        MissingTableError
            Reading began between a table of factored records and a record that refers to it.
        """
        record_type = _read_type(headers)
        if record_type == LIST_TYPE and value is None:
            yield decode_withdrawal(key)
            return
        fields = _parse(value)
        if record_type == FACTORED_TYPE:
            if not is_factored(fields.content):
                raise fields.refuse("record", f"must be {TARGETS} or {BASE}")
            for alarm in self._expander.take(fields.content):
                yield from self._new(decode_timing_alarm(Fields(alarm)))
        elif record_type in _DECODERS:
            yield from self._new(_DECODERS[record_type](fields))
        else:
            known = ", ".join((*_DECODERS, FACTORED_TYPE))
            raise UnknownRecordVersionError(
                f"{TYPE_HEADER}: {record_type!r} is unknown, this reader reads {known}; install "
                "the release that wrote the record"
            )

    def _new(self, result: Result) -> Iterator[Result]:
        """Yield a result, unless it is an alarm that is remembered."""
        if not isinstance(result, TimingAlarm | EventQueryAlarm):
            yield result
            return
        identity = _identify(result)
        if identity not in self._recent:
            yield result
        # The loop over the results has processed the alarm when it requests the next one.
        self._recent.add(identity)


def _identify(alarm: TimingAlarm | EventQueryAlarm) -> bytes:
    """Return a digest of the id of an alarm, and of the join keys and times of its events.

    The id alone is not enough: a producer may use an event id several times.
    """
    if isinstance(alarm, TimingAlarm):
        events: list[Event | LastingEvent | None] = [alarm.a, alarm.b]
    else:
        events = list(alarm.events.values())
    parts = (alarm.alarm_id, *map(_key_and_times, events))
    return blake2b(repr(parts).encode(), digest_size=16).digest()


def _key_and_times(event: Event | LastingEvent | None) -> tuple[str | None, int, int] | None:
    if event is None:
        return None
    if isinstance(event, LastingEvent):
        return event.key, event.begin, event.end
    return event.key, event.earliest, event.latest


def _read_type(headers: Iterable[tuple[str, bytes | str | None]] | None) -> str:
    """Return the CloudEvents type of a record."""
    found = dict(headers or ()).get(TYPE_HEADER)
    if found is None:
        raise InvalidRecordError(
            TYPE_HEADER, "the header is missing", "pass the headers of a record of Coincide"
        )
    return found if isinstance(found, str) else found.decode("utf-8", "backslashreplace")


def _parse(value: bytes | None) -> Fields:
    """Return the fields of a value."""
    try:
        content = json.loads(value or b"")
    except (ValueError, RecursionError) as error:
        raise InvalidRecordError("value", f"must be a JSON object: {error}") from error
    if not isinstance(content, dict):
        raise InvalidRecordError("value", f"must be a JSON object; got {type(content).__name__}")
    return Fields(content)
