"""Savings of sorting for the simple algorithm, and its limits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from correlation.timing.intervals.algorithms import Side
from correlation.timing.intervals.pairs import PROBE
from correlation.timing.intervals.satisfaction import bounds
from correlation.timing.intervals.window import TimingWindow
from tests.unit.correlation.timing.sides import WINDOWS, correlate, decisions, random_side

LENGTHS = (20, 200)


@pytest.mark.parametrize("ct", ["0.1", "0.7", "1"])
@pytest.mark.parametrize("window", WINDOWS)
def test_ssort_computes_what_is_near_enough_for_any_length(
    window: tuple[int | None, int | None, int | None, int | None], ct: str
) -> None:
    rng = np.random.default_rng(1983)
    base, target = random_side(rng, 60, 1500), random_side(rng, 90, 1500)
    # The extreme lengths occur: they bound what is near enough.
    base.earliest[:2] = base.latest[:2] - LENGTHS
    made = TimingWindow(*window, Fraction(ct))
    least, greatest = bounds(made, *LENGTHS, *LENGTHS)
    pairs = correlate("ssort", base, target, made, LENGTHS)
    s = target.latest - base.latest[:, np.newaxis]
    near = int(((least <= s) & (s <= greatest)).sum())
    assert pairs.counts == (near, 0, near)
    assert (pairs.decided_by == PROBE).all()
    simple = correlate("simple", base, target, made)
    assert decisions(pairs) == decisions(simple)
    assert near < simple.counts.evaluations == 60 * 90


def test_ssort_stops_at_the_first_target_that_is_too_late() -> None:
    rng = np.random.default_rng(7)
    base, near = random_side(rng, 30, 300), random_side(rng, 30, 300)
    before, after = np.arange(-99_000, -90_000, 10), np.arange(90_000, 99_000, 10)
    far = Side(
        np.concatenate([before - 50, near.earliest, after - 50]),
        np.concatenate([before, near.latest, after]),
    )
    window = TimingWindow(-500, 500, None, None, Fraction(7, 10))
    counts = correlate("ssort", base, far, window, LENGTHS).counts
    assert counts == correlate("ssort", base, near, window, LENGTHS).counts
