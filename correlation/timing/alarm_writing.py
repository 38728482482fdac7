"""Alarms as records: many from columns of pieces, a few from lists.

Columns cost as much for one alarm as for dozens, lists cost the same for each. Columns write each
distinct event once, lists one event per alarm. Both have one format: the JSON of an alarm, and of
an event, is a list of parts. A part is constant or a value: the bytes of a single alarm, or codes
of the pieces of many alarms (`correlation.buffers.joining`). Parts are joined in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from correlation.buffers.attribute_json import encode_attributes
from correlation.buffers.columns import BytesColumn, Int64s
from correlation.buffers.joining import Pieces, frame_values, join_lists, join_pieces, write_numbers
from correlation.buffers.segment import Segment
from correlation.operators import Encode, OutputRecord
from correlation.record_columns import RecordColumns
from correlation.result_format import as_text
from correlation.timing.alarm_format import (
    ALARM_VERSION,
    ID_CHARACTERS,
    alarm_id,
    alarm_message,
    digest_of,
)
from correlation.timing.conditions import TimingCondition

_Value = TypeVar("_Value")
# Max number of alarms that lists write in less time than columns (docs/performance.md).
FEW_ALARMS = 40
# Bytes that every JSON encoder writes as they are: printable ASCII, except for two.
_PLAIN = bytes(code for code in range(0x20, 0x7F) if code not in b'"\\')


@dataclass(frozen=True, slots=True)
class Alarms:
    """One or more alarms of a condition.

    Parameters
    ----------
    condition : TimingCondition
        The condition.
    keyed : bool
        Whether the join key is the users' own.
    detected_at_us : int or int64[n]
        Time at which the correlation completed, in µs since 1970: for all alarms or for each.
    verdicts : list of bytes
        The different verdicts, as JSON (`encode_verdicts`).
    verdict_of : int64[n]
        Index into `verdicts` of each alarm.
    probabilities : list of float or None
        Probability of each alarm, if alarms contain it.
    a, b : EventRows
        Events of the alarms; `b` is None for alarms without a B.
    """

    condition: TimingCondition
    keyed: bool
    detected_at_us: int | Int64s
    verdicts: list[bytes]
    verdict_of: Int64s
    probabilities: list[float] | None
    a: EventRows
    b: EventRows | None

    def __len__(self) -> int:
        return len(self.verdict_of)

    def write(self, encode: Encode) -> RecordColumns:
        """Write the alarms as records."""
        if len(self) <= FEW_ALARMS:
            return RecordColumns.of(list(self._write_lists(encode)))
        return self._write_columns(encode)

    def _write_lists(self, encode: Encode) -> Iterator[OutputRecord]:
        """Write a few alarms from lists of byte strings."""
        name, version, count = self.condition.name, self.condition.version, len(self)
        moments, numbers, keyed = self.detected_at_us, self.probabilities, self.keyed
        b_ids = repeat(None, count) if self.b is None else self.b.ids()
        idents = [
            alarm_id(name, version, a_id, b_id)
            for a_id, b_id in zip(self.a.ids(), b_ids, strict=True)
        ]
        values = AlarmValues(
            encode(moments) if isinstance(moments, int) else list(map(encode, moments.tolist())),
            [ident.encode() for ident in idents],
            [self.verdicts[place] for place in self.verdict_of.tolist()],
            None if numbers is None else list(map(encode, numbers)),
            self.a.encode(encode, keyed=keyed),
            None if self.b is None else self.b.encode(encode, keyed=keyed),
        )
        keys = self.a.keys() if keyed else repeat(name.encode(), count)
        parts = alarm_parts(begin_alarm(self.condition, encode), values)
        return map(OutputRecord, keys, join_lists(count, parts), idents)

    def _write_columns(self, encode: Encode) -> RecordColumns:
        """Write many alarms as columns of pieces, since a few events may form many pairs."""
        pieces, moments, numbers = Pieces(), self.detected_at_us, self.probabilities
        a = EventColumns(self.a, keyed=self.keyed)
        b = None if self.b is None else EventColumns(self.b, keyed=self.keyed)
        ident = pieces.add(self._identify([a] if b is None else [a, b]))
        values = AlarmValues(
            encode(moments)
            if isinstance(moments, int)
            else pieces.add(write_numbers(moments.tolist(), encode)),
            ident,
            pieces.add(BytesColumn.from_list(self.verdicts), self.verdict_of),
            None if numbers is None else pieces.add(write_numbers(numbers, encode)),
            pieces.add(a.encode(encode), a.places),
            None if b is None else pieces.add(b.encode(encode), b.places),
        )
        key = self.condition.name.encode() if a.keys is None else pieces.add(a.keys, a.places)
        parts = alarm_parts(begin_alarm(self.condition, encode), values)
        codes = pieces.stack(len(self), [key, ident, *parts])
        return RecordColumns(pieces.to_column(), codes[0], codes[2:], codes[1])

    def _identify(self, roles: Sequence[EventColumns]) -> BytesColumn:
        """Compute the ids of the alarms; see `alarm_format.alarm_id`."""
        pieces = Pieces()
        message = alarm_message(self.condition.name, self.condition.version)
        ids = [pieces.add(frame_values(it.ids), it.places) for it in roles]
        codes = pieces.stack(len(self), [message, *ids])
        messages = join_pieces(pieces.to_column(), codes).to_list()
        found = "".join(map(digest_of, messages)).encode()
        offsets = np.arange(len(self) + 1, dtype=np.int64) * ID_CHARACTERS
        return BytesColumn(np.frombuffer(found, np.uint8), offsets)


class EventRows(NamedTuple):
    """Events of one role, A or B, of some alarms.

    Parameters
    ----------
    stream : str
        Name of the stream.
    segment : Segment
        Segment that holds the events.
    rows : int64[n]
        Row of the event of each alarm.
    attributes : tuple of str
        Attributes that alarms contain.
    """

    stream: str
    segment: Segment
    rows: Int64s
    attributes: tuple[str, ...]

    def ids(self) -> list[bytes]:
        """Return the id of the event of each alarm."""
        return self.segment.id.pick(self.rows)

    def keys(self) -> list[bytes]:
        """Return the join key of the event of each alarm."""
        return self.segment.group_keys.pick(self.segment.groups_of_rows(self.rows))

    def encode(self, encode: Encode, *, keyed: bool) -> list[bytes]:
        """Write the event of each alarm as JSON.

        Parameters
        ----------
        encode : callable
            JSON encoder.
        keyed : bool
            Whether the join key is the users' own.
        """
        segment, rows, names = self.segment, self.rows, self.attributes
        values = EventValues(
            [encode_name(it, encode) for it in self.ids()],
            [encode_name(it, encode) for it in self.keys()] if keyed else None,
            list(map(encode, segment.earliest[rows].tolist())),
            list(map(encode, segment.latest[rows].tolist())),
            encode_attributes(segment.columns, rows, names) if names else None,
        )
        parts = event_parts(encode(self.stream), values)
        return join_lists(len(rows), parts)


class EventColumns:
    """The distinct events of one role.

    Parameters
    ----------
    events : EventRows
        Events of the role.
    keyed : bool
        Whether the join key is the users' own.

    Attributes
    ----------
    ids : BytesColumn
        Id of each event.
    keys : BytesColumn or None
        Join key of each event; None if it is not the users' own.
    places : int64[n]
        Number of the event of each alarm.
    """

    __slots__ = ("_events", "_rows", "ids", "keys", "places")

    def __init__(self, events: EventRows, *, keyed: bool) -> None:
        self._events = events
        self._rows: Int64s
        self.places: Int64s
        self._rows, self.places = np.unique(events.rows, return_inverse=True)
        self.ids = events.segment.id.take(self._rows)
        self.keys = events.segment.key_of_rows(self._rows) if keyed else None

    def encode(self, encode: Encode) -> BytesColumn:
        """Write each event as JSON; see `EventRows.encode`."""
        segment, rows, names = self._events.segment, self._rows, self._events.attributes
        pieces, attributes = Pieces(), None
        if names:
            found = encode_attributes(segment.columns, rows, names)
            attributes = pieces.add(BytesColumn.from_list(found))
        values = EventValues(
            pieces.add(_encode_names(self.ids, encode)),
            None if self.keys is None else pieces.add(_encode_names(self.keys, encode)),
            pieces.add(write_numbers(segment.earliest[rows].tolist(), encode)),
            pieces.add(write_numbers(segment.latest[rows].tolist(), encode)),
            attributes,
        )
        parts = event_parts(encode(self._events.stream), values)
        codes = pieces.stack(len(rows), parts)
        return join_pieces(pieces.to_column(), codes)


def _encode_names(names: BytesColumn, encode: Encode) -> BytesColumn:
    """Write ids or keys; see `encode_name`."""
    if not names.data.tobytes().translate(None, _PLAIN):
        return names
    return BytesColumn.from_list([encode_name(name, encode) for name in names.to_list()])


class AlarmValues(NamedTuple, Generic[_Value]):
    """Values of an alarm, as JSON.

    Parameters
    ----------
    detected_at
        Time at which the correlation completed, in µs since 1970.
    ident
        Id of the alarm, without quotes.
    verdict
        Fields `decided_by` and `late`, without braces (`encode_verdicts`).
    probability
        Satisfaction probability; None if alarms do not contain it.
    a, b
        The events (`event_parts`); `b` is None for an alarm without a B.
    """

    detected_at: _Value | bytes
    ident: _Value
    verdict: _Value
    probability: _Value | None
    a: _Value
    b: _Value | None


class EventValues(NamedTuple, Generic[_Value]):
    """Values of an event, as JSON.

    Parameters
    ----------
    ident, key
        Id and join key, without quotes (`encode_name`); `key` is None if it is not the users' own.
    earliest, latest
        Interval in µs since 1970.
    attributes
        Object of the attributes; None if the stream declares none.
    """

    ident: _Value
    key: _Value | None
    earliest: _Value
    latest: _Value
    attributes: _Value | None


def begin_alarm(condition: TimingCondition, encode: Encode) -> bytes:
    """Return the fields with which all alarms of a condition begin, as JSON without end."""
    common = {
        "v": ALARM_VERSION,
        "condition": condition.name,
        "version": condition.version,
        "kind": condition.kind,
        "threshold": float(condition.threshold),
    }
    return encode(common)[:-1] + b',"detected_at":'


def alarm_parts(begin: bytes, values: AlarmValues[_Value]) -> list[_Value | bytes]:
    """Return the parts of an alarm; `begin` is that of its condition (`begin_alarm`)."""
    parts: list[_Value | bytes] = [begin, values.detected_at]
    parts += [b',"alarm_id":"', values.ident, b'",', values.verdict]
    if values.probability is not None:
        parts += [b',"probability":', values.probability]
    parts += [b',"a":', values.a, b',"b":', b"null" if values.b is None else values.b, b"}"]
    return parts


def event_parts(stream: bytes, values: EventValues[_Value]) -> list[_Value | bytes]:
    """Return the parts of an event; `stream` is the name of its stream as JSON."""
    parts: list[_Value | bytes] = [b'{"id":"', values.ident, b'","stream":%b,"key":' % stream]
    parts += [b"null"] if values.key is None else [b'"', values.key, b'"']
    parts += [b',"earliest":', values.earliest, b',"latest":', values.latest]
    if values.attributes is not None:
        parts += [b',"attributes":', values.attributes]
    return [*parts, b"}"]


def event_record(
    stream: str, event_id: bytes, key: bytes | None, earliest: int, latest: int
) -> dict[str, object]:
    """Return an event as `event_parts` writes it, without attributes."""
    return {
        "id": as_text(event_id),
        "stream": stream,
        "key": None if key is None else as_text(key),
        "earliest": earliest,
        "latest": latest,
    }


def encode_verdicts(way: str, encode: Encode) -> list[bytes]:
    """Encode `decided_by` and `late`, as JSON without braces: first on time, then late."""
    return [encode({"decided_by": way, "late": late})[1:-1] for late in (False, True)]


def encode_name(name: bytes, encode: Encode) -> bytes:
    """Encode an id or a key as a JSON string without quotes; see `result_format.as_text`."""
    return encode(as_text(name))[1:-1]
