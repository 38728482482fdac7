"""The benchmark of top-k joins: reference operators against the oracle, streams, whole tables."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks import swoop
from benchmarks.swoop.measuring import (
    BASE,
    MERGING,
    REFILL,
    SCASE,
    SLOW,
    SWOOP,
    DifferentAnswersError,
    Plan,
    Shape,
    check_answers,
    choose_operators,
    make_operator,
    measure,
    measure_latency,
)
from benchmarks.swoop.orders import NEWEST, SHORTEST, STREAMS, measure_orders
from benchmarks.swoop.refill import REFILLS, Refill
from benchmarks.swoop.scase import Scase, sort_tokens
from benchmarks.swoop.window import take_sets
from benchmarks.swoop.workload import add_bursts, draw_sets, encode_sets, split_words
from correlation.topk.join.state import Block
from correlation.topk.similarities import HAMMING, JACCARD, SIMILARITIES
from tests.oracle.topk import Pair, TokenSet, ranked_pairs, relevant_pairs
from tests.support.pages import check_page

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.swoop.window import Operator
    from correlation.topk.join.join import Pairs

WINDOW_US = 20
NAMES = (SWOOP, REFILL, SCASE, MERGING, BASE)


def draw_ties(count: int, seed: int) -> Block:
    """Draw small sets of few tokens, with equal similarities, equal sets and equal times."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, count)
    tokens = [np.sort(rng.choice(9, size, replace=False)).astype(np.int32) for size in sizes]
    return Block(
        np.sort(rng.integers(0, count, count)),
        np.zeros(count, np.int8),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate(tokens),
    )


def sets_of(stream: Block) -> list[TokenSet]:
    ends = stream.offsets.tolist()
    return [
        TokenSet(number, time, frozenset(stream.tokens[ends[number] : ends[number + 1]].tolist()))
        for number, time in enumerate(stream.time_us.tolist())
    ]


def numbers(pairs: Sequence[Pair]) -> list[tuple[int, int]]:
    return [(pair.older.number, pair.newer.number) for pair in pairs]


def found_numbers(pairs: Pairs) -> list[tuple[int, int]]:
    return list(zip(pairs.older.tolist(), pairs.newer.tolist(), strict=True))


def expected_stock(operator: Operator, ranked: Sequence[Pair], minimal: int, k: int) -> set[int]:
    """Return the sizes that the stock may have; `minimal` is the number of the relevant pairs."""
    if operator.name == BASE:
        return {len(ranked)}
    if isinstance(operator, Refill):
        return set(range(min(k, len(ranked)), 2 * k + 1))
    if not isinstance(operator, Scase):
        return {minimal}
    # The skyband of the source compares the numbers of sets, not their times.
    numbers = [it.older.number for it in ranked]
    band = sum(sum(it >= end for it in numbers[:at]) < k for at, end in enumerate(numbers))
    return set(range(minimal, band + 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    "similarity",
    [
        pytest.param("jaccard", marks=pytest.mark.nightly),
        "overlap",
        pytest.param("hamming", marks=pytest.mark.nightly),
    ],
)
def test_operators_list_the_pairs_of_the_oracle_after_every_set(similarity: str) -> None:
    for seed, k in enumerate((1, 3, 20)):
        stream = draw_ties(60, seed)
        sets = sets_of(stream)
        known = int(np.searchsorted(stream.time_us, WINDOW_US, side="right"))
        # The pairs after each set, which are the same for all operators.
        rankings = []
        for last in sets:
            valid = [it for it in sets[: last.number + 1] if it.time >= last.time - WINDOW_US]
            rankings.append(ranked_pairs(similarity, valid, crossed=False))
        minimal = [len(relevant_pairs(ranked, k)) for ranked in rankings]
        for name in NAMES:
            filled, single = (
                make_operator(name, stream, Shape(WINDOW_US + 1, k, SIMILARITIES[similarity]))
                for _ in range(2)
            )
            filled.fill(known)
            for new, ranked in enumerate(rankings):
                single.insert(1)
                if new >= known:
                    filled.insert(1)
                for operator in (single, filled) if new >= known - 1 else (single,):
                    found = operator.list_pairs()
                    assert found_numbers(found) == numbers(ranked[:k])
                    assert operator.stock_size in expected_stock(operator, ranked, minimal[new], k)


@pytest.mark.slow
def test_refill_computes_its_stock_again_when_it_runs_dry() -> None:
    stream = draw_ties(200, 7)
    sets = sets_of(stream)
    counts = []
    for spare in (0, 3, 40):
        operator = Refill(stream, 5, WINDOW_US, JACCARD, spare=spare)
        operator.insert(len(sets))
        valid = [it for it in sets if it.time >= sets[-1].time - WINDOW_US]
        assert found_numbers(operator.list_pairs()) == numbers(
            ranked_pairs("jaccard", valid, crossed=False)[:5]
        )
        counts.append(int(operator.totals[REFILLS]))
    assert counts[0] > counts[1] > counts[2]


@pytest.mark.slow
def test_measuring_compares_the_lists_of_all_operators() -> None:
    shape, plan = Shape(60, 5), Plan(3, 10, 2)
    stream = draw_sets(shape.window + plan.sets)
    makers = {name: partial(make_operator, name, stream, shape) for name in NAMES}
    runs = measure(makers, shape, plan)
    assert {name: run.sets for name, run in runs.items()} == {
        name: 6 if name in SLOW else 20 for name in NAMES
    }
    assert all(run.rate > 0 and run.nbytes > 0 for run in runs.values())
    # The stocks of both skybands are equal after equally many sets.
    assert runs[SCASE].stock == runs[MERGING].stock < runs[BASE].stock
    met, counted, candidates = runs[SWOOP].work
    assert met > counted > candidates > 0
    other = {SWOOP: makers[SWOOP], REFILL: partial(make_operator, REFILL, stream, Shape(60, 4))}
    with pytest.raises(DifferentAnswersError, match="refill, piece 0"):
        measure(other, shape, plan)
    times = measure_latency(makers, shape, {name: [1, 0, 2] for name in NAMES})
    assert all((it > 0).all() and len(it) == 3 for it in times.values())
    with pytest.raises(DifferentAnswersError, match="refill"):
        measure_latency(other, shape, {name: [1] for name in other})


def test_base_runs_only_where_its_pairs_fit() -> None:
    assert choose_operators(10_000) == list(NAMES)
    assert choose_operators(100_000) == list(NAMES[:-1])


@pytest.mark.slow
def test_lists_with_other_pairs_are_refused() -> None:
    stream = draw_sets(50)
    one, other = (make_operator(SWOOP, stream, Shape(50, 5, it)) for it in (JACCARD, HAMMING))
    for operator in (one, other):
        operator.fill(50)
    check_answers(one.list_pairs(), one.list_pairs(), "equal")
    with pytest.raises(DifferentAnswersError, match="keys"):
        check_answers(one.list_pairs(), other.list_pairs(), "keys")


@pytest.mark.parametrize("drifting", [False, True])
def test_random_sets_have_distinct_tokens_in_order_of_appearance(*, drifting: bool) -> None:
    stream = draw_sets(3_000, drifting=drifting)
    sets = sets_of(stream)
    assert sum(len(it.tokens) for it in sets) == len(stream.tokens)
    assert 8 < len(stream.tokens) / len(sets) < 10
    seen = -1
    for token in stream.tokens.tolist():
        assert token <= seen + 1
        seen = max(seen, token)
    first, last = (
        np.bincount(part.tokens, minlength=seen + 1).argmax()
        for part in (take_sets(stream, 0, 500), take_sets(stream, 2_500, 3_000))
    )
    assert (first != last) == drifting


def test_bursts_repeat_a_set() -> None:
    stream = draw_sets(40)
    bursts = sets_of(add_bursts(stream, every=20, size=5))
    plain = sets_of(stream)
    for number, it in enumerate(bursts):
        source = number - number % 20 if number % 20 < 5 else number
        assert it.tokens == plain[source].tokens


def test_words_of_a_text_are_a_set() -> None:
    assert split_words("Don't KNOW, don't know!  42_x") == ("42", "don't", "know", "x")
    assert split_words("?!") == ()
    stream = encode_sets([("a", "b"), ("b", "c")])
    assert (stream.tokens.tolist(), stream.offsets.tolist()) == ([0, 1, 1, 2], [0, 2, 4])


def test_sorted_tokens_are_those_of_each_set() -> None:
    stream = draw_sets(100)
    ordered = sort_tokens(stream)
    assert sets_of(ordered) == sets_of(stream)
    for begin, end in zip(ordered.offsets[:-1], ordered.offsets[1:], strict=True):
        assert (np.diff(ordered.tokens[begin:end]) > 0).all()


@pytest.mark.slow
@pytest.mark.nightly
def test_both_orders_of_tokens_find_the_same_candidates() -> None:
    points = measure_orders(quick=True)
    assert tuple(point.stream for point in points) == STREAMS
    for point in points:
        shortest, newest = point.runs[SHORTEST].work, point.runs[NEWEST].work
        assert shortest[2] == newest[2] > 0
        assert shortest[0] < newest[0]


@pytest.mark.slow
@pytest.mark.nightly
def test_run_gives_whole_tables_and_pictures(tmp_path: Path) -> None:
    reports = swoop.run(quick=True)
    assert len(reports) == 8
    assert len(check_page(reports, tmp_path)) == 5
