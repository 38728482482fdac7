"""Uncertain instants as columns.

Definitions. An *instant* is an exact time, uniform on an interval, or distributed as a histogram
(correlation.resources.histogram). A *shape* is a histogram as offsets from its latest time. Exact
times and intervals have no shape: `earliest` and `latest` determine them.

Cost. O(n + b) for n instants and b buckets.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from correlation.buffers.columns import DictionaryColumn, Int64s
from correlation.limits import LENGTH_LIMIT_US, TIME_LIMIT_US
from correlation.resources.histogram import Bucket, Histogram


class InstantTable(NamedTuple):
    """Instants of n events, and the h shapes to which they refer.

    Attributes
    ----------
    earliest, latest : ndarray of int64, shape (n,)
        Microseconds, within ±2**60; the difference is at most 2**45.
    shape : ndarray of int64, shape (n,)
        Shape of each instant; -1 for exact times and intervals.
    starts : ndarray of int64, shape (h + 1,)
        Shape i has the edges starts[i] to starts[i + 1] - 1.
    edges : ndarray of int64
        Edges of the buckets, ascending to 0 within a shape, microseconds.
    below : ndarray of int64
        P(T < edge) in units of 10**-10.
    """

    earliest: Int64s
    latest: Int64s
    shape: Int64s
    starts: Int64s
    edges: Int64s
    below: Int64s

    def histogram(self, row: int) -> Histogram:
        """Return the distribution of an instant."""
        latest, shape = int(self.latest[row]), int(self.shape[row])
        if shape < 0:
            return Histogram.from_interval(int(self.earliest[row]), latest)
        part = slice(int(self.starts[shape]), int(self.starts[shape + 1]))
        edges = (self.edges[part] + latest).tolist()
        masses = np.diff(self.below[part]).tolist()
        return Histogram(
            tuple(Bucket(*ends, mass) for ends, mass in zip(pairwise(edges), masses, strict=True))
        )


def make_table(
    earliest: ArrayLike, latest: ArrayLike, shape: DictionaryColumn | None = None
) -> InstantTable:
    """Build a table from the columns of events or of a segment.

    Parameters
    ----------
    earliest, latest : array_like of int, shape (n,)
        Intervals of the events, microseconds.
    shape : DictionaryColumn or None
        Column `shape` of `Events`: `Histogram.shape_bytes`, missing if uniform.

    Raises
    ------
    ValueError
        The columns differ in length, a time or a length is out of range, or the length of an event
        differs from that of its shape.
    """
    first, last = as_read_only(earliest), as_read_only(latest)
    if first.shape != last.shape or first.ndim != 1:
        raise ValueError("earliest and latest: must have one dimension and equal lengths")
    lengths = last - first
    if len(first) and not (
        max(abs(int(first.min())), abs(int(last.max()))) <= TIME_LIMIT_US
        and 0 <= int(lengths.min()) <= int(lengths.max()) <= LENGTH_LIMIT_US
    ):
        raise ValueError("earliest and latest: a time or a length is out of range")
    codes = np.full(len(first), -1, np.int64)
    sizes: list[int] = []
    edges, below = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    if shape is not None:
        codes[:] = shape.codes
        for value in shape.values.to_list():
            numbers = np.frombuffer(value, np.int64)
            count = len(numbers) // 2 + 1
            sizes.append(count)
            edges.append(numbers[:count])
            below.append(np.concatenate([[0], np.cumsum(numbers[count:])]))
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    joined = np.concatenate(edges)
    with_histogram = codes >= 0
    first_edges = joined[starts[codes[with_histogram]]]
    if (first_edges != -lengths[with_histogram]).any():
        raise ValueError("shape: the length of an event differs from the length of its shape")
    return InstantTable(
        first, last, *(as_read_only(it) for it in (codes, starts, joined, np.concatenate(below)))
    )


def take_instants(table: InstantTable, rows: Int64s) -> InstantTable:
    """Return the instants of some rows, and the shapes that these use.

    Parameters
    ----------
    table : InstantTable
        The instants.
    rows : int64[k]
        Rows, in any order.
    """
    used, places = np.unique(table.shape[rows], return_inverse=True)
    plain = int(len(used) > 0 and used[0] < 0)
    used = used[plain:]
    sizes = table.starts[used + 1] - table.starts[used]
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    source = np.arange(starts[-1]) + np.repeat(table.starts[used] - starts[:-1], sizes)
    columns = (
        *(table.earliest[rows], table.latest[rows], places.ravel() - plain),
        *(starts, table.edges[source], table.below[source]),
    )
    return InstantTable(*(as_read_only(it) for it in columns))


def join_tables(tables: Sequence[InstantTable]) -> InstantTable:
    """Return the instants of several tables, at least one, in their order."""
    if len(tables) == 1:
        return tables[0]
    shapes = np.cumsum([0, *(len(it.starts) - 1 for it in tables)])
    edges = np.cumsum([0, *(len(it.edges) for it in tables)])
    codes = [
        np.where(it.shape < 0, -1, it.shape + by) for it, by in zip(tables, shapes, strict=False)
    ]
    starts = [it.starts[:-1] + by for it, by in zip(tables, edges, strict=False)]
    columns = (
        np.concatenate([it.earliest for it in tables]),
        np.concatenate([it.latest for it in tables]),
        np.concatenate(codes),
        np.concatenate([*starts, edges[-1:]]),
        np.concatenate([it.edges for it in tables]),
        np.concatenate([it.below for it in tables]),
    )
    return InstantTable(*(as_read_only(it) for it in columns))


def as_read_only(values: ArrayLike) -> NDArray[np.int64]:
    """Return a contiguous read-only view of integers, so that kernels are compiled once."""
    view = np.ascontiguousarray(values, np.int64).view()
    view.flags.writeable = False
    return view
