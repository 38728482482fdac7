"""Which targets are written into which table, and in how many records.

Problem. Every target that a base event has a pair with is written once, and little besides; no
record is larger than Kafka takes.

Algorithm. The ranges of targets that the base events reach are sorted by where they begin. One that
begins more than `_GAP` targets behind all before it, or in another group, begins a new *table*: so
what lies between two base events that are far from each other (one of them late) is not written. A
table is cut into records by an upper bound of what each target takes as JSON.

Cost. O(k log k) for k base events; a table that may need several records, O(bytes of its ids).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from correlation.buffers.columns import BytesColumn
    from correlation.timing.factored.search import Int64s, Spans

# A table's own head takes about as much as so many targets.
_GAP = 8
# Of a table record: ids, times and places of late targets.
TARGETS_BYTES = 240 * 1024
# Of a base record: each of its two bitmaps, before base64 makes four bytes out of three.
BITMAP_BYTES = 48 * 1024
# Two numbers of at most 20 digits, the place of a late target, quotes and commas.
_TARGET_BYTES = 56
# Of a byte that JSON may write as \u00XX; no byte of a longer character takes more.
_ESCAPED_BYTES = 6


class Table(NamedTuple):
    """Consecutive targets of one key, and the base events that refer to them.

    Attributes
    ----------
    cuts : int64[p + 1]
        Record i holds the targets cuts[i] to cuts[i + 1].
    rows : int64[r]
        The base events, as rows of `Spans`, in order.
    pieces : int64[r]
        Number of records of each of them.
    """

    cuts: Int64s
    rows: Int64s
    pieces: Int64s


def lay_out(spans: Spans, ids: BytesColumn) -> Iterator[Table]:
    """Give the tables, by group.

    Parameters
    ----------
    spans : Spans
        The pairs.
    ids : BytesColumn
        Ids of the targets.
    """
    if not len(spans.base):
        return
    reach = spans.reach()
    order = np.lexsort((reach[:, 0], spans.group))
    begin, group = reach[order, 0], spans.group[order]
    # Ranges of targets of two groups do not overlap, but may lie in any order.
    end = _running_ends(reach[order, 1], group)
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = (group[1:] != group[:-1]) | (begin[1:] > end[:-1] + _GAP)
    starts = np.append(np.flatnonzero(is_new), len(order))
    pieces = _count_pieces(spans)
    for first, behind in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        rows = np.sort(order[first:behind])
        cuts = _cut(ids, int(begin[first]), int(end[behind - 1]))
        yield Table(cuts, rows, pieces[rows])


def _running_ends(ends: Int64s, group: Int64s) -> Int64s:
    """Greatest end up to each row, within its group; rows of a group stand together."""
    number = np.cumsum(np.append(False, group[1:] != group[:-1]))
    # One behind the other, so that no group sees the ends of those before it.
    step = int(ends.max()) + 1
    found: Int64s = np.maximum.accumulate(ends + number * step) - number * step
    return found


def _cut(ids: BytesColumn, begin: int, end: int) -> Int64s:
    """Cut the targets [begin, end) so that none but a single one exceeds TARGETS_BYTES."""
    id_bytes = int(ids.offsets[end] - ids.offsets[begin])
    if id_bytes * _ESCAPED_BYTES + (end - begin) * _TARGET_BYTES <= TARGETS_BYTES:
        return np.array([begin, end], np.int64)
    ends = np.cumsum(_bound_bytes(ids, begin, end))
    cuts = [0]
    while cuts[-1] < len(ends):
        first = cuts[-1]
        before = int(ends[first - 1]) if first else 0
        fits = int(np.searchsorted(ends, before + TARGETS_BYTES, side="right"))
        cuts.append(max(fits, first + 1))
    return np.array(cuts, np.int64) + begin


def _bound_bytes(ids: BytesColumn, begin: int, end: int) -> Int64s:
    """Upper bound of what each of the targets [begin, end) takes as JSON."""
    plain = np.zeros(256, np.bool_)
    plain[0x20:0x7F] = True
    plain[[ord('"'), ord("\\")]] = False
    cost = np.where(plain, 1, _ESCAPED_BYTES)
    offsets = ids.offsets[begin : end + 1] - ids.offsets[begin]
    total = np.append(0, np.cumsum(cost[ids.data[ids.offsets[begin] : ids.offsets[end]]]))
    found: Int64s = np.diff(total[offsets]) + _TARGET_BYTES
    return found


def _count_pieces(spans: Spans) -> Int64s:
    """Count the records of each base event: as many as the longer of its bitmaps needs."""
    longest = np.diff(spans.bits_at, axis=1).max(axis=1)
    found: Int64s = np.maximum(-(-longest // BITMAP_BYTES), 1)
    return found
