"""Conversion of many records' JSON to events, in columns; see `event_reader` for single records.

Problem. Reading a record alone costs some twenty calls of Python functions. Most records of a
stream have the same fields with values of the same types, which are found and checked in columns.

Definitions. A record is *regular* if its event is known from the columns: `compile_mapping` would
accept the record with the same values. All other records, in particular all that are rejected, are
left to `compile_mapping`, which alone determines events and reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.parsing.event_reader import id_path_of, key_path_of
from correlation.parsing.records import Objects, Records, column_at, types_of
from correlation.parsing.time_columns import timestamps_reader
from correlation.parsing.time_limits import TimeLimits
from correlation.parsing.token_reader import TokenSet, token_columns_reader

if TYPE_CHECKING:
    from correlation.resources.attributes import AttributeValue
    from correlation.resources.paths import Path
    from correlation.resources.streams import Stream


class EventColumns(NamedTuple):
    """Events of n records, as in `MappedEvent`; values of irregular records are undefined.

    `shape` is None if all events are intervals, `tokens` if the stream declares none. `attributes`
    are the values of each attribute.
    """

    is_regular: NDArray[np.bool_]
    id: Sequence[bytes | None]
    key: Sequence[bytes | None]
    earliest: Int64s
    latest: Int64s
    shape: Sequence[bytes | None] | None
    tokens: Sequence[TokenSet] | None
    attributes: Sequence[Sequence[AttributeValue | None]] = ()


ColumnReader = Callable[[Records], EventColumns | None]
_Texts = tuple[Sequence[bytes | None], NDArray[np.bool_]]


def compile_columns(stream: Stream) -> ColumnReader:
    """Return the function that converts parsed JSON to columns of events of the stream.

    Parameters
    ----------
    stream : Stream
        Stream with the mapping, the partitioning and the limits that every event is checked for.

    Returns
    -------
    callable
        `records -> EventColumns`; None if no record is regular.
    """
    mapping = stream.mapping
    read_timestamps = timestamps_reader(stream)
    keyed = stream.partitioning.by == "key"
    id_path, key_path = id_path_of(mapping), key_path_of(mapping)
    key_needed = mapping.key_path is not None
    limits = TimeLimits(stream)
    read_tokens = None if stream.tokens is None else token_columns_reader(stream.tokens)

    def read_keys(objects: Objects, records: Records) -> _Texts:
        count = len(records.rows)
        if not keyed:
            return [b""] * count, np.ones(count, np.bool_)
        keys, is_regular = _read_texts(objects, key_path)
        if None not in keys:
            return keys, is_regular
        if not key_needed:
            keys = [
                theirs if mine is None else mine
                for mine, theirs in zip(keys, records.keys, strict=True)
            ]
        return keys, is_regular & [key is not None for key in keys]

    def read(records: Records) -> EventColumns | None:
        if read_timestamps is None or not records.values:
            return None
        objects = records.objects()
        earliest, latest, is_regular, shape = read_timestamps(objects, records.texts)
        is_regular = is_regular & limits.are_kept(earliest, latest, records.timestamps_us)
        if not is_regular.any():
            return None
        ids, has_id = _read_texts(objects, id_path)
        keys, has_key = read_keys(objects, records)
        is_regular &= has_id & has_key
        tokens = None
        if read_tokens is not None:
            tokens = read_tokens(objects, is_regular)
        return EventColumns(is_regular, ids, keys, earliest, latest, shape, tokens)

    return read


def _read_texts(objects: Objects, path: Path | None) -> _Texts:
    """Return a column of ids or keys, None if they are missing, and which are regular."""
    count = len(objects)
    is_regular = np.ones(count, np.bool_)
    if path is None:
        return [None] * count, is_regular
    found = column_at(objects, path)
    try:
        if types_of(found) == {str}:
            return list(map(str.encode, found)), is_regular
    except UnicodeEncodeError:
        pass
    texts = [_encode(it) for it in found]
    is_regular[:] = [is_text for _, is_text in texts]
    return [text for text, _ in texts], is_regular


def _encode(found: object) -> tuple[bytes | None, bool]:
    """Return an id or key, None if it is missing, and whether it is regular."""
    if type(found) is str or type(found) is int:
        try:
            return str(found).encode(), True
        except UnicodeEncodeError:
            pass
    return None, found is None
