"""Alarms as records: many from columns of pieces, a few from lists.

Columns cost as much for one alarm as for dozens, lists cost the same for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from correlation.buffers.columns import BytesColumn, Int64s
from correlation.buffers.joining import Pieces, frame_values, join_lists, join_pieces, write_numbers
from correlation.operators import Encode, OutputRecord
from correlation.record_columns import RecordColumns
from correlation.timing.alarm_events import EventColumns, EventRows
from correlation.timing.alarm_format import ID_CHARACTERS, alarm_id, alarm_message, digest_of
from correlation.timing.alarm_parts import AlarmValues, alarm_parts, begin_alarm
from correlation.timing.conditions import TimingCondition

# Max number of alarms that lists write in less time than columns (docs/performance.md).
FEW_ALARMS = 40


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
        The different verdicts, as JSON (`alarm_parts.encode_verdicts`).
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
