"""Conformance suite over all algorithms for histogram events: each returns the oracle's pairs."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from correlation.resources.histogram import Histogram
from correlation.timing.conditions import ALGORITHM_CHOICES
from correlation.timing.histograms import windows as histogram_windows
from correlation.timing.histograms.algorithms import correlate_histograms
from correlation.timing.histograms.windows import WindowBook
from correlation.timing.intervals.pairs import LOOKUP, PROBE, SATISFACTION_REGION, Pairs
from correlation.timing.intervals.window import TimingWindow
from tests.oracle import histograms as oracle
from tests.support.histograms import draw_events, draw_histogram, one_group, side_of_events, told
from tests.unit.correlation.timing.histogram_strategies import histograms
from tests.unit.correlation.timing.strategies import judged, windows

# Whether all s-windows are known, the first of them, or none.
WAYS = ("known", "partly", "computed")


class Case(NamedTuple):
    """A block of base events against a buffer of targets, grouped; windows are of A to B."""

    base: list[Histogram]
    target: list[Histogram]
    groups: NDArray[np.int64]
    window: TimingWindow
    base_is_a: bool = True
    exclude_same: bool = False


def expected_pairs(case: Case) -> list[tuple[int, int]]:
    window = judged(case.window if case.base_is_a else case.window.mirrored())
    base, target = [told(it) for it in case.base], [told(it) for it in case.target]
    return sorted(
        (i, j)
        for base_lo, base_hi, target_lo, target_hi in case.groups.tolist()
        for i in range(base_lo, base_hi)
        for j in range(target_lo, target_hi)
        if not (case.exclude_same and i == j) and oracle.is_satisfied(base[i], target[j], window)
    )


def run(name: str, case: Case, way: str) -> tuple[Pairs, str]:
    book = WindowBook(case.window)
    with pytest.MonkeyPatch.context() as patch:
        if way == "known":
            book.credit = 10**9
        else:
            # One cell takes more.
            patch.setattr(histogram_windows, "AT_ONCE", 0)
            book.credit = int(way == "partly")
        return correlate_histograms(
            name,
            side_of_events(case.base),
            side_of_events(case.target),
            case.groups,
            book,
            base_is_a=case.base_is_a,
            exclude_same=case.exclude_same,
        )


def check(name: str, case: Case, way: str) -> tuple[Pairs, str]:
    pairs, ran = run(name, case, way)
    found = list(zip(pairs.base_index.tolist(), pairs.target_index.tolist(), strict=True))
    assert sorted(found) == expected_pairs(case)
    assert set(pairs.decided_by.tolist()) <= {SATISFACTION_REGION, PROBE, LOOKUP}
    assert int((pairs.decided_by >= PROBE).sum()) <= pairs.counts.probe_region
    assert pairs.counts.probe_region == pairs.counts.lookup_hits + pairs.counts.evaluations
    return pairs, ran


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw few shapes and events that share them, or one for each; windows of any width."""
    shapes = draw(st.lists(histograms(places=0), min_size=1, max_size=4))

    def events() -> list[Histogram]:
        drawn = draw(st.lists(st.tuples(st.sampled_from(shapes), st.integers(-20, 20)), max_size=7))
        return sorted((h.shape().moved(t) for h, t in drawn), key=lambda it: it.latest_us)

    base: list[Histogram] = []
    target: list[Histogram] = []
    groups = []
    for _ in range(draw(st.integers(1, 3))):
        more_base, more_target = events(), events()
        groups.append(
            [len(base), len(base) + len(more_base), len(target), len(target) + len(more_target)]
        )
        base += more_base
        target += more_target
    made = np.array(groups, np.int64)
    return Case(base, target, made, draw(windows(limit=30)), base_is_a=draw(st.booleans()))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ALGORITHM_CHOICES)
@given(case=cases())
def test_algorithm_returns_the_judges_pairs(name: str, way: str, case: Case) -> None:
    check(name, case, way)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ALGORITHM_CHOICES)
@given(case=cases())
def test_algorithm_leaves_out_an_event_with_itself(name: str, way: str, case: Case) -> None:
    groups = case.groups[:, [0, 1, 0, 1]]
    check(name, case._replace(target=case.base, groups=groups, exclude_same=True), way)


# Two modes far apart: narrow windows have gaps.
MODES = Histogram.from_buckets(
    [
        {"lo": -100, "hi": -90, "p": "0.5"},
        {"lo": -90, "hi": -10, "p": "0"},
        {"lo": -10, "hi": 0, "p": "0.5"},
    ]
)
STEPS = Histogram.from_buckets(
    [{"lo": -40, "hi": -20, "p": "0.25"}, {"lo": -20, "hi": 0, "p": "0.75"}]
)
SHORT = Histogram.from_interval(-20, 0)
POINT = Histogram.from_interval(0, 0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ALGORITHM_CHOICES)
@pytest.mark.parametrize(
    "window",
    [
        (-200, 200, None, None),
        (-60, 200, None, None),
        (-10, 10, None, None),
        (-20, 40, None, None),
        (None, 10, -150, None),
        (10, None, None, 150),
        (-100, 100, -30, 60),
    ],
)
@pytest.mark.parametrize("base_is_a", [True, False])
def test_algorithm_returns_the_judges_pairs_when_many_tie(
    name: str,
    way: str,
    window: tuple[int | None, int | None, int | None, int | None],
    *,
    base_is_a: bool,
) -> None:
    rng = np.random.default_rng(2006)
    shapes = [MODES, STEPS, SHORT, POINT]
    base, target = draw_events(rng, shapes, 24, 20, 10), draw_events(rng, shapes, 30, 20, 10)
    groups = one_group(base, target)
    ends = (*window, Fraction(1)) if base_is_a else mirrored_ends(window)
    found = [oracle.probability(told(a), told(b), ends) for a in base for b in target]
    undecided = [p for p in found if 0 < p < 1 and 10**10 % p.denominator == 0]
    threshold, ties = Counter(undecided).most_common(1)[0]
    assert ties >= 0.05 * sum(0 < p < 1 for p in found)
    made = TimingWindow(*window, threshold)
    check(name, Case(base, target, groups, made, base_is_a=base_is_a), way)
    check(name, Case(base, base, groups[:, [0, 1, 0, 1]], made, exclude_same=True), way)


def mirrored_ends(
    window: tuple[int | None, int | None, int | None, int | None],
) -> oracle.Window:
    return judged(TimingWindow(*window, Fraction(1)).mirrored())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ALGORITHM_CHOICES)
@pytest.mark.parametrize("half", [15, 60, 400])
def test_algorithm_returns_the_judges_pairs_when_every_event_has_its_own_histogram(
    name: str, way: str, half: int
) -> None:
    rng = np.random.default_rng(half)
    base, target = (
        [
            draw_histogram(rng, range(90)).moved(t)
            for t in sorted(rng.integers(-99, 99, 40).tolist())
        ]
        for _ in range(2)
    )
    window = TimingWindow(-half, half, None, None, Fraction(7, 10))
    pairs, ran = check(name, Case(base, target, one_group(base, target), window), way)
    assert len(pairs.base_index)
    # 40 x 40 classes are too many, whatever they cost.
    assert ran == (name if name in {"simple", "ssort", "eager"} else "lazy")


def test_algorithms_run_by_their_names_when_classes_are_few() -> None:
    rng = np.random.default_rng(1)
    base, target = (draw_events(rng, [MODES, STEPS, SHORT], 40, 100) for _ in range(2))
    window = TimingWindow(-15, 15, None, None, Fraction(2, 5))
    case = Case(base, target, one_group(base, target), window)
    for name in ALGORITHM_CHOICES:
        pairs, ran = check(name, case, "known")
        assert ran == ("lazy" if name == "auto" else name)
        if ran == "indexed":
            assert set(pairs.decided_by.tolist()) == {SATISFACTION_REGION}


@pytest.mark.parametrize(("targets", "expected"), [(40, "lazy"), (600, "indexed")])
def test_auto_is_indexed_where_few_classes_have_many_targets_to_probe(
    targets: int, expected: str
) -> None:
    rng = np.random.default_rng(1)
    base, target = (draw_events(rng, [MODES, STEPS, SHORT], size, 100) for size in (9, targets))
    window = TimingWindow(-15, 15, None, None, Fraction(2, 5))
    _, ran = check("auto", Case(base, target, one_group(base, target), window), "known")
    assert ran == expected


def test_lazy_lookup_decides_by_its_table() -> None:
    rng = np.random.default_rng(4)
    base, target = (draw_events(rng, [MODES, STEPS, SHORT], 200, 200) for _ in range(2))
    window = TimingWindow(-150, 150, None, None, Fraction(7, 10))
    pairs, _ = check("lazy_lookup", Case(base, target, one_group(base, target), window), "known")
    assert int((pairs.decided_by == LOOKUP).sum()) == pairs.counts.lookup_hits
    assert pairs.counts.lookup_hits > 0.2 * pairs.counts.probe_region


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ALGORITHM_CHOICES)
def test_algorithm_takes_empty_sides(name: str, way: str) -> None:
    window = TimingWindow(-15, 15, None, None, Fraction(7, 10))
    none = np.zeros((0, 4), np.int64)
    check(name, Case([], [], none, window), way)
    check(name, Case([STEPS], [], np.array([[0, 1, 0, 0]]), window), way)
    check(name, Case([], [STEPS], np.array([[0, 0, 0, 1]]), window), way)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ALGORITHM_CHOICES)
def test_algorithm_returns_the_judges_pairs_across_all_of_time(name: str, way: str) -> None:
    long = Histogram.from_buckets(
        [{"lo": -(2**45), "hi": -7, "p": "0.3"}, {"lo": -7, "hi": 0, "p": "0.7"}]
    )
    latest = [-(2**60) + 2**45, -(2**60) + 2**46, 0, 2**45, 2**60 - 2**46, 2**60]
    events = [shape.moved(t) for t in latest for shape in (long, SHORT, POINT)]
    for ends in [(-(2**50), 2**50, None, None), (None, 2**45, -(2**50), None)]:
        window = TimingWindow(*ends, Fraction(7, 10))
        check(name, Case(events, events, one_group(events, events), window), way)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ALGORITHM_CHOICES)
@pytest.mark.parametrize("beyond", [0, 1])
def test_algorithm_leaves_out_what_misses_by_less_than_float_can_tell(
    name: str, way: str, beyond: int
) -> None:
    """The later mode of B is lost, 1/2; of the other one nothing, or a corner of 10⁻¹⁹."""
    long = 10**9
    modes = Histogram.from_buckets(
        [
            {"lo": -3 * long, "hi": -2 * long, "p": "0.5"},
            {"lo": -2 * long, "hi": -long, "p": "0"},
            {"lo": -long, "hi": 0, "p": "0.5"},
        ]
    )
    base, target = [Histogram.from_interval(-long, 0)], [modes]
    window = TimingWindow(None, -long - beyond, -9 * long, None, Fraction(1, 2))
    exact = oracle.probability(told(base[0]), told(modes), judged(window))
    assert float(exact) == 0.5
    assert (exact < window.threshold) == bool(beyond)
    check(name, Case(base, target, one_group(base, target), window), way)
