"""Reader of the records of the topics of alarms, changes and lists."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from coincide.alarms.decoding import (
    decode_change,
    decode_list,
    decode_query_alarm,
    decode_timing_alarm,
    decode_withdrawal,
)
from coincide.alarms.recent_ids import RecentIds
from coincide.alarms.values import EventQueryAlarm, TimingAlarm
from correlation.errors import InvalidRecordError, UnknownRecordVersionError
from correlation.event_query.alarm_format import CE_TYPE as QUERY_TYPE
from correlation.record_fields import Fields
from correlation.result_format import ALARM_TYPE, LIST_TYPE, TYPE_HEADER
from correlation.timing.alarm_format import BASE, FACTORED_TYPE, TARGETS
from correlation.timing.factored.expanding import Expander, is_factored
from correlation.topk.change_format import CE_TYPE as CHANGE_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from coincide.alarms.values import Result

# Alarms whose ids are remembered by default: about 15 MB.
REMEMBERED_IDS = 100_000
# Decoders of records with one result, by CloudEvents type.
_DECODERS: dict[str, Callable[[Fields], Result]] = {
    ALARM_TYPE: decode_timing_alarm,
    QUERY_TYPE: decode_query_alarm,
    CHANGE_TYPE: decode_change,
    LIST_TYPE: decode_list,
}


class AlarmReader:
    """Reads the records of one or several partitions, in the order of each partition.

    Alarms with an id that was read before are left out. A repeated alarm is recognised if fewer
    than `remembered_ids` alarms with other ids were read since.

    Parameters
    ----------
    remembered_ids : int
        Number of alarm ids that are remembered, about 150 bytes each; 0 leaves no alarm out.

    Raises
    ------
    ValueError
        `remembered_ids` is negative.
    """

    def __init__(self, *, remembered_ids: int = REMEMBERED_IDS) -> None:
        self._recent = RecentIds(remembered_ids)
        self._expander = Expander()

    @property
    def holds_tables(self) -> bool:
        """Whether tables of factored records are held, whose base records are still to come.

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

        A record is read while the results are iterated; read it to the end before the next one.

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
        """Yield a result, unless it is an alarm whose id is remembered."""
        if isinstance(result, TimingAlarm | EventQueryAlarm):
            if self._recent.add(result.alarm_id):
                yield result
        else:
            yield result


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
