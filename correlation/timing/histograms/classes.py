"""Classes: the shapes of the events of a segment.

Definitions. The *class* of an event is its shape: the distribution of its time relative to its
latest time. All intervals of one length are a class; all events with the same histogram are a class
(PTJ Definition 4: a template). Between two classes the probability depends on s = max_B - max_A
alone.

Cost. O(n log n) for n events, once per segment: segments do not change.
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
# Up to this number histograms are sorted, so that equal sets of histograms have equal classes.
_FEW = 64


@dataclass(frozen=True, eq=False)
class Classes:
    """The shapes that occur among some events: intervals by length, then histograms.

    Parameters
    ----------
    shapes : Shapes
        Shapes of the c classes.
    intervals : int
        Number of classes that are intervals; they come first.
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
        Class of each event, as a position in `classes`.
    classes : Classes
        Shapes of the classes.
    """

    latest: NDArray[np.int64]
    codes: NDArray[np.int64]
    classes: Classes


_SIDES: WeakKeyDictionary[Segment, HistogramSide] = WeakKeyDictionary()


def side_of(segment: Segment) -> HistogramSide:
    """Return a segment with its classes, computed once in the lifetime of the segment."""
    side = _SIDES.get(segment)
    if side is None:
        side = make_side(segment.earliest, segment.latest, segment.shape)
        _SIDES[segment] = side
    return side


def make_side(
    earliest: NDArray[np.int64], latest: NDArray[np.int64], shape: DictionaryColumn | None
) -> HistogramSide:
    """Classify events by shape.

    Parameters
    ----------
    earliest, latest : ndarray of int64, shape (n,)
        Microseconds.
    shape : DictionaryColumn or None
        Column `shape` of `Events`.

    Returns
    -------
    HistogramSide
        The events with their classes; unused histograms may be among the classes.

    Raises
    ------
    ValueError
        The length of an event differs from that of its shape.
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
        raise ValueError("shape: the length of an event differs from the length of its shape")
    return HistogramSide(as_column(latest), as_column(codes), classes)


def _order_values(values: BytesColumn) -> tuple[BytesColumn, NDArray[np.int64]]:
    """Sort up to `_FEW` values; return the values and the new place of each old one."""
    numbers = np.arange(len(values), dtype=np.int64)
    if len(values) > _FEW:
        return values, numbers
    listed = values.to_list()
    order = np.array(sorted(range(len(listed)), key=listed.__getitem__), np.int64)
    places = np.empty_like(numbers)
    places[order] = numbers
    return values.take(order), places


def _pack_intervals(lengths: NDArray[np.int64]) -> Shapes:
    """Build shapes from lengths of intervals or points."""
    edges = np.zeros(2 * len(lengths), np.int64)
    edges[::2] = -lengths
    return Shapes(
        np.arange(len(lengths) + 1, dtype=np.int64),
        edges,
        np.full(len(lengths), WHOLE_MASS, np.int64),
    )


def _pack_values(values: BytesColumn) -> Shapes:
    """Build shapes from `Histogram.shape_bytes`, each with n + 1 edges and n masses."""
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
    """Concatenate shapes."""
    return Shapes(
        as_column(np.concatenate([one.starts, other.starts[1:] + one.starts[-1]])),
        as_column(np.concatenate([one.edges, other.edges])),
        as_column(np.concatenate([one.masses, other.masses])),
    )
