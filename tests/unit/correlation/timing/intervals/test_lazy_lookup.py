"""P-LOOKUP, P-LOOKUP-VIOLATED and the counts: carried-over verdicts are always correct."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from correlation.timing.intervals.algorithms import ALGORITHMS, Side
from correlation.timing.intervals.pairs import LOOKUP, PROBE, SATISFACTION_REGION
from correlation.timing.intervals.window import TimingWindow
from tests.unit.correlation.timing.sides import WINDOWS, correlate, decisions, random_side, side

SEVEN_TENTHS = Fraction(7, 10)


def test_satisfaction_region_needs_no_evaluation() -> None:
    base, target = side((0, 20)), side((80, 100), (0, 200), (2000, 2200))
    pairs = correlate(
        "lazy_lookup", base, target, TimingWindow(-500, 500, None, None, SEVEN_TENTHS)
    )
    assert decisions(pairs) == {(0, 0): SATISFACTION_REGION, (0, 1): SATISFACTION_REGION}
    assert pairs.counts == (0, 0, 0)


@pytest.mark.parametrize(
    ("base", "target", "expected"),
    [
        # Left: the later base event reaches the target, so the earlier one does.
        ([(200, 240), (205, 250)], (-330, -190), {(0, 0): LOOKUP, (1, 0): PROBE}),
        # Left, but the earlier event starts later: it is computed.
        ([(215, 240), (205, 250)], (-330, -190), {(0, 0): PROBE, (1, 0): PROBE}),
        # Right: the earlier base event reaches the target, so the later one does.
        ([(200, 240), (205, 250)], (640, 780), {(0, 0): PROBE, (1, 0): LOOKUP}),
        ([(215, 240), (205, 250)], (640, 780), {(0, 0): PROBE, (1, 0): PROBE}),
    ],
)
def test_p_lookup_decides_dominated_base_events(
    base: list[tuple[int, int]], target: tuple[int, int], expected: dict[tuple[int, int], int]
) -> None:
    window = TimingWindow(-500, 500, None, None, Fraction(1, 2))
    pairs = correlate("lazy_lookup", side(*base), side(target), window, (10, 400))
    assert decisions(pairs) == expected
    hits = list(expected.values()).count(LOOKUP)
    assert pairs.counts == (2, hits, 2 - hits)


def test_p_lookup_is_not_read_on_the_right_when_the_lower_end_cuts() -> None:
    """A narrow window: the second base event is later than a satisfied one, and yet violated."""
    window = TimingWindow(-5, 5, None, None, Fraction(1, 20))
    pairs = correlate("lazy_lookup", side((0, 100), (60, 160)), side((0, 100)), window)
    assert decisions(pairs) == {(0, 0): PROBE}
    assert pairs.counts == (2, 0, 2)


@pytest.mark.parametrize(
    ("targets", "computed"),
    [
        # Left: the later target is violated, so is the one that lies before it.
        ([(-420, -376), (-405, -372)], 1),
        # But the later target starts earlier: both are computed.
        ([(-405, -376), (-420, -372)], 2),
        # Right: the earlier target is violated, so is the one that lies after it.
        ([(610, 650), (620, 660)], 1),
        ([(620, 650), (610, 660)], 2),
    ],
)
def test_p_lookup_violated_decides_dominated_targets(
    targets: list[tuple[int, int]], computed: int
) -> None:
    window = TimingWindow(-500, 500, None, None, Fraction(1, 2))
    pairs = correlate("lazy_lookup", side((100, 130)), side(*targets), window, (10, 400))
    assert decisions(pairs) == {}
    assert pairs.counts == (2, 2 - computed, computed)


def test_p_lookup_violated_is_not_kept_on_the_right_when_the_lower_end_cuts() -> None:
    """A narrow window: the second target is later than a violated one, and yet satisfied."""
    window = TimingWindow(0, 5, None, None, Fraction(1, 2))
    base, target = side((0, 10)), side((-3, 6), (6, 7))
    pairs = correlate("lazy_lookup", base, target, window)
    assert decisions(pairs) == {(0, 1): PROBE}
    assert pairs.counts == (2, 0, 2)


@pytest.mark.parametrize("ct", ["0.1", "0.5", "0.7", "1"])
@pytest.mark.parametrize("window", WINDOWS)
def test_p_lookup_equals_deciding_every_pair(
    window: tuple[int | None, int | None, int | None, int | None], ct: str
) -> None:
    rng = np.random.default_rng(20100713)
    base, target = random_side(rng, 80, 1500), random_side(rng, 110, 1500)
    made = TimingWindow(*window, Fraction(ct))
    lazy, simple = (correlate(name, base, target, made) for name in ("lazy_lookup", "simple"))
    assert decisions(lazy).keys() == decisions(simple).keys()
    assert len(lazy.base_index) == len(decisions(lazy))
    assert lazy.counts.probe_region == lazy.counts.lookup_hits + lazy.counts.evaluations
    # Hits that decided against a pair are not among the pairs.
    violated = lazy.counts.lookup_hits - (lazy.decided_by == LOOKUP).sum()
    assert 0 <= violated <= lazy.counts.probe_region - (lazy.decided_by >= PROBE).sum()
    assert lazy.counts.evaluations < simple.counts.evaluations


def test_lookup_decides_most_probed_pairs_when_sorted_and_certain() -> None:
    """LL10 Figure 8: max-sorted input and ct = 1 are where the table pays."""
    latest = np.arange(0, 4000, 4)
    rng = np.random.default_rng(8)
    base = Side(latest - 110, latest)
    target = Side(latest - rng.integers(20, 201, len(latest)), latest)
    pairs = correlate(
        "lazy_lookup", base, target, TimingWindow(-1000, 1000, None, None, Fraction(1))
    )
    assert (pairs.decided_by == LOOKUP).sum() > 10 * (pairs.decided_by == PROBE).sum()


@pytest.mark.parametrize(
    "groups",
    [
        [[0, 3, 0, 1]],  # beyond the base events
        [[0, 2, 0, 2]],  # beyond the target events
        [[-1, 1, 0, 1]],
        [[2, 1, 0, 1]],
    ],
)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_correlate_refuses_groups_outside_the_sides(groups: list[list[int]], name: str) -> None:
    base, target = side((0, 1), (0, 2)), side((0, 1))
    window = TimingWindow(-5, 5, None, None, SEVEN_TENTHS)
    with pytest.raises(ValueError, match="groups"):
        ALGORITHMS[name](base, target, np.array(groups), window, exclude_same=False)


def test_correlate_refuses_columns_of_different_length() -> None:
    broken = Side(np.zeros(2, np.int64), np.zeros(3, np.int64))
    window = TimingWindow(-5, 5, None, None, SEVEN_TENTHS)
    with pytest.raises(ValueError, match="base"):
        correlate("lazy_lookup", broken, side((0, 1)), window)
