"""Every algorithm on many pairs, against the oracle: over a million in the profile deep.

The pairs are those of random blocks on a coarse grid, with thresholds that some pairs meet exactly:
500 pairs a block, 12,500 in the profile fast, 1,000,000 with HYPOTHESIS_PROFILE=deep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import settings

from correlation.resources.histogram import Histogram
from correlation.timing.conditions import ALGORITHM_CHOICES
from correlation.timing.intervals.algorithms import ALGORITHMS
from correlation.timing.intervals.window import TimingWindow
from tests.conformance.test_algorithms import Event, columns
from tests.conformance.test_shapes import WAYS, Case, run
from tests.oracle import histograms, intervals
from tests.support.histograms import draw_events, draw_histogram, told
from tests.unit.correlation.timing.strategies import judged

BASES, TARGETS = 25, 20
SCALES = (1, 10, 1_000, 2**20, 2**40)
# Number of blocks between two computations of all s-windows, which are slow.
WINDOWS_EVERY = 10
WHOLE = 10**10
MIN_TIES = 0.05

pytestmark = pytest.mark.timeout(3600)  # a million pairs of rationals


def _count_blocks() -> int:
    profile = settings.default
    assert profile is not None
    return int(profile.max_examples)


def _blocks() -> Iterator[tuple[int, np.random.Generator, int]]:
    """Yield number, generator and scale of each block of the run."""
    for number in range(_count_blocks()):
        rng = np.random.default_rng([2010, number])
        yield number, rng, SCALES[number % len(SCALES)]


def _draw_window(rng: np.random.Generator, scale: int, threshold: Fraction) -> TimingWindow:
    """Draw a window of any kind, its ends on the grid."""
    lower, upper = sorted(int(k) * scale for k in rng.integers(-20, 21, 2))
    floor, ceiling = sorted(int(k) * scale for k in rng.integers(-25, 26, 2))
    kinds: list[tuple[int | None, int | None, int | None, int | None]] = [
        (lower, upper, None, None),
        (lower, upper, floor, ceiling),
        (None, upper, floor, None),
        (lower, None, None, ceiling),
    ]
    return TimingWindow(*kinds[int(rng.integers(4))], threshold)


def _choose_threshold(rng: np.random.Generator, probabilities: Counter[Fraction]) -> Fraction:
    """Return one of the commonest decimal probabilities, else any decimal."""
    common = [
        it for it, _ in probabilities.most_common() if 0 < it <= 1 and not WHOLE % it.denominator
    ]
    if common and rng.random() < 0.9:
        return common[int(rng.integers(min(len(common), 2)))]
    return Fraction(int(rng.integers(1, WHOLE + 1)), WHOLE)


def test_algorithms_find_the_judges_pairs_among_many_of_intervals() -> None:
    seen = tied = 0
    for _, rng, scale in _blocks():
        base, target = (
            sorted(
                (
                    (latest - length, latest)
                    for latest, length in zip(
                        (rng.integers(-13, 14, size) * scale).tolist(),
                        (rng.integers(0, 4, size) * 4 * scale).tolist(),
                        strict=True,
                    )
                ),
                key=lambda event: event[1],
            )
            for size in (BASES, TARGETS)
        )
        draft = _draw_window(rng, scale, Fraction(1))
        found = {
            (i, j): intervals.probability(a, b, judged(draft))
            for i, a in enumerate(base)
            for j, b in enumerate(target)
        }
        threshold = _choose_threshold(rng, Counter(found.values()))
        window = TimingWindow(
            draft.lower_us, draft.upper_us, draft.floor_us, draft.ceiling_us, threshold
        )
        expected = intervals.satisfied_pairs(
            base, target, [(0, BASES, 0, TARGETS)], judged(window), exclude_same=False
        )
        _check_intervals(base, target, window, expected)
        seen += len(found)
        tied += sum(it == threshold for it in found.values())
    assert seen == BASES * TARGETS * _count_blocks()
    assert tied >= MIN_TIES * seen


def _check_intervals(
    base: list[Event], target: list[Event], window: TimingWindow, expected: set[tuple[int, int]]
) -> None:
    groups = np.array([[0, BASES, 0, TARGETS]], np.int64)
    for name, correlate in ALGORITHMS.items():
        pairs = correlate(columns(base), columns(target), groups, window, exclude_same=False)
        found = zip(pairs.base_index.tolist(), pairs.target_index.tolist(), strict=True)
        assert sorted(found) == sorted(expected), name


def test_algorithms_find_the_judges_pairs_among_many_of_histograms() -> None:
    seen = tied = 0
    for number, rng, scale in _blocks():
        parts = int(rng.choice([4, 10, 20]))
        shapes = [draw_histogram(rng, range(0, 13, 4), parts, scale) for _ in range(4)]
        base = draw_events(rng, shapes, BASES, 13, scale)
        target = draw_events(rng, shapes, TARGETS, 13, scale)
        draft = _draw_window(rng, scale, Fraction(1))
        found = _judge_histograms(base, target, draft)
        threshold = _choose_threshold(rng, Counter(found.values()))
        window = TimingWindow(
            draft.lower_us, draft.upper_us, draft.floor_us, draft.ceiling_us, threshold
        )
        expected = sorted(
            (i, j)
            for (i, j), probability in found.items()
            if probability >= threshold
            and _is_inside(target[j].latest_us - base[i].latest_us, window)
        )
        groups = np.array([[0, BASES, 0, TARGETS]], np.int64)
        case = Case(base, target, groups, window)
        for way in WAYS[1:] if number % WINDOWS_EVERY else WAYS:
            for name in ALGORITHM_CHOICES:
                pairs, _ = run(name, case, way)
                columns_of = (pairs.base_index.tolist(), pairs.target_index.tolist())
                assert sorted(zip(*columns_of, strict=True)) == expected, (name, way)
        seen += len(found)
        tied += sum(it == threshold for it in found.values())
    assert seen == BASES * TARGETS * _count_blocks()
    assert tied >= MIN_TIES * seen


def _judge_histograms(
    base: list[Histogram], target: list[Histogram], window: TimingWindow
) -> dict[tuple[int, int], Fraction]:
    judges = [told(it) for it in base], [told(it) for it in target]
    return {
        (i, j): histograms.probability(a, b, judged(window))
        for i, a in enumerate(judges[0])
        for j, b in enumerate(judges[1])
    }


def _is_inside(s: int, window: TimingWindow) -> bool:
    """Apply the hard cuts."""
    return (window.floor_us is None or s >= window.floor_us) and (
        window.ceiling_us is None or s <= window.ceiling_us
    )
