"""Gather the sets of a time range from segments, in the order in which they take effect.

The order of sets is (time, stream A before B, id), within each list. Events without tokens, and
events that the condition's filters exclude, are left out. Events of a stream with equal times and
ids are copies of one event, such as a record that was sent twice: one of them is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import BytesColumn, Int64s, SetsColumn
from correlation.buffers.filtering import matches_rows
from correlation.buffers.segment import Segment
from correlation.limits import UNKNOWN_WATERMARK
from correlation.resources.tokens import TOKENS_COLUMN
from correlation.topk.cells import Division, Key
from correlation.two_streams import Where

Mask = NDArray[np.bool_]


class Part(NamedTuple):
    """Events of a stream.

    Parameters
    ----------
    side : int
        0 for stream A, 1 for stream B.
    segment : Segment
        The events.
    record_timestamp_us : int64[n] or None
        Kafka's timestamps, in µs; None: the events are from earlier blocks.
    """

    side: int
    segment: Segment
    record_timestamp_us: Int64s | None = None


class Range(NamedTuple):
    """Times from `low` to `high`, both included, in µs."""

    low: int
    high: int


class Sets(NamedTuple):
    """The gathered sets of one list, in their order.

    Parameters
    ----------
    time_us : int64[n]
        Times.
    side : int8[n]
        Streams: 0 for stream A, 1 for stream B.
    half : int8[n]
        Halves of the list; see `Division.place`.
    id : BytesColumn
        Ids of the events.
    tokens : SetsColumn
        Tokens.
    arrived_us : int64[n]
        Kafka's timestamps of the records of this block; UNKNOWN_WATERMARK of earlier records.
    """

    time_us: Int64s
    side: NDArray[np.int8]
    half: NDArray[np.int8]
    id: BytesColumn
    tokens: SetsColumn
    arrived_us: Int64s

    def __len__(self) -> int:
        return len(self.time_us)

    def take(self, rows: Int64s) -> Sets:
        """Return the sets of the given rows, in the order of `rows`."""
        return Sets(
            self.time_us[rows],
            self.side[rows],
            self.half[rows],
            self.id.take(rows),
            self.tokens.take(rows),
            self.arrived_us[rows],
        )


def list_keys(parts: Sequence[Part], within: Range) -> list[bytes]:
    """Return the join keys of all events of a time range, with or without tokens, in order."""
    found: set[bytes] = set()
    for part in parts:
        latest = part.segment.latest
        rows = np.flatnonzero((latest >= within.low) & (latest <= within.high))
        groups = np.unique(part.segment.groups_of_rows(rows))
        found.update(part.segment.group_keys.take(groups).to_list())
    return sorted(found)


def gather_sets(
    parts: Sequence[Part], within: Range, where: Where, division: Division
) -> Iterator[tuple[Key, Sets]]:
    """Yield the sets of a time range for each list, by name in order.

    Parameters
    ----------
    parts : sequence of Part
        Events.
    within : Range
        Times of the sets.
    where : Where
        Filters with constants of the declared types.
    division : Division
        Division of the sets into lists.
    """
    chosen = [(part, _choose_rows(part, within, where)) for part in parts]
    chosen = [(part, rows) for part, rows in chosen if len(rows)]
    if not chosen:
        return
    codes, half, names = _place_sets(chosen, division)
    sets = Sets(
        np.concatenate([part.segment.latest[rows] for part, rows in chosen]),
        np.repeat(
            np.array([part.side for part, _ in chosen], np.int8), [len(rows) for _, rows in chosen]
        ),
        half,
        BytesColumn.concat([part.segment.id.take(rows) for part, rows in chosen]),
        SetsColumn.concat([_tokens_of(part.segment).take(rows) for part, rows in chosen]),
        np.concatenate([_arrivals(part, rows) for part, rows in chosen]),
    )
    order = _sort_sets(sets, codes)
    order = order[_are_first(sets, codes, order)]
    starts = np.searchsorted(codes[order], np.arange(len(names) + 1))
    for name, low, high in zip(names, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        yield name, sets.take(order[low:high])


def _choose_rows(part: Part, within: Range, where: Where) -> Int64s:
    """Return the rows of the sets of a part that take part in the range."""
    segment = part.segment
    if (
        TOKENS_COLUMN not in segment.columns
        or segment.max_latest < within.low
        or segment.min_latest > within.high
    ):
        return np.zeros(0, np.int64)
    mask = (segment.latest >= within.low) & (segment.latest <= within.high)
    mask &= np.diff(_tokens_of(segment).offsets) > 0
    rows = np.flatnonzero(mask)
    return rows[matches_rows(segment, rows, where[part.side])]


def _tokens_of(segment: Segment) -> SetsColumn:
    column = segment.columns[TOKENS_COLUMN]
    assert isinstance(column, SetsColumn)  # noqa: S101 - the column of this name is of this type
    return column


def _arrivals(part: Part, rows: Int64s) -> Int64s:
    if part.record_timestamp_us is None:
        return np.full(len(rows), UNKNOWN_WATERMARK, np.int64)
    return part.record_timestamp_us[rows]


def _place_sets(
    chosen: Sequence[tuple[Part, Int64s]], division: Division
) -> tuple[Int64s, NDArray[np.int8], list[Key]]:
    """Return the number of each row's list, its half of the list, and the names of the lists."""
    places, rows_of = [], []
    for part, rows in chosen:
        groups, numbers = np.unique(part.segment.groups_of_rows(rows), return_inverse=True)
        keys = part.segment.group_keys.take(groups).to_list()
        places.append([division.place(part.side, key) for key in keys])
        rows_of.append(numbers)
    names = sorted({name for found in places for name, _ in found}, key=lambda name: name or b"")
    codes = {name: code for code, name in enumerate(names)}
    code, half = [], []
    for found, numbers in zip(places, rows_of, strict=True):
        code.append(np.array([codes[name] for name, _ in found], np.int64)[numbers])
        half.append(np.array([side for _, side in found], np.int8)[numbers])
    return np.concatenate(code), np.concatenate(half), names


def _are_first(sets: Sets, codes: Int64s, order: Int64s) -> Mask:
    """Return whether each sorted row is the first of its event in its list."""
    first = np.ones(len(order), np.bool_)
    columns = [column[order] for column in (codes, sets.time_us, sets.side)]
    rows = 1 + np.flatnonzero(np.logical_and.reduce([it[1:] == it[:-1] for it in columns]))
    ids = zip(
        sets.id.take(order[rows]).to_list(), sets.id.take(order[rows - 1]).to_list(), strict=True
    )
    first[rows] = [mine != other for mine, other in ids]
    return first


def _sort_sets(sets: Sets, codes: Int64s) -> Int64s:
    """Return the rows in the order of codes, and of the sets of a code."""
    order = np.lexsort((sets.side, sets.time_us, codes))
    columns = [column[order] for column in (codes, sets.time_us, sets.side)]
    equal = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    # Runs of sets that only their ids distinguish; few, if times are exact.
    borders = np.flatnonzero(np.diff(np.concatenate([[False], equal, [False]]).astype(np.int8)))
    for low, high in zip(borders[::2].tolist(), (borders[1::2] + 1).tolist(), strict=True):
        run = order[low:high]
        ids = sets.id.take(run).to_list()
        if len(set(ids)) < len(ids):
            # Copies with different tokens are in a definite order, too.
            tokens = [sorted(it) for it in sets.tokens.take(run).to_list()]
            names = list[tuple[bytes, list[bytes]]](zip(ids, tokens, strict=True))
            order[low:high] = run[sorted(range(len(names)), key=names.__getitem__)]
        else:
            order[low:high] = run[sorted(range(len(ids)), key=ids.__getitem__)]
    return order
