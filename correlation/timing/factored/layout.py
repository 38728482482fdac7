"""Layout of targets in tables and records.

Problem. Write every target of a pair once, with few other targets, in records that do not exceed
Kafka's max record size.

Algorithm. The target ranges of the base events are sorted by their begin. A range that begins more
than `_GAP` targets after the end of all earlier ranges, or in another group, begins a new *table*.
Targets between two distant base events (one of them late) are therefore not written. A table is cut
into records by an upper bound of the JSON size of each target.

Cost. O(k log k) for k base events; O(bytes of its ids) for a table that may need several records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from correlation.buffers.columns import BytesColumn
    from correlation.timing.factored.search import Int64s, Spans

# The head of a table has about the size of 8 targets.
_GAP = 8
# Max size of a table record: ids, times and places of late targets.
TARGETS_BYTES = 240 * 1024
# Max size of each of the two bitmaps of a base record, before base64 adds a third.
BITMAP_BYTES = 48 * 1024
# Two numbers of at most 20 digits, the place of a late target, quotes and commas.
_TARGET_BYTES = 56
# Max JSON size of a byte, written as \u00XX; bytes of multi-byte characters need no more.
_ESCAPED_BYTES = 6


class Table(NamedTuple):
    """Consecutive targets of one key, and the base events that refer to them.

    Attributes
    ----------
    cuts : int64[p + 1]
        Record i holds the targets cuts[i] to cuts[i + 1].
    rows : int64[r]
        The base events, as ascending rows of `Spans`.
    pieces : int64[r]
        Number of records of each base event.
    """

    cuts: Int64s
    rows: Int64s
    pieces: Int64s


def lay_out(spans: Spans, ids: BytesColumn, more: Int64s | None = None) -> Iterator[Table]:
    """Yield the tables, by group.

    Parameters
    ----------
    spans : Spans
        The pairs.
    ids : BytesColumn
        Ids of the targets.
    more : int64[n] or None
        JSON size of each target beside its id, times and place, in bytes.
    """
    if not len(spans.base):
        return
    reach = spans.reach()
    order = np.lexsort((reach[:, 0], spans.group))
    begin, group = reach[order, 0], spans.group[order]
    # Target ranges of two groups do not overlap, but may be in any order.
    end = _running_ends(reach[order, 1], group)
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = (group[1:] != group[:-1]) | (begin[1:] > end[:-1] + _GAP)
    starts = np.append(np.flatnonzero(is_new), len(order))
    pieces = _count_pieces(spans)
    for first, behind in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        rows = np.sort(order[first:behind])
        cuts = _cut(ids, int(begin[first]), int(end[behind - 1]), more)
        yield Table(cuts, rows, pieces[rows])


def _running_ends(ends: Int64s, group: Int64s) -> Int64s:
    """Compute the max end up to each row, within its group; rows of a group are adjacent."""
    number = np.cumsum(np.append(False, group[1:] != group[:-1]))
    # Each group is shifted past the previous one, so that earlier ends do not affect it.
    step = int(ends.max()) + 1
    found: Int64s = np.maximum.accumulate(ends + number * step) - number * step
    return found


def _cut(ids: BytesColumn, begin: int, end: int, more: Int64s | None) -> Int64s:
    """Cut the targets [begin, end) into records up to TARGETS_BYTES, or of a single target."""
    id_bytes = int(ids.offsets[end] - ids.offsets[begin])
    more_bytes = 0 if more is None else int(more[begin:end].sum())
    if id_bytes * _ESCAPED_BYTES + (end - begin) * _TARGET_BYTES + more_bytes <= TARGETS_BYTES:
        return np.array([begin, end], np.int64)
    bounds = _bound_bytes(ids, begin, end)
    ends = np.cumsum(bounds if more is None else bounds + more[begin:end])
    cuts = [0]
    while cuts[-1] < len(ends):
        first = cuts[-1]
        before = int(ends[first - 1]) if first else 0
        fits = int(np.searchsorted(ends, before + TARGETS_BYTES, side="right"))
        cuts.append(max(fits, first + 1))
    return np.array(cuts, np.int64) + begin


def _bound_bytes(ids: BytesColumn, begin: int, end: int) -> Int64s:
    """Compute an upper bound of the JSON size of each target in [begin, end)."""
    plain = np.zeros(256, np.bool_)
    plain[0x20:0x7F] = True
    plain[[ord('"'), ord("\\")]] = False
    cost = np.where(plain, 1, _ESCAPED_BYTES)
    offsets = ids.offsets[begin : end + 1] - ids.offsets[begin]
    total = np.append(0, np.cumsum(cost[ids.data[ids.offsets[begin] : ids.offsets[end]]]))
    found: Int64s = np.diff(total[offsets]) + _TARGET_BYTES
    return found


def _count_pieces(spans: Spans) -> Int64s:
    """Count the records of each base event, as needed by the longer of its bitmaps."""
    longest = np.diff(spans.bits_at, axis=1).max(axis=1)
    found: Int64s = np.maximum(-(-longest // BITMAP_BYTES), 1)
    return found
