"""Events of alarms as JSON: one per alarm, or each distinct event once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from correlation.buffers.attribute_json import encode_attributes
from correlation.buffers.columns import BytesColumn, Int64s
from correlation.buffers.joining import Pieces, join_lists, join_pieces, write_numbers
from correlation.buffers.segment import Segment
from correlation.operators import Encode
from correlation.timing.alarm_parts import EventValues, encode_name, event_parts

# Bytes that every JSON encoder writes as they are: printable ASCII, except for two.
_PLAIN = bytes(code for code in range(0x20, 0x7F) if code not in b'"\\')


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
