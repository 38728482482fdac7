"""Trials of joins: their counts equal those of a comparison of all pairs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from correlation.buffers.columns import BytesColumn, SetsColumn
from correlation.topk import trial as limits
from correlation.topk.condition import TopKCondition
from correlation.topk.gathering import Sets
from correlation.topk.similarities import HAMMING, JACCARD
from correlation.topk.trial import (
    count_identical,
    count_max_valid,
    count_others,
    join_newest,
)
from tests.oracle.topk import TokenSet, ranked_pairs, relevant_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

ALL = 1_000
SELF = TopKCondition("c", 1, "left", "left", ALL, 10, JACCARD)
CROSSED = replace(SELF, b="right")


def make_sets(given: Sequence[TokenSet]) -> Sets:
    """Return sets, which are in their order, as they are gathered; ids have two bytes."""
    return Sets(
        np.array([it.time for it in given], np.int64),
        np.array([it.side for it in given], np.int8),
        np.array([it.side for it in given], np.int8),
        BytesColumn.from_list([b"%02d" % (it.number % 100) for it in given]),
        SetsColumn.from_list([sorted(b"%d" % token for token in it.tokens) for it in given]),
        np.zeros(len(given), np.int64),
    )


def draw_sets(seed: int, *, crossed: bool, count: int = 40) -> list[TokenSet]:
    """Return sets in their order, many of which are equal or come at the same time."""
    rng = np.random.default_rng(seed)
    times, sides = rng.integers(30, size=count), rng.integers(2 if crossed else 1, size=count)
    drawn = sorted(zip(times.tolist(), sides.tolist(), strict=True))
    return [
        TokenSet(number, time, frozenset(rng.integers(6, size=3).tolist()), side)
        for number, (time, side) in enumerate(drawn)
    ]


def others_of(
    given: Sequence[TokenSet], number: int, window: int, *, crossed: bool
) -> list[TokenSet]:
    """Return the valid sets with which a set may form a pair when it is added."""
    mine = given[number]
    return [
        it
        for it in given[:number]
        if it.time >= mine.time - window and (not crossed or it.side != mine.side)
    ]


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("window", [0, 4, 100])
@pytest.mark.parametrize("seed", range(4))
def test_counts_are_those_of_all_pairs(*, crossed: bool, window: int, seed: int) -> None:
    given = draw_sets(seed, crossed=crossed)
    condition = replace(CROSSED if crossed else SELF, window_us=window)
    found = join_newest(condition, [make_sets(given)])
    numbers = range(len(given))
    others = [others_of(given, it, window, crossed=crossed) for it in numbers]
    assert (found.sets, found.lists) == (len(given), 1)
    assert found.others == sum(map(len, others))
    # The list is never full, so no search ends early: it meets all sets that share a token.
    met = sum(bool(given[it].tokens & that.tokens) for it in numbers for that in others[it])
    assert (found.met, found.candidates) == (met, met)
    newer = [*numbers][len(given) // 2 :]
    assert found.newer_sets == len(newer)
    assert found.newer_others == sum(len(others[it]) for it in newer)
    assert found.newer_met == sum(
        bool(given[it].tokens & that.tokens) for it in newer for that in others[it]
    )
    equal = sum(any(given[it].tokens == that.tokens for that in others[it]) for it in numbers)
    assert found.identical_sets == equal
    valid = [sum(it.time >= given[at].time - window for it in given[: at + 1]) for at in numbers]
    assert (found.max_valid, found.last_valid) == (max(valid), valid[-1])
    last = [it for it in given if it.time >= given[-1].time - window]
    pairs = ranked_pairs("jaccard", last, crossed=crossed)
    assert found.listed_pairs == found.stock_pairs == len(pairs)
    assert found.identical_pairs == sum(it.value == 1 for it in pairs)
    assert (found.full_lists, found.last_value) == (0, None)


@pytest.mark.parametrize("k", [1, 3, 10])
def test_a_full_list_has_a_last_value_and_ends_searches(k: int) -> None:
    given = draw_sets(7, crossed=False)
    found = join_newest(replace(SELF, k=k, window_us=100), [make_sets(given)])
    pairs = ranked_pairs("jaccard", given, crossed=False)
    assert (found.listed_pairs, found.full_lists) == (k, 1)
    assert found.last_value == float(pairs[k - 1].value)
    assert found.identical_pairs == sum(it.value == 1 for it in pairs[:k])
    assert found.stock_pairs == len(relevant_pairs(pairs, k))
    assert found.met < sum(bool(a.tokens & b.tokens) for a in given for b in given[: a.number])


def test_a_minimum_excludes_pairs() -> None:
    given = draw_sets(3, crossed=False)
    condition = replace(SELF, window_us=100, similarity=HAMMING, minimum=Fraction(1))
    found = join_newest(condition, [make_sets(given)])
    pairs = ranked_pairs("hamming", given, crossed=False, minimum=Fraction(-1))
    assert found.listed_pairs == len(pairs) > 0


def test_lists_of_keys_are_added() -> None:
    one, two = draw_sets(1, crossed=False), draw_sets(2, crossed=False)
    condition = replace(SELF, per_key=True, k=2)
    found = join_newest(condition, [make_sets(one), make_sets(two)])
    alone = [join_newest(condition, [make_sets(it)]) for it in (one, two)]
    assert (found.lists, found.full_lists, found.last_value) == (2, 2, None)
    for name in (
        "sets",
        "newer_sets",
        "met",
        "candidates",
        "identical_sets",
        "listed_pairs",
        "empty_bytes",
    ):
        assert getattr(found, name) == sum(getattr(it, name) for it in alone), name
    # A set could form pairs with the sets of all keys, if it had theirs.
    mixed = sorted([*one, *two], key=lambda it: it.time)
    numbered = [replace(it, number=at) for at, it in enumerate(mixed)]
    assert found.others == sum(
        len(others_of(numbered, it, 10, crossed=False)) for it in range(len(mixed))
    )


def test_sets_of_a_beside_sets_of_b_at_one_time_come_first() -> None:
    times, sides = np.array([5, 5, 5], np.int64), np.array([1, 0, 1], np.int8)
    # Both sets of B find that of A.
    assert count_others(CROSSED, times, sides).tolist() == [1, 0, 1]
    assert count_others(SELF, times, sides * 0).tolist() == [0, 1, 2]
    assert count_max_valid(SELF, times) == 3


def test_an_equal_set_counts_while_it_is_valid() -> None:
    tokens = frozenset({1})
    given = [TokenSet(at, time, tokens) for at, time in enumerate((0, 10, 21, 22))]
    assert count_identical(SELF, make_sets(given)) == 2
    sides = [replace(it, side=side) for it, side in zip(given, (0, 0, 1, 1), strict=True)]
    assert count_identical(CROSSED, make_sets(sides)) == 0
    assert count_identical(replace(CROSSED, window_us=12), make_sets(sides)) == 2


@pytest.mark.parametrize(
    ("name", "value", "sets"),
    [("SETS_LIMIT", 7, 7), ("TOKENS_LIMIT", 10, 10), ("PAIRS_LIMIT", 18, 6)],
)
def test_only_the_newest_sets_are_joined(
    monkeypatch: pytest.MonkeyPatch, name: str, value: int, sets: int
) -> None:
    monkeypatch.setattr(limits, name, value)
    given = [TokenSet(at, at, frozenset({at % 3})) for at in range(40)]
    found = join_newest(replace(SELF, window_us=100), [make_sets(given)])
    assert (found.sets, found.max_valid) == (sets, sets)
    # Each token has a third of the sets, so 6 sets have 3 pairs that share one.
    assert found.listed_pairs == sum(
        a % 3 == b % 3 for a in range(40 - sets, 40) for b in range(40 - sets, a)
    )


def test_memory_grows_with_sets_and_pairs() -> None:
    small, large = (
        join_newest(
            replace(SELF, window_us=100), [make_sets(draw_sets(1, crossed=False, count=it))]
        )
        for it in (40, 400)
    )
    assert small.empty_bytes == large.empty_bytes > 16 * ALL
    # Names: an id of two bytes, 17 bytes and an offset; tokens: 4 bytes or more each.
    assert large.set_bytes > 400 * (2 + 17 + 8 + 57)
    assert large.stock_bytes >= 64 * large.stock_pairs - 64 * 64
    assert large.list_bytes == large.empty_bytes + large.set_bytes + large.stock_bytes
    assert small.list_bytes < large.list_bytes
