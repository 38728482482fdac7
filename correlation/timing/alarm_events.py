"""Events of alarms as JSON, each event once."""

from __future__ import annotations

import numpy as np

from correlation.buffers.attribute_json import encode_attributes
from correlation.buffers.columns import BytesColumn, Int64s
from correlation.buffers.joining import Pieces, join_pieces, split_numbers, stack_codes
from correlation.buffers.segment import Segment
from correlation.operators import Encode
from correlation.result_format import as_text

# Bytes that every JSON encoder writes as they are: printable ASCII, except for two.
_IS_PLAIN = np.zeros(256, np.bool_)
_IS_PLAIN[0x20:0x7F] = True
_IS_PLAIN[[ord('"'), ord("\\")]] = False
# Size of the length in front of a framed id.
_FRAME_BYTES = 8


class EventsOfAlarms:
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

    Attributes
    ----------
    distinct : int64[k]
        Rows of the distinct events.
    places : int64[n]
        Index into `distinct` of each alarm.
    """

    __slots__ = ("_ids", "attributes", "distinct", "places", "rows", "segment", "stream")

    def __init__(
        self, stream: str, segment: Segment, rows: Int64s, attributes: tuple[str, ...]
    ) -> None:
        self.stream = stream
        self.segment = segment
        self.rows = rows
        self.attributes = attributes
        self.distinct: Int64s
        self.places: Int64s
        self.distinct, self.places = np.unique(rows, return_inverse=True)
        self._ids = segment.id.take(self.distinct)

    def framed_ids(self, pieces: Pieces) -> list[Int64s]:
        """Add the ids as `result_format.framed` writes them; return codes of each alarm."""
        ids = self._ids
        lengths = np.diff(ids.offsets).astype("<i8").view(np.uint8)
        frames = BytesColumn(lengths, np.arange(len(ids) + 1) * _FRAME_BYTES)
        return [pieces.add(frames, self.places), pieces.add(ids, self.places)]

    def keys(self, pieces: Pieces) -> Int64s:
        """Add the join keys; return the code of each alarm's key."""
        return pieces.add(self.segment.key_of_rows(self.distinct), self.places)

    def encode(self, encode: Encode, *, keyed: bool) -> BytesColumn:
        """Write each distinct event as JSON; see `alarms.event_record`.

        Parameters
        ----------
        encode : callable
            JSON encoder.
        keyed : bool
            Whether the join key is the users' own.
        """
        segment, rows, pieces = self.segment, self.distinct, Pieces()
        stream = b'","stream":%b,"key":' % encode(self.stream)
        codes: list[Int64s | int] = [
            pieces.one(b'{"id":"'),
            pieces.add(_encode_texts(self._ids, encode)),
        ]
        if keyed:
            keys = _encode_texts(segment.key_of_rows(rows), encode)
            codes += [pieces.one(stream + b'"'), pieces.add(keys), pieces.one(b'","earliest":')]
        else:
            codes.append(pieces.one(b'%b%b,"earliest":' % (stream, encode(None))))
        codes += [
            pieces.add(split_numbers(encode(segment.earliest[rows].tolist()))),
            pieces.one(b',"latest":'),
            pieces.add(split_numbers(encode(segment.latest[rows].tolist()))),
        ]
        if self.attributes:
            found = encode_attributes(segment.columns, rows, self.attributes)
            codes += [pieces.one(b',"attributes":'), pieces.add(BytesColumn.from_list(found))]
        codes.append(pieces.one(b"}"))
        return join_pieces(pieces.to_column(), stack_codes(len(rows), codes))


def _encode_texts(names: BytesColumn, encode: Encode) -> BytesColumn:
    """Write ids or keys as JSON strings without quotes; see `result_format.as_text`."""
    if _IS_PLAIN[names.data].all():
        return names
    return BytesColumn.from_list([encode(as_text(name))[1:-1] for name in names.to_list()])
