"""Conformance suite over all correlation algorithms: each returns exactly the oracle's pairs."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.timing.intervals.algorithms import ALGORITHMS, Side
from correlation.timing.intervals.pairs import PROBE
from correlation.timing.intervals.window import TimingWindow
from tests.oracle.intervals import probability, satisfied_pairs
from tests.unit.correlation.timing.strategies import judged, thresholds

Event = tuple[int, int]
Group = tuple[int, int, int, int]


class Case(NamedTuple):
    """A block of base events against a buffer of targets, grouped."""

    base: list[Event]
    target: list[Event]
    groups: list[Group]
    window: TimingWindow
    exclude_same: bool = False


def columns(events: list[Event]) -> Side:
    earliest, latest = np.array(events, np.int64).reshape(-1, 2).T
    return Side(earliest, latest)


def check(name: str, case: Case, lengths: tuple[int, int] | None = None) -> None:
    pairs = ALGORITHMS[name](
        columns(case.base),
        columns(case.target),
        np.array(case.groups, np.int64).reshape(-1, 4),
        case.window,
        exclude_same=case.exclude_same,
        target_lengths=lengths,
    )
    found = list(zip(pairs.base_index.tolist(), pairs.target_index.tolist(), strict=True))
    expected = satisfied_pairs(
        case.base,
        case.target,
        case.groups,
        judged(case.window),
        exclude_same=case.exclude_same,
    )
    assert sorted(found) == sorted(expected)
    assert len(pairs.decided_by) == len(found)
    probed = int((pairs.decided_by >= PROBE).sum())
    assert probed <= pairs.counts.probe_region
    assert pairs.counts.probe_region == pairs.counts.lookup_hits + pairs.counts.evaluations


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw coarse grids (many ties) of any scale, anywhere in the range of time."""
    scale = draw(st.sampled_from([1, 7, 1000, 10**4 * 2**28, 2**42]))
    start = draw(st.sampled_from([0, 2**60 - 2**48, -(2**60) + 2**48]))
    longest = draw(st.integers(0, 8))
    jitter = st.integers(-1, 1) if draw(st.booleans()) else st.just(0)

    def events(size: int) -> list[Event]:
        drawn = [
            (start + draw(st.integers(-16, 16)) * scale, draw(st.integers(0, longest)) * scale)
            for _ in range(size)
        ]
        return sorted(((t - length, t) for t, length in drawn), key=lambda event: event[1])

    base: list[Event] = []
    target: list[Event] = []
    groups: list[Group] = []
    sizes = st.integers(0, 5)
    for _ in range(draw(st.integers(1, 4))):
        more_base, more_target = events(draw(sizes)), events(draw(sizes))
        groups.append(
            (len(base), len(base) + len(more_base), len(target), len(target) + len(more_target))
        )
        base += more_base
        target += more_target
    return Case(base, target, groups, draw(scaled_windows(scale, jitter)))


@st.composite
def scaled_windows(draw: st.DrawFn, scale: int, jitter: st.SearchStrategy[int]) -> TimingWindow:
    """Draw a window on the grid, or one microsecond beside it."""
    lower, upper = sorted(draw(st.integers(-18, 18)) * scale + draw(jitter) for _ in range(2))
    cuts = sorted(draw(st.integers(-20, 20)) * scale + draw(jitter) for _ in range(2))
    threshold = draw(thresholds)
    shapes = [
        (lower, upper, None, None),
        (lower, upper, cuts[0], cuts[1]),
        (None, upper, cuts[0], None),
        (lower, None, None, cuts[1]),
    ]
    return TimingWindow(*draw(st.sampled_from(shapes)), threshold)


@pytest.mark.parametrize("name", ALGORITHMS)
@given(case=cases())
def test_algorithm_returns_the_judges_pairs(name: str, case: Case) -> None:
    check(name, case)


@pytest.mark.parametrize("name", ALGORITHMS)
@given(case=cases(), below=st.integers(0, 3), above=st.integers(0, 3))
def test_algorithm_returns_the_judges_pairs_when_lengths_are_declared(
    name: str, case: Case, below: int, above: int
) -> None:
    lengths = [latest - earliest for earliest, latest in case.target] or [0]
    check(name, case, (max(min(lengths) - below, 0), max(lengths) + above))


@st.composite
def tied_cases(draw: st.DrawFn) -> Case:
    """Draw events of lengths without other prime factors than 2 and 5: every P is a decimal.

    The threshold is the probability of one of the pairs: P = ct for it and all like it.
    """
    scale = draw(st.sampled_from([1, 10**3, 10**9]))
    lengths = draw(st.lists(st.sampled_from([0, 10, 20, 40, 50, 80, 100]), min_size=1, max_size=4))
    event = st.tuples(st.integers(-30, 30), st.sampled_from(lengths))

    def events() -> list[Event]:
        drawn = sorted(draw(st.lists(event, min_size=1, max_size=10)))
        return [((10 * t - length) * scale, 10 * t * scale) for t, length in drawn]

    base, target = events(), events()
    lower, upper = sorted(10 * scale * draw(st.integers(-15, 15)) for _ in range(2))
    horizon = 10 * scale * draw(st.integers(16, 40))
    ends = [(lower, upper, None, None), (None, upper, -horizon, None), (lower, None, None, horizon)]
    shape = draw(st.sampled_from(ends))
    found = {probability(a, b, (*shape, Fraction(1))) for a in base for b in target}
    threshold = draw(st.sampled_from(sorted(found - {Fraction(0)}) or [Fraction(1)]))
    groups = [(0, len(base), 0, len(target))]
    return Case(base, target, groups, TimingWindow(*shape, threshold))


@pytest.mark.parametrize("name", ALGORITHMS)
@given(case=tied_cases())
def test_algorithm_returns_the_judges_pairs_when_one_ties_on_purpose(name: str, case: Case) -> None:
    check(name, case)


@pytest.mark.parametrize("name", ALGORITHMS)
@given(case=cases())
def test_algorithm_leaves_out_an_event_with_itself(name: str, case: Case) -> None:
    groups = [(low, high, low, high) for low, high, _, _ in case.groups]
    check(name, Case(case.base, case.base, groups, case.window, exclude_same=True))


@pytest.mark.parametrize("name", ALGORITHMS)
@given(case=cases())
def test_algorithm_leaves_out_equal_positions_of_different_events(name: str, case: Case) -> None:
    check(name, case._replace(exclude_same=True))


def random_events(rng: np.random.Generator, size: int, step: int, lengths: range) -> list[Event]:
    latest = np.sort(rng.integers(-30, 30, size)) * step
    length = rng.choice(np.array(lengths), size)
    return list(zip((latest - length).tolist(), latest.tolist(), strict=True))


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(
    ("window", "ct", "step", "lengths"),
    [
        # Equal lengths, P = 1/2 where s is a grid point.
        ((-100, 100, None, None), "0.5", 50, range(100, 101)),
        # ct = 1: a tie wherever the support touches an end.
        ((-100, 100, None, None), "1", 10, range(0, 50, 10)),
        # The window is as wide as an interval: ties at its centre.
        ((-50, 50, None, None), "0.75", 50, range(100, 101)),
        # Narrower than any interval: P = 0.36 in the middle.
        ((-20, 20, None, None), "0.36", 20, range(100, 101)),
        # One-sided with a horizon at grid points.
        ((None, 100, -400, None), "0.5", 50, range(100, 101)),
        ((100, None, None, 400), "0.5", 50, range(100, 101)),
        # Points: every probability is 0 or 1, the bounds are closed.
        ((-100, 50, None, None), "0.3", 50, range(1)),
    ],
)
def test_algorithm_returns_the_judges_pairs_when_many_tie(
    name: str,
    window: tuple[int | None, int | None, int | None, int | None],
    ct: str,
    step: int,
    lengths: range,
) -> None:
    rng = np.random.default_rng(20060405)
    base = random_events(rng, 40, step, lengths)
    target = random_events(rng, 40, step, lengths)
    made = TimingWindow(*window, Fraction(ct))
    found = [probability(a, b, judged(made)) for a in base for b in target]
    undecided = [p for p in found if 0 < p < 1] or [p for p in found if p == 1]
    ties = sum(p == made.threshold for p in found)
    if len(lengths) == 1 and lengths[0]:
        assert ties >= 0.05 * len(undecided)
    check(name, Case(base, target, [(0, 40, 0, 40)], made))


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(
    ("window", "ct"),
    [
        ((-90, 90, None, None), "0.7"),
        # Satisfied by short lengths only: the s-windows of the others are empty.
        ((-15, 15, None, None), "0.8"),
        ((0, 0, None, None), "0.1"),
        ((20, 60, None, None), "0.5"),
        # One-sided, the horizon inside and outside of what lengths reach.
        ((None, 30, -200, None), "0.6"),
        ((None, 30, -20, None), "0.6"),
        ((10, None, None, 25), "0.9"),
        ((10, None, None, 300), "0.9"),
        # Cuts on both sides of a wide window, and one that leaves a single s.
        ((-90, 90, -80, 20), "0.7"),
        ((-90, 90, 7, 7), "0.7"),
    ],
)
@pytest.mark.parametrize(
    "lengths",
    [
        range(40, 41),
        range(1),
        # Two, far apart: one feels a narrow window, the other does not.
        range(0, 200, 100),
        # Nearly every event has a length of its own.
        range(0, 1000, 3),
    ],
)
def test_algorithm_returns_the_judges_pairs_of_few_and_many_lengths(
    name: str,
    lengths: range,
    window: tuple[int | None, int | None, int | None, int | None],
    ct: str,
) -> None:
    rng = np.random.default_rng(20100527)
    base = random_events(rng, 30, 7, lengths)
    target = random_events(rng, 40, 7, lengths)
    half = [(0, 15, 0, 20), (15, 30, 20, 40)]
    made = TimingWindow(*window, Fraction(ct))
    check(name, Case(base, target, [(0, 30, 0, 40)], made))
    check(name, Case(base, target, half, made))
    check(name, Case(base, base, [(0, 30, 0, 30)], made, exclude_same=True))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_algorithm_returns_the_judges_pairs_when_they_are_many(name: str) -> None:
    """More than the columns have room for at first, in the middle of a group and between two."""
    rng = np.random.default_rng(5)
    base, target = random_events(rng, 60, 1, range(9)), random_events(rng, 300, 1, range(9))
    window = TimingWindow(-50, 50, None, None, Fraction(7, 10))
    check(name, Case(base, target, [(0, 25, 0, 150), (25, 60, 150, 300)], window))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_algorithm_keeps_thousands_of_keys_apart(name: str) -> None:
    rng = np.random.default_rng(3)
    sizes = rng.integers(0, 4, (2000, 2))
    ends = np.cumsum(sizes, axis=0)
    groups = np.column_stack([ends - sizes, ends])[:, [0, 2, 1, 3]]
    sides = []
    for column in (0, 1):
        latest = rng.integers(-50, 50, ends[-1, column])
        key = np.repeat(np.arange(2000), sizes[:, column])
        latest = latest[np.lexsort((latest, key))]
        length = rng.integers(0, 20, len(latest))
        sides.append(list(zip((latest - length).tolist(), latest.tolist(), strict=True)))
    window = TimingWindow(-15, 15, None, None, Fraction(7, 10))
    check(name, Case(sides[0], sides[1], [tuple(g) for g in groups.tolist()], window))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_algorithm_takes_no_groups_and_empty_sides(name: str) -> None:
    window = TimingWindow(-15, 15, None, None, Fraction(7, 10))
    check(name, Case([], [], [], window))
    check(name, Case([(0, 1)], [], [(0, 1, 0, 0)], window))
    check(name, Case([], [(0, 1)], [(0, 0, 0, 1)], window))


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(
    ("lower", "upper", "floor", "ceiling"),
    [
        (-(2**50), 2**50, None, None),
        (-(2**45), 2**45, None, None),
        (None, 2**45, -(2**50), None),
        (2**45, None, None, 2**50),
    ],
)
def test_p_range_across_all_of_time(
    name: str, lower: int | None, upper: int | None, floor: int | None, ceiling: int | None
) -> None:
    window = TimingWindow(lower, upper, floor, ceiling, Fraction(7, 10))
    latest = [-(2**60) + 2**45, -(2**60) + 2**46, 0, 2**45, 2**60 - 2**46, 2**60]
    events = [(t - length, t) for t in latest for length in (0, 1, 2**44, 2**45)]
    check(name, Case(events, events, [(0, len(events), 0, len(events))], window))
