"""Parts of the search: orders, signatures, counts."""

from __future__ import annotations

import numpy as np
import pytest

from correlation.topk.join.insertion import Candidates
from correlation.topk.join.lists import SIZE
from correlation.topk.join.search import (
    CANDIDATES,
    COUNTED,
    PRECANDIDATES,
    _find_overlap_kernel,
    bound_overlap_kernel,
    count_bits_kernel,
    count_overlap_kernel,
    order_tokens_kernel,
    sign_token_kernel,
    sign_tokens_kernel,
    sort_candidates_kernel,
)
from correlation.topk.join.state import PLACE, SIGNATURE
from correlation.topk.similarities import SIMILARITIES
from tests.oracle.topk import TokenSet
from tests.support.topk_joins import NAMES, Case, to_block

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


@pytest.mark.parametrize("size", [1, 5, 100, 101, 300])
@pytest.mark.parametrize("shortest", [False, True])
def test_tokens_are_ordered_by_list_or_age(size: int, *, shortest: bool) -> None:
    rng = np.random.default_rng(size)
    tokens = np.arange(512, dtype=np.int32)
    rng.shuffle(tokens)
    lists = np.zeros((1024, 4), np.int32)
    lists[:, SIZE] = rng.integers(0, 9, 1024)
    order, weight = np.zeros(300, np.int32), np.zeros(300, np.int32)
    # The positions continue at the begin of the array.
    order_tokens_kernel(lists, tokens, 1000, size, 2, 1, shortest, order, weight)
    mine = [int(tokens[place % 512]) for place in range(1000, 1000 + size)]
    if shortest:
        # The sort is stable.
        assert order[:size].tolist() == sorted(mine, key=lambda it: lists[2 * it + 1, SIZE])
    else:
        assert order[:size].tolist() == sorted(mine, reverse=True)


@pytest.mark.parametrize("count", [0, 1, 6, 100, 101, 250])
def test_candidates_are_sorted_in_both_orders(count: int) -> None:
    rng = np.random.default_rng(count)
    older = rng.permutation(300)[:count].astype(np.int32)
    keys = rng.integers(0, 5, count)
    # Seven sets have the same time.
    end = older // 7 * 7
    candidates = Candidates(keys.copy(), older.copy(), end.copy(), np.zeros(count, np.int32))
    sort_candidates_kernel(candidates, count)
    pairs = sorted(zip(keys.tolist(), older.tolist(), end.tolist(), strict=True), reverse=True)
    columns = candidates.key, candidates.older, candidates.end
    assert list(zip(*(it.tolist() for it in columns), strict=True)) == pairs
    assert [pairs[it] for it in candidates.by_end.tolist()] == sorted(
        pairs, key=lambda it: (it[2], it[0], it[1])
    )


@pytest.mark.parametrize("value", [0, 1, -1, 2**62, -(2**63), 0x0F0F, 123456789123456789])
def test_bits_are_counted(value: int) -> None:
    assert count_bits_kernel(value) == (value % 2**64).bit_count()


def test_every_token_has_one_of_64_bits() -> None:
    tokens = np.array([*range(2000), 2**31 - 1], np.int32)
    bits = np.zeros(len(tokens), np.int64)
    sign_tokens_kernel(tokens, bits)
    assert bits.tolist() == [sign_token_kernel(token) for token in tokens]
    counts = np.unique(bits, return_counts=True)[1]
    assert (len(counts), int(counts.sum())) == (64, 2001)
    assert {count_bits_kernel(it) for it in bits.tolist()} == {1}
    # Evenly distributed.
    assert counts.max() < 2 * 2001 / 64


@pytest.mark.parametrize(
    ("rest", "expected"), [(5, 2), (1, 1), (2, 2)], ids=["signature", "position", "both"]
)
def test_overlap_is_bounded_by_sizes_position_and_signature(rest: int, expected: int) -> None:
    rows = np.zeros((2, 4), np.int64)
    rows[:, PLACE] = [(77 << 14) | 5, (3 << 14) | 4]
    # Three bits of the first set are missing in the second.
    rows[:, SIGNATURE] = [0b10111, -(2**63) + 0b01000 + 0b10000]
    assert bound_overlap_kernel(rows, 0, 1, rest) == expected
    assert bound_overlap_kernel(rows, 1, 0, 4) == 2


@pytest.mark.parametrize(
    ("begin", "size", "needed", "expected"),
    [(0, 64, 0, 32), (0, 64, 32, 32), (40, 40, 0, 20), (0, 64, 64, 16), (0, 8, 8, 4), (0, 8, 9, 0)],
)
def test_count_of_the_overlap_stops_when_it_is_too_small(
    begin: int, size: int, needed: int, expected: int
) -> None:
    # Positions are modulo 64; every second token is marked.
    tokens = np.arange(64, dtype=np.int32)
    mark = np.where(tokens % 2, 7, -1).astype(np.int32)
    assert count_overlap_kernel(tokens, mark, begin, size, 7, needed) == expected


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("size", "other"), [(40, 40), (33, 70), (700, 32), (3, 31)])
def test_overlap_needed_is_that_of_the_similarity(name: str, size: int, other: int) -> None:
    similarity = SIMILARITIES[name]
    possible = min(size, other)
    for overlap in range(1, possible + 1, 1 + possible // 20):
        for needed in (
            similarity.key(overlap, size, other),
            similarity.key(overlap, size, other) - 1,
        ):
            found = _find_overlap_kernel(similarity.key, size, other, possible, needed)
            assert found == (similarity.overlap_needed(needed, size, other) if other > 31 else 0)


def test_work_counts_sets_met_counted_and_candidates() -> None:
    sets = [
        TokenSet(0, 0, frozenset({1, 2, 3, 4})),
        TokenSet(1, 1, frozenset({1, 2, 3, 4})),
        TokenSet(2, 2, frozenset({1, 9})),
        TokenSet(3, 3, frozenset({5})),
        TokenSet(4, 4, frozenset({4, 7})),
    ]
    case = Case("jaccard", 1, 10, None, crossed=False, shortest=True, sets=sets)
    join = case.join()
    join.insert(to_block(sets[:2]), 1)
    assert join.work.tolist() == [1, 1, 1]
    # Set 2 reads the list of 9, which is empty, and that of 1 up to set 1: a pair with set 0 needs
    # more than 1. Set 3 meets no set. Set 4 meets set 1: a pair needs more than 1/5 and reaches 1/5
    # with one token, so the overlap is not counted.
    join.insert(to_block(sets[2:]), 4)
    assert join.work[[PRECANDIDATES, COUNTED, CANDIDATES]].tolist() == [3, 2, 2]
    assert join.stock_size == 2
