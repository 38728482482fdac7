"""Quadrature in float64: nodes, error bounds, and decisions that are never wrong."""

from __future__ import annotations

import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given

from correlation.event_query.absence.exact import Candidate, absence_probability
from correlation.event_query.absence.filter import (
    ABSENT,
    DOUBTFUL,
    STOPPED,
    _average_kernel,
    filter_cases,
    measure_cases,
)
from correlation.event_query.absence.gathering import gather_cases
from correlation.event_query.absence.gauss import MAX_NODES, gauss_rules
from correlation.event_query.absence.windows import Interval
from correlation.resources.histogram import WHOLE_MASS, Bucket, Histogram
from tests.unit.correlation.event_query.absence.absence_strategies import (
    cases,
    judge,
    make_columns,
    make_instants,
    make_negated,
    thresholds,
)

Case = tuple[Histogram, list[Candidate]]


def legendre(count: int, x: Decimal) -> Decimal:
    """Compute the Legendre polynomial P_count by Bonnet's recursion."""
    before, value = Decimal(0), Decimal(1)
    for n in range(count):
        before, value = value, ((2 * n + 1) * x * value - n * before) / (n + 1)
    return value


@pytest.mark.parametrize("count", [1, 2, 3, 8, 17, MAX_NODES])
def test_gauss_nodes_enclose_roots_and_weights_are_rounded(count: int) -> None:
    rules, start = gauss_rules(), count * (count - 1) // 2
    nodes = rules.nodes[start : start + count].tolist()
    weights = rules.weights[start : start + count].tolist()
    with localcontext(prec=60):
        unit = Decimal(2) ** -53
        for node, weight in zip(nodes, weights, strict=True):
            low, high = 2 * (Decimal(node) - unit) - 1, 2 * (Decimal(node) + unit) - 1
            assert legendre(count, low) * legendre(count, high) < 0
            for _ in range(150):
                middle = (low + high) / 2
                if legendre(count, low) * legendre(count, middle) <= 0:
                    high = middle
                else:
                    low = middle
            exact = (1 - low * low) / (count * legendre(count - 1, low)) ** 2
            assert abs(Decimal(weight) - exact) <= unit * exact


@pytest.mark.parametrize("count", [1, 5, MAX_NODES])
def test_gauss_rules_integrate_powers(count: int) -> None:
    rules, start = gauss_rules(), count * (count - 1) // 2
    part = slice(start, start + count)
    for degree in range(2 * count):
        mean = float((rules.weights[part] * rules.nodes[part] ** degree).sum())
        assert mean == pytest.approx(1 / (degree + 1), rel=1e-13)
    missed = float((rules.weights[part] * rules.nodes[part] ** (2 * count)).sum())
    assert count > 5 or missed != pytest.approx(1 / (2 * count + 1), rel=1e-13)


def integrate_exactly(begins: list[float], ends: list[float]) -> Fraction:
    """Compute the integral of the product over [0, 1]; all ends are multiples of 2**-53."""
    product = [1]
    for begin, end in zip(begins, ends, strict=True):
        a, b = int(begin * 2**53), int(end * 2**53) - int(begin * 2**53)
        product = [
            a * low + b * high for low, high in zip([*product, 0], [0, *product], strict=True)
        ]
    scale = math.lcm(*range(1, len(product) + 1))
    total = sum(c * (scale // (k + 1)) for k, c in enumerate(product))
    return Fraction(total, scale * 2 ** (53 * len(begins)))


@pytest.mark.parametrize("degree", [0, 1, 2, 7, 8, 63, 64, 99, 200])
@pytest.mark.parametrize("kind", ["falling", "random", "flat", "opposite"])
def test_p_absence_quadrature_of_many_factors(degree: int, kind: str) -> None:
    """Exact rules, shorter rules and panels: the error is that of rounding."""
    chance = random.Random(degree)  # noqa: S311 - test data
    if kind == "falling":
        begins, ends = [1.0] * degree, [0.0] * degree
    elif kind == "opposite":
        begins = [float(i % 2) for i in range(degree)]
        ends = [1.0 - it for it in begins]
    elif kind == "flat":
        begins = [1 - chance.random() / 100 for _ in range(degree)]
        ends = [it - chance.random() / 1000 for it in begins]
    else:
        begins = [chance.random() for _ in range(degree)]
        ends = [chance.random() for _ in range(degree)]
    mean, panels = _average_kernel(np.array(begins), np.array(ends), gauss_rules())
    exact = integrate_exactly(begins, ends)
    assert abs(Fraction(float(mean)) - exact) <= Fraction(8 * degree + 40 + panels, 2**53)
    assert panels <= 8
    assert mean == pytest.approx(float(exact), rel=1e-6, abs=1e-17)


def test_p_absence_quadrature_halves_panels_beyond_the_longest_rule() -> None:
    rules = gauss_rules()
    assert _average_kernel(np.ones(63), np.zeros(63), rules)[1] == 1
    assert _average_kernel(np.ones(99), np.zeros(99), rules)[1] > 1


@given(cases())
def test_p_absence_bounds_hold(case: Case) -> None:
    """Fréchet: 1 - Σ p ≤ P ≤ min (1 - p)."""
    positive, candidates = case
    missed = [absence_probability(positive, [it]) for it in candidates]
    exact = absence_probability(positive, candidates)
    assert 1 - sum(1 - it for it in missed) <= exact <= min(missed, default=1)


@given(cases(many=8))
def test_p_absence_measured_probability_is_within_its_error(case: Case) -> None:
    stopped, gathered = gather_cases(*make_columns([case]))
    values, errors = measure_cases(gathered, np.arange(1))
    exact = Fraction(0) if stopped[0] else Fraction(float(values[0]))
    assert abs(exact - judge(*case)) <= Fraction(float(errors[0])) / 2
    assert errors[0] < 2.0**-40


@given(cases(), thresholds)
@example((Histogram.from_interval(0, 2), []), Fraction(1))
def test_p_absence_filter_is_never_wrong(case: Case, threshold: Fraction) -> None:
    exact = judge(*case)
    stopped, gathered = gather_cases(*make_columns([case]))
    if stopped[0]:
        assert exact == 0
        return
    for at in {
        threshold,
        exact,
        exact * (1 + Fraction(1, 2**50)),
        exact * (1 - Fraction(1, 2**50)),
    }:
        if 0 < at <= 1:
            verdict = filter_cases(gathered, at)[0]
            assert verdict in ({ABSENT, DOUBTFUL} if exact >= at else {STOPPED, DOUBTFUL})


@given(cases())
def test_p_absence_filter_decides_away_from_the_threshold(case: Case) -> None:
    exact = judge(*case)
    stopped, gathered = gather_cases(*make_columns([case]))
    if not stopped[0] and exact >= Fraction(1, 10**9):
        assert filter_cases(gathered, exact - Fraction(1, 10**10))[0] == ABSENT
        if exact + Fraction(1, 10**10) <= 1:
            assert filter_cases(gathered, exact + Fraction(1, 10**10))[0] == STOPPED


def make_many(count: int, buckets: int, length: int, seed: int) -> Case:
    """Return a positive event and candidates around both ends of a window of 5 lengths."""
    chance = random.Random(seed)  # noqa: S311 - test data

    def instant(place: int) -> Histogram:
        if buckets == 1:
            return Histogram.from_interval(place, place + length)
        cuts = sorted(chance.sample(range(1, length), buckets - 1))
        masses = [chance.randrange(WHOLE_MASS // buckets) for _ in range(buckets - 1)]
        masses.insert(chance.randrange(buckets), WHOLE_MASS - sum(masses))
        edges = [0, *cuts, length]
        return Histogram(
            tuple(Bucket(place + edges[i], place + edges[i + 1], masses[i]) for i in range(buckets))
        )

    window = (Interval(0, 5 * length),)
    candidates = []
    for i in range(count):
        # Near the ends the candidates are rarely inside, so that P does not vanish.
        inside = int(length * chance.random() ** count)
        place = -length + inside if i % 2 else 6 * length - inside
        candidates.append(Candidate(instant(place + chance.randrange(3)), window))
    return instant(0), candidates


@pytest.mark.parametrize(
    ("count", "buckets", "length"),
    [(20, 1, 10**6), (80, 1, 10**9), (200, 1, 5000), (12, 9, 10**6), (60, 4, 2**45)],
)
def test_p_absence_of_many_candidates_is_within_its_error(
    count: int, buckets: int, length: int
) -> None:
    """The fraction of many candidates is that of the sweep, which the judge confirms for few."""
    positive, candidates = make_many(count, buckets, length, seed=count)
    columns = (
        make_instants([positive]),
        [make_negated([candidates[0].window], [[it.time for it in candidates]])],
    )
    gathered = gather_cases(*columns).cases
    exact = absence_probability(positive, candidates)
    values, errors = measure_cases(gathered, np.arange(1))
    assert 0.0 < errors[0] < 1e-10
    assert abs(Fraction(float(values[0])) - exact) <= Fraction(float(errors[0])) / 2
    near = Fraction(1, 10**9)
    assert exact > near
    assert filter_cases(gathered, exact - near)[0] == ABSENT
    assert exact + near > 1 or filter_cases(gathered, exact + near)[0] == STOPPED
    assert filter_cases(gathered, exact)[0] == DOUBTFUL


def test_p_absence_rounding_bound_covers_the_sum_of_all_errors() -> None:
    """The largest error seen is positive, and at most the proved bound."""
    largest = Fraction(0)
    for seed in range(30):
        positive, candidates = make_many(8, 1 + seed % 4, 10**5 + seed, seed)
        gathered = gather_cases(*make_columns([(positive, candidates)])).cases
        values, errors = measure_cases(gathered, np.arange(1))
        difference = abs(Fraction(float(values[0])) - judge(positive, candidates))
        largest = max(largest, difference / (Fraction(float(errors[0])) / 2))
    assert 0 < largest <= 1
