"""Micro-worlds: all algorithms over all events of a few lengths and times, with many ties.

Times are a few microseconds, windows are narrow or barely wide, and thresholds are probabilities
that occur. A comparison that is off by one microsecond therefore loses or adds a pair. The oracle
decides each distance of two shapes once.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from correlation.resources.histogram import Histogram
from correlation.timing.conditions import ALGORITHM_CHOICES
from correlation.timing.histograms.algorithms import correlate_histograms
from correlation.timing.histograms.windows import WindowBook
from correlation.timing.intervals.algorithms import ALGORITHMS, Pairs, Side
from correlation.timing.intervals.window import TimingWindow
from tests.oracle import histograms as oracle
from tests.oracle.intervals import probability
from tests.support.histograms import side_of_events, told

if TYPE_CHECKING:
    from collections.abc import Callable

Ends = tuple[int | None, int | None, int | None, int | None]
Found = list[tuple[int, int]]


class Event(NamedTuple):
    """An event: its latest time, and which of the world's shapes it has."""

    latest: int
    shape: int


class World(NamedTuple):
    """Groups of base events and of targets, each sorted by latest."""

    base: list[Event]
    target: list[Event]
    groups: NDArray[np.int64]


WIDTHS = (0, 1, 2, 3, 6)
# Number of times of base events.
TIMES = 3
# Times shift together, so the lower end may lie at 0: targets move instead. From empty s-windows to
# windows that are wide for the longest; cuts inside the reach and on its ends.
ENDS: list[Ends] = [
    *((0, width, None, None) for width in WIDTHS),
    (0, 2, 0, 2),
    (0, 4, -1, 3),
    (0, None, None, 3),
    (None, 1, -2, None),
]


def make_world(groups: list[tuple[list[Event], list[Event]]]) -> World:
    """Put groups one behind the other."""
    base: list[Event] = []
    target: list[Event] = []
    ranges = []
    for more_base, more_target in groups:
        ranges.append(
            (len(base), len(base) + len(more_base), len(target), len(target) + len(more_target))
        )
        base += sorted(more_base)
        target += sorted(more_target)
    return World(base, target, np.array(ranges, np.int64))


def every_event(shapes: int, times: range) -> list[Event]:
    """Return an event of every shape at every time."""
    return [Event(latest, shape) for latest in times for shape in range(shapes)]


def crowd(shapes: int, times: int, reach: tuple[int, int]) -> World:
    """Make one group of every base event and every target: the table is as full as it can be."""
    return make_world(
        [(every_event(shapes, range(times)), every_event(shapes, range(reach[0], reach[1] + 1)))]
    )


def couples(shapes: int, times: int, reach: tuple[int, int]) -> World:
    """Make a group of each two base events: what the table says of one, the other one has left."""
    targets = every_event(shapes, range(reach[0], reach[1] + 1))
    bases = every_event(shapes, range(times))
    return make_world(
        [([*two], targets) for two in combinations_with_replacement(bases, 2) if two[0].latest == 0]
    )


class Judge:
    """The probability of every distance of two shapes, computed once over the rationals."""

    def __init__(self, shapes: tuple[Histogram, ...] | tuple[int, ...], ends: Ends) -> None:
        self._shapes = shapes
        self._ends = (*ends, Fraction(1))
        self.probability = cache(self._compute)

    def _compute(self, a: int, b: int, s: int) -> Fraction:
        """P of a base event that ends at 0 and a target that ends at s; 0 beyond the hard cuts."""
        _, _, floor, ceiling, _ = self._ends
        if (floor is not None and s < floor) or (ceiling is not None and s > ceiling):
            return Fraction(0)
        one, other = self._shapes[a], self._shapes[b]
        if isinstance(one, Histogram) and isinstance(other, Histogram):
            return oracle.probability(told(one), told(other.moved(s)), self._ends)
        assert isinstance(one, int)
        assert isinstance(other, int)
        return probability((-one, 0), (s - other, s), self._ends)

    def verdicts(self, world: World) -> dict[Fraction, Found]:
        """Return the satisfied pairs at each threshold that occurs and that can be registered."""
        found = {
            (i, j): self.probability(
                world.base[i].shape,
                world.target[j].shape,
                world.target[j].latest - world.base[i].latest,
            )
            for base_lo, base_hi, target_lo, target_hi in world.groups.tolist()
            for i in range(base_lo, base_hi)
            for j in range(target_lo, target_hi)
        }
        return {
            threshold: [pair for pair, p in found.items() if p >= threshold]
            for threshold in sorted(set(found.values()))
            if threshold and not 10**10 % threshold.denominator
        }


@cache
def judged_world(
    make: Callable[[int, int, tuple[int, int]], World],
    shapes: tuple[Histogram, ...] | tuple[int, ...],
    ends: Ends,
) -> tuple[World, dict[Fraction, Found]]:
    """Return a world and the judge's verdicts on it; the same for all algorithms."""
    longest = max(it.length_us if isinstance(it, Histogram) else it for it in shapes)
    world = make(len(shapes), TIMES, (-longest - 1, WIDTHS[-1] + longest + TIMES))
    return world, Judge(shapes, ends).verdicts(world)


def found_pairs(pairs: Pairs) -> Found:
    """Return the pairs of an algorithm in order."""
    assert pairs.counts.probe_region == pairs.counts.lookup_hits + pairs.counts.evaluations
    return sorted(zip(pairs.base_index.tolist(), pairs.target_index.tolist(), strict=True))


def columns(events: list[Event], lengths: tuple[int, ...]) -> Side:
    """Make a side of intervals."""
    latest = np.array([event.latest for event in events], np.int64)
    return Side(latest - np.array([lengths[event.shape] for event in events], np.int64), latest)


# Neighbours among them: an event may dominate one that is a microsecond shorter. Events that end
# together come in the order of these, the longest first or last.
FEW, MORE = (3, 2, 0), (0, 1, 4, 5)


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize(
    ("make", "lengths", "name"),
    [*((crowd, MORE, name) for name in ALGORITHMS), (couples, FEW, "lazy_lookup")],
)
def test_algorithm_returns_the_judges_pairs_of_a_micro_world(
    make: Callable[[int, int, tuple[int, int]], World],
    lengths: tuple[int, ...],
    ends: Ends,
    name: str,
) -> None:
    world, verdicts = judged_world(make, lengths, ends)
    base, target = columns(world.base, lengths), columns(world.target, lengths)
    for threshold, expected in verdicts.items():
        window = TimingWindow(*ends, threshold)
        for declared in (None, (0, max(lengths) + 2)):
            pairs = ALGORITHMS[name](
                base,
                target,
                world.groups,
                window,
                exclude_same=False,
                target_lengths=declared,
            )
            assert found_pairs(pairs) == expected, (threshold, declared)


SHAPES = (
    Histogram.from_interval(0, 0),
    Histogram.from_interval(-2, 0),
    Histogram.from_buckets([{"lo": -2, "hi": -1, "p": "0.25"}, {"lo": -1, "hi": 0, "p": "0.75"}]),
    # Two modes: narrow windows have gaps.
    Histogram.from_buckets(
        [
            {"lo": -4, "hi": -3, "p": "0.5"},
            {"lo": -3, "hi": -1, "p": "0"},
            {"lo": -1, "hi": 0, "p": "0.5"},
        ]
    ),
)


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize(
    ("make", "name"),
    [*((crowd, name) for name in ALGORITHM_CHOICES), (couples, "lazy_lookup")],
)
def test_algorithm_returns_the_judges_pairs_of_a_histogram_micro_world(
    make: Callable[[int, int, tuple[int, int]], World],
    ends: Ends,
    name: str,
) -> None:
    world, verdicts = judged_world(make, SHAPES, ends)
    base, target = (
        side_of_events([SHAPES[event.shape].moved(event.latest) for event in events])
        for events in (world.base, world.target)
    )
    for threshold, expected in verdicts.items():
        book = WindowBook(TimingWindow(*ends, threshold))
        # S-windows are computed at the first search.
        book.credit = 10**9
        pairs, _ = correlate_histograms(
            name, base, target, world.groups, book, base_is_a=True, exclude_same=False
        )
        assert found_pairs(pairs) == expected, threshold
