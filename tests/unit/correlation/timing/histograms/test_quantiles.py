"""P-QUANTILES: verdicts by quantiles equal the oracle's, and they decide most pairs."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.columns import DictionaryColumn
from correlation.resources.histogram import WHOLE_MASS, Bucket, Histogram
from correlation.timing.histograms.classes import make_side
from correlation.timing.histograms.lazy import correlate_lazy
from correlation.timing.histograms.quantiles import (
    KNOWN,
    _decide_by_quantiles_kernel,
    _know_quantiles_kernel,
    make_quantiles,
)
from correlation.timing.histograms.search import make_search
from correlation.timing.histograms.shapes import pack_shapes
from correlation.timing.intervals.search import DOUBTFUL, SATISFIED, VIOLATED
from correlation.timing.intervals.window import TimingWindow
from tests.oracle import histograms as oracle
from tests.unit.correlation.timing.histogram_strategies import (
    cut_pairs,
    histograms,
    large_histograms,
    told,
)
from tests.unit.correlation.timing.strategies import judged, thresholds, windows

if TYPE_CHECKING:
    from numpy.typing import NDArray

SECOND = 1_000_000


def find(shape: Histogram, window: TimingWindow) -> NDArray[np.int64]:
    quantiles = make_quantiles(1, 0, window.scalars())
    _know_quantiles_kernel(quantiles.bases, pack_shapes([shape]), 0, quantiles.lost, quantiles.kept)
    return quantiles.bases


def decide(a: Histogram, b: Histogram, s: int, window: TimingWindow) -> int:
    found = find(a, window), find(b, window)
    return int(_decide_by_quantiles_kernel(found[0], 0, found[1], 0, s, window.scalars()))


def judge(a: Histogram, b: Histogram, s: int, window: TimingWindow) -> int:
    """By the window alone: floor and ceiling play no part."""
    moved = oracle.moved(told(b.shape()), s)
    p = oracle.probability(told(a.shape()), moved, judged(window))
    return SATISFIED if p >= window.threshold else VIOLATED


@given(a=histograms(), b=histograms(), window=windows(limit=25))
def test_p_quantiles_decide_as_the_judge(a: Histogram, b: Histogram, window: TimingWindow) -> None:
    for s in range(-40, 41):
        verdict = decide(a, b, s, window)
        assert verdict in {DOUBTFUL, judge(a, b, s, window)}, s


@given(cut_pairs())
def test_p_quantiles_decide_as_the_judge_whatever_the_length(
    case: tuple[Histogram, Histogram, int, TimingWindow],
) -> None:
    a, b, s, window = case
    assert decide(a, b, s, window) in {DOUBTFUL, judge(a, b, s, window)}


@given(shape=st.one_of(histograms(), large_histograms), threshold=thresholds)
def test_p_quantiles_leave_the_mass_they_say(shape: Histogram, threshold: Fraction) -> None:
    window = TimingWindow(-1, 1, None, None, threshold)
    (known, earliest, *found) = find(shape, window)[0].tolist()
    assert (known, earliest) == (1, -shape.length_us)
    lost_below, lost_above, kept_below, kept_above = (
        mass_up_to(shape.shape(), x) if k % 2 == 0 else 1 - mass_before(shape.shape(), x)
        for k, x in enumerate(found)
    )
    assert min(lost_below, lost_above) ** 2 > 1 - threshold
    assert min(kept_below, kept_above) ** 2 >= threshold


def mass_up_to(shape: Histogram, x: int) -> Fraction:
    """P(T ≤ x)."""
    if shape.length_us == 0:
        return Fraction(x >= shape.latest_us)
    return mass_before(shape, x)


def mass_before(shape: Histogram, x: int) -> Fraction:
    """P(T < x)."""
    if shape.length_us == 0:
        return Fraction(x > shape.latest_us)
    return sum(
        (
            Fraction(it.mass, WHOLE_MASS)
            * Fraction(min(max(x - it.lo_us, 0), it.hi_us - it.lo_us), it.hi_us - it.lo_us)
            for it in shape.buckets
        ),
        Fraction(0),
    )


def draw_shape(rng: random.Random) -> Histogram:
    """Four buckets of any lengths and masses, together half a second to a second."""
    length = rng.randint(SECOND // 2, SECOND)
    edges = [-length, *sorted(-cut for cut in rng.sample(range(1, length), 3)), 0]
    parts = sorted(rng.sample(range(1, WHOLE_MASS), 3))
    masses = np.diff([0, *parts, WHOLE_MASS]).tolist()
    return Histogram(tuple(map(Bucket, edges[:-1], edges[1:], masses)))


@pytest.mark.parametrize(
    ("threshold", "lost", "kept"),
    [
        ("1", 1, WHOLE_MASS),
        ("0.0000000001", WHOLE_MASS, 100_000),
        # 0.6 and 0.8 are square roots: one unit more is lost than the first.
        ("0.64", 6_000_000_001, 8_000_000_000),
    ],
)
def test_masses_are_exact(threshold: str, lost: int, kept: int) -> None:
    window = TimingWindow(-1, 1, None, None, Fraction(threshold))
    assert make_quantiles(0, 0, window.scalars())[:2] == (lost, kept)


@pytest.mark.parametrize("threshold", ["0.3", "0.7", "0.95"])
def test_most_pairs_are_decided(threshold: str) -> None:
    rng = random.Random(2006)  # noqa: S311 - drawn again in each run
    window = TimingWindow(-SECOND, SECOND, None, None, Fraction(threshold))
    decided = []
    for _ in range(2_000):
        a, b = draw_shape(rng), draw_shape(rng)
        # Where supports decide nothing.
        s = rng.choice([-1, 1]) * SECOND + rng.randint(-a.length_us, b.length_us)
        decided.append(decide(a, b, s, window) != DOUBTFUL)
    assert sum(decided) > 0.6 * len(decided)


def test_a_search_asks_only_for_the_shapes_between_certain_and_too_far() -> None:
    """A block of one event does not pay for all that waits."""
    rng = random.Random(2006)  # noqa: S311 - drawn again in each run
    shapes = [draw_shape(rng) for _ in range(50)]
    latest = np.arange(50) * SECOND
    targets = make_side(
        latest - np.array([it.length_us for it in shapes], np.int64),
        latest,
        DictionaryColumn.from_list([it.shape_bytes for it in shapes]),
    )
    bases = make_side(latest[20:21] - SECOND, latest[20:21], None)
    window = TimingWindow(-3 * SECOND, 3 * SECOND, None, None, Fraction(1, 2))
    groups = np.array([[0, 1, 0, 50]], np.int64)
    search = make_search(bases, targets, groups, window, None, exclude_same=False)
    found = correlate_lazy(search)
    assert found.counts.probe_region == 3
    known = search.quantiles.targets[:, KNOWN].nonzero()[0]
    asked = np.flatnonzero(np.isin(targets.codes, known))
    assert asked.tolist() == [16, 17, 23]
