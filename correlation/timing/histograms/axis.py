"""The shapes with a row, or a column, in a table of s-windows.

Definitions. *Declared* shapes are known when the condition is registered: templates, and the
interval of a stream whose events are all equally long. *Others* are all further shapes among the
events: intervals of other lengths, and histograms of single events. If a segment has only a few
others, they are expected to recur and get one of a few places. Others never take the place of a
declared shape.

Cost. O(c) for c classes of a segment, once; O(1) for many others without declared shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from correlation.timing.histograms.shapes import Shapes, pack_shapes
from correlation.timing.histograms.template_ranges import NOWHERE
from correlation.timing.intervals.arguments import as_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from correlation.resources.histogram import Histogram
    from correlation.timing.histograms.classes import Classes

# Max others in a segment that get places, and number of places for others.
FEW_OTHERS = 32
OTHER_PLACES = 64


class Axis:
    """The shapes of one stream with a place in a table.

    Parameters
    ----------
    declared : sequence of Histogram
        The declared histograms; equal shapes share a place.
    """

    def __init__(self, declared: Sequence[Histogram]) -> None:
        packed = pack_shapes(list({histogram.shape(): None for histogram in declared}))
        self.declared = len(packed.starts) - 1
        self._declared_shapes = packed
        self._declared_lengths = np.array(
            [length for i in range(self.declared) if (length := _interval_length(packed, i)) >= 0],
            np.int64,
        )
        self._forget()

    @property
    def room(self) -> int:
        """Number of places, taken and free."""
        return self.declared + OTHER_PLACES

    def declared_keys(self) -> list[bytes]:
        """Return the keys of the declared shapes, by place."""
        return [self._declared_shapes.key(i) for i in range(self.declared)]

    def find(self, classes: Classes) -> NDArray[np.int64] | None:
        """Find the places of classes; assign places to a few others.

        Parameters
        ----------
        classes : Classes
            Classes of a segment.

        Returns
        -------
        ndarray of int64, shape (c,), or None
            Place of each class, or NOWHERE; None if too few places are left for others: see
            `forget_others`.
        """
        found = self._found.get(classes)
        if found is None:
            found = self._find(classes)
            if found is not None:
                self._found[classes] = found
        return found

    def forget_others(self) -> None:
        """Free the places of the others."""
        self._forget()

    def _forget(self) -> None:
        self.shapes = self._declared_shapes
        self._places = {key: place for place, key in enumerate(self.declared_keys())}
        self._found: WeakKeyDictionary[Classes, NDArray[np.int64]] = WeakKeyDictionary()

    def _find(self, classes: Classes) -> NDArray[np.int64] | None:
        places = np.full(len(classes), NOWHERE, np.int64)
        known = self._declared_among(classes)
        others = len(classes) - len(known)
        for i, place in known.items():
            places[i] = place
        if 0 < others <= FEW_OTHERS:
            keys = {i: classes.shapes.key(i) for i in range(len(classes)) if i not in known}
            fresh = [i for i, key in keys.items() if key not in self._places]
            if len(self._places) + len(fresh) > self.room:
                return None
            self._append(classes.shapes, fresh)
            for i, key in keys.items():
                places[i] = self._places[key]
        return as_column(places)

    def _declared_among(self, classes: Classes) -> dict[int, int]:
        """Find the places of the declared shapes among classes."""
        if not self.declared:
            return {}
        lengths = classes.lengths[: classes.intervals]
        listed = [
            *np.flatnonzero(np.isin(lengths, self._declared_lengths)).tolist(),
            *range(classes.intervals, len(classes)),
        ]
        known = {}
        for i in listed:
            place = self._places.get(classes.shapes.key(i), self.declared)
            if place < self.declared:
                known[i] = place
        return known

    def _append(self, shapes: Shapes, listed: Sequence[int]) -> None:
        """Assign the next places to shapes."""
        parts = [shapes.at(i) for i in listed]
        mine = self.shapes
        sizes = [len(masses) for _, masses in parts]
        ends = mine.starts[-1] + np.cumsum(sizes, dtype=np.int64)
        self.shapes = Shapes(
            as_column(np.concatenate([mine.starts, ends])),
            as_column(np.concatenate([mine.edges, *(edges for edges, _ in parts)])),
            as_column(np.concatenate([mine.masses, *(masses for _, masses in parts)])),
        )
        for i in listed:
            self._places[shapes.key(i)] = len(self._places)


def _interval_length(shapes: Shapes, i: int) -> int:
    """Return the length of a shape that is an interval, -1 for any other shape."""
    edges, masses = shapes.at(i)
    return int(edges[-1] - edges[0]) if len(masses) == 1 else -1
