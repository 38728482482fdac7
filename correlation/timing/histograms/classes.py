"""Classes: which shapes the events of a segment have.

Definitions. The *class* of an event is its shape: how its time is distributed before its latest
one. All intervals of one length are a class; a histogram is a class for all events that have it
(PTJ Definition 4: a template). Between two classes probability depends on s = max_B - max_A alone.

Cost. O(n log n) for n events, once a segment: segments do not change.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from correlation.resources.histogram import WHOLE_MASS
from correlation.timing.histograms.shapes import Shapes
from correlation.timing.intervals.arguments import as_column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.buffers.columns import BytesColumn, DictionaryColumn
    from correlation.buffers.segment import Segment

_INT64_BYTES = 8
# So few histograms are put in an order of their own, so that equal sets of them look alike.
_FEW = 64


@dataclass(frozen=True, eq=False)
class Classes:
    """The shapes that occur among some events: intervals by length, then histograms.

    Parameters
    ----------
    shapes : Shapes
        Of the c classes.
    intervals : int
        So many of them, the first, are intervals.
    """

    shapes: Shapes
    intervals: int

    def __len__(self) -> int:
        return len(self.shapes.starts) - 1

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Length of each class, in µs."""
        places = self.shapes.starts[:-1] + np.arange(len(self))
        return as_column(-self.shapes.edges[places])


class HistogramSide(NamedTuple):
    """The events of one stream, sorted by latest inside every group.

    Attributes
    ----------
    latest : ndarray of int64, shape (n,)
        Microseconds.
    codes : ndarray of int64, shape (n,)
        The class of each, as a position in `classes`.
    classes : Classes
        Their shapes.
    """

    latest: NDArray[np.int64]
    codes: NDArray[np.int64]
    classes: Classes


_SIDES: WeakKeyDictionary[Segment, HistogramSide] = WeakKeyDictionary()


def side_of(segment: Segment) -> HistogramSide:
    """Give a segment with its classes, found once and remembered as long as the segment lives."""
    side = _SIDES.get(segment)
    if side is None:
        side = make_side(segment.earliest, segment.latest, segment.shape)
        _SIDES[segment] = side
    return side


def make_side(
    earliest: NDArray[np.int64], latest: NDArray[np.int64], shape: DictionaryColumn | None
) -> HistogramSide:
    """Put events into classes.

    Parameters
    ----------
    earliest, latest : ndarray of int64, shape (n,)
        Microseconds.
    shape : DictionaryColumn or None
        As in `Events`.

    Returns
    -------
    HistogramSide
        With the classes that occur; histograms that no event has may be among them.

    Raises
    ------
    ValueError
        If an event is not as long as its shape.
    """
    lengths = latest - earliest
    codes = np.full(len(latest), -1, np.int64)
    histograms = _pack_intervals(np.zeros(0, np.int64))
    if shape is not None:
        values, renumbered = _order_values(shape.values)
        codes = np.append(renumbered, -1)[shape.codes]
        histograms = _pack_values(values)
    plain = codes < 0
    distinct, places = np.unique(lengths[plain], return_inverse=True)
    codes += len(distinct)
    codes[plain] = places
    classes = Classes(_join(_pack_intervals(distinct), histograms), len(distinct))
    if (classes.lengths[codes] != lengths).any():
        raise ValueError("shape: an event is not as long as its shape")
    return HistogramSide(as_column(latest), as_column(codes), classes)


def _order_values(values: BytesColumn) -> tuple[BytesColumn, NDArray[np.int64]]:
    """Sort few values; gives them and the new place of each old one."""
    numbers = np.arange(len(values), dtype=np.int64)
    if len(values) > _FEW:
        return values, numbers
    listed = values.to_list()
    order = np.array(sorted(range(len(listed)), key=listed.__getitem__), np.int64)
    places = np.empty_like(numbers)
    places[order] = numbers
    return values.take(order), places


def _pack_intervals(lengths: NDArray[np.int64]) -> Shapes:
    """Write intervals, or points, as shapes."""
    edges = np.zeros(2 * len(lengths), np.int64)
    edges[::2] = -lengths
    return Shapes(
        np.arange(len(lengths) + 1, dtype=np.int64),
        edges,
        np.full(len(lengths), WHOLE_MASS, np.int64),
    )


def _pack_values(values: BytesColumn) -> Shapes:
    """Write `Histogram.shape_bytes` as shapes: each is n + 1 edges and n masses."""
    first, last = int(values.offsets[0]), int(values.offsets[-1])
    numbers = np.frombuffer(values.data[first:last].tobytes(), "<i8").astype(np.int64, copy=False)
    ends = (values.offsets - first) // _INT64_BYTES
    counts = np.diff(ends)
    buckets = (counts - 1) // 2
    inside = np.arange(len(numbers)) - np.repeat(ends[:-1], counts)
    is_edge = inside <= np.repeat(buckets, counts)
    starts = np.concatenate([[0], np.cumsum(buckets, dtype=np.int64)])
    return Shapes(starts, numbers[is_edge], numbers[~is_edge])


def _join(one: Shapes, other: Shapes) -> Shapes:
    """Put shapes one behind the other."""
    return Shapes(
        as_column(np.concatenate([one.starts, other.starts[1:] + one.starts[-1]])),
        as_column(np.concatenate([one.edges, other.edges])),
        as_column(np.concatenate([one.masses, other.masses])),
    )
