"""The most probable target of each base event with a histogram.

Problem. Of the targets that satisfy the condition with a base event, find the target of the max
satisfaction probability, exactly. Ties are resolved as in intervals.best: the better target is the
one whose expected time is nearer to that of the base event; then the earlier target, by latest,
earliest and id; then a target that is not late.

Algorithm. The satisfied pairs are reduced step by step, for all base events at once:
1. Keep the pairs of probability 1 by their supports (docs/proofs.md, P-SUPPORT), if any.
2. Otherwise keep the pairs whose float64 probability is at most twice its error below the max, and
   of these the pairs with the max probability over the rationals.
3. Keep the pairs whose float64 distance of expected times is at most twice its error above the min.
4. Compare the remaining pairs, usually a single one, over the integers, and by id.
(P-HISTOGRAM-BEST.)

Kept apart from `intervals.best`: that kernel compares losses of intervals in one loop over the
targets, and a loss does not exist for other distributions, whose pairs are compared in steps.

Cost. O(p log p) for p satisfied pairs; integers only if float64 cannot decide.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from correlation.resources.histogram import WHOLE_MASS
from correlation.timing.histograms.classes import side_of
from correlation.timing.histograms.exact import exact_probability
from correlation.timing.histograms.filter import shape_probability

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.buffers.columns import Int64s
    from correlation.buffers.segment import Segment
    from correlation.timing.histograms.classes import Classes
    from correlation.timing.intervals.window import TimingWindow

# Twice the error of a computed probability (P-HISTOGRAM).
_PROBABILITY_ERROR = 2.0**-43
# Twice the error of a computed distance, relative to the sum of its times.
_DISTANCE_ERROR = 2.0**-44


def choose_best(
    base: Segment, target: Segment, base_rows: Int64s, target_rows: Int64s, window: TimingWindow
) -> tuple[Int64s, Int64s]:
    """Choose the best pair of each base event.

    Parameters
    ----------
    base, target : Segment
        The events; base events are of A.
    base_rows, target_rows : int64[p]
        The satisfied pairs.
    window : TimingWindow
        The condition.

    Returns
    -------
    base_rows, target_rows : int64[k]
        One pair of each base event with pairs, ascending.
    """
    order = np.lexsort((target_rows, base_rows))
    pairs = _Pairs(base, target, base_rows[order], target_rows[order], window)
    for step in (pairs.keep_probable, pairs.keep_near, pairs.keep_first):
        step()
    return pairs.base_rows, pairs.target_rows


class _Pairs:
    """The remaining candidates for the best pairs, in order of the base events."""

    def __init__(
        self,
        base: Segment,
        target: Segment,
        base_rows: Int64s,
        target_rows: Int64s,
        window: TimingWindow,
    ) -> None:
        self.base, self.target = base, target
        self.base_side, self.target_side = side_of(base), side_of(target)
        self.base_rows, self.target_rows = base_rows, target_rows
        self.window = window

    def keep_probable(self) -> None:
        """Keep the most probable pairs of each base event."""
        scalars, s = self.window.scalars(), self._s()
        base, target = self._codes()
        longer = s + self.base_side.classes.lengths[base]
        shorter = s - self.target_side.classes.lengths[target]
        sure = (longer <= scalars.upper) & (shorter >= scalars.lower)
        values = np.where(sure, 2.0, self._probabilities())
        kept = self._keep_max(values, np.where(sure, 0.0, _PROBABILITY_ERROR))
        # The remaining pairs of a base event either all have probability 1, or all do not.
        self._keep_exactly_max(self._contested() & ~sure[kept])

    def _keep_exactly_max(self, contested: NDArray[np.bool_]) -> None:
        base, target = self._codes()
        places = np.flatnonzero(contested)
        cases = np.stack([base[places], target[places], self._s()[places]])
        # Many ties are equal cases: each case is computed once.
        distinct, back = np.unique(cases, axis=1, return_inverse=True)
        exact = [self._exact_probability(*case) for case in distinct.T.tolist()]
        values = [exact[k] for k in back.ravel().tolist()]
        rows = self.base_rows[places].tolist()
        max_values: dict[int, Fraction] = {}
        for row, value in zip(rows, values, strict=True):
            max_values[row] = max(max_values.get(row, value), value)
        kept = np.ones(len(self.base_rows), np.bool_)
        kept[places] = [value == max_values[row] for row, value in zip(rows, values, strict=True)]
        self._select(kept)

    def keep_near(self) -> None:
        """Keep the pairs with the min distance of expected times, within the float64 error."""
        base, target = self._codes()
        s = self._s()
        means = [_means(side.classes) for side in (self.base_side, self.target_side)]
        distance = np.abs(s + means[1][target] - means[0][base])
        lengths = self.base_side.classes.lengths[base] + self.target_side.classes.lengths[target]
        self._keep_max(-distance, _DISTANCE_ERROR * (np.abs(s) + lengths))

    def keep_first(self) -> None:
        """Keep one pair of each base event: the nearest over the integers, then the earlier."""
        kept = np.ones(len(self.base_rows), np.bool_)
        contested = np.flatnonzero(self._contested())
        kept[contested] = False
        best: dict[int, tuple[tuple[object, ...], int]] = {}
        for k in contested.tolist():
            rank = self._rank(k)
            leader = best.get(int(self.base_rows[k]))
            if leader is None or rank < leader[0]:
                best[int(self.base_rows[k])] = rank, k
        kept[[k for _, k in best.values()]] = True
        self._select(kept)

    def _rank(self, k: int) -> tuple[object, ...]:
        base, target = self._codes()
        moved = 2 * WHOLE_MASS * int(self._s()[k])
        moments = (
            _exact_moment(self.target_side.classes, int(target[k])),
            _exact_moment(self.base_side.classes, int(base[k])),
        )
        row = int(self.target_rows[k])
        return (
            abs(moved + moments[0] - moments[1]),
            int(self.target.latest[row]),
            int(self.target.earliest[row]),
            self.target.id[row],
            bool(self.target.late[row]),
        )

    def _s(self) -> Int64s:
        return self.target.latest[self.target_rows] - self.base.latest[self.base_rows]

    def _codes(self) -> tuple[Int64s, Int64s]:
        return self.base_side.codes[self.base_rows], self.target_side.codes[self.target_rows]

    def _probabilities(self) -> NDArray[np.float64]:
        base, target = self._codes()
        shapes = self.base_side.classes.shapes, self.target_side.classes.shapes
        return shape_probability(shapes[0], base, shapes[1], target, self._s(), self.window)

    def _exact_probability(self, base: int, target: int, s: int) -> Fraction:
        a = self.base_side.classes.shapes.histogram(base)
        return exact_probability(
            a, self.target_side.classes.shapes.histogram(target).moved(s), self.window
        )

    def _starts(self) -> Int64s:
        """Return the first pair of each base event."""
        return np.flatnonzero(np.diff(self.base_rows, prepend=-1))

    def _keep_max(
        self, values: NDArray[np.float64], errors: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Keep the pairs that may have the max value of a base event, given the max `errors`."""
        starts = self._starts()
        if not len(starts):
            return np.zeros(0, np.bool_)
        sizes = np.diff(starts, append=len(values))
        max_lower = np.repeat(np.maximum.reduceat(values - errors, starts), sizes)
        kept: NDArray[np.bool_] = values + errors >= max_lower
        self._select(kept)
        return kept

    def _contested(self) -> NDArray[np.bool_]:
        """Mark the pairs whose base event has further pairs."""
        sizes = np.diff(self._starts(), append=len(self.base_rows))
        return np.repeat(sizes, sizes) > 1

    def _select(self, kept: NDArray[np.bool_]) -> None:
        self.base_rows, self.target_rows = self.base_rows[kept], self.target_rows[kept]


def _means(classes: Classes) -> NDArray[np.float64]:
    """Compute the expected time of each class as offset from its latest time, in µs."""
    starts, edges, masses = classes.shapes
    owners = np.repeat(np.arange(len(classes)), np.diff(starts))
    places = np.arange(len(masses)) + owners
    middles = (edges[places] + edges[places + 1]).astype(np.float64)
    means: NDArray[np.float64] = np.add.reduceat(masses * middles, starts[:-1]) / (2.0 * WHOLE_MASS)
    return means


def _exact_moment(classes: Classes, i: int) -> int:
    """Compute twice the expected offset of a class from its latest time, in 10**-10 µs."""
    return sum(mass * (lo + hi) for lo, hi, mass in classes.shapes.histogram(i).buckets)
