"""The minimal stock after insertions and expiries, against the definition of relevant pairs.

The pairs are numbers alone, not those of sets: a stock can be large, with ties on purpose.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import NamedTuple

import numpy as np
import pytest

from correlation.topk.join.insertion import Candidates, insert_pairs_kernel
from correlation.topk.join.search import sort_candidates_kernel
from correlation.topk.join.stock import (
    StockColumns,
    count_ends_before_kernel,
    expire_pairs_kernel,
    find_oldest_kernel,
    make_stock,
    rank_pair_kernel,
)

# A power of two.
CAPACITY = 2048


class Triple(NamedTuple):
    """A pair: key, older set, newer set, and its end, the first set of the older set's time."""

    key: int
    older: int
    newer: int
    end: int

    @property
    def place(self) -> tuple[int, int, int]:
        """Sort key of the order of pairs."""
        return (-self.key, -self.older, self.newer)

    @property
    def end_place(self) -> tuple[int, int, int, int]:
        """Sort key of the order of ends."""
        return (self.end, self.key, self.older, -self.newer)


def relevant(pairs: set[Triple], k: int) -> list[Triple]:
    """Return the pairs that fewer than k pairs precede which end no earlier, in their order."""
    found, ends = [], list[int]()
    for pair in sorted(pairs, key=lambda it: it.place):
        if len(ends) - bisect_left(ends, pair.end) < k:
            found.append(pair)
            insort(ends, pair.end)
    return found


def is_relevant(pair: Triple, pairs: list[Triple], k: int) -> bool:
    """Return whether a pair is relevant among others."""
    return sum(it.place < pair.place and it.end >= pair.end for it in pairs) < k


class Walk:
    """A stock, and all pairs of valid sets; a set has the time of the one before by chance."""

    def __init__(self, k: int, seed: int, tied: float = 0) -> None:
        self.k, self.size, self.first, self.new = k, 0, 0, 0
        self.tied = tied
        # The first set of the time of each set, and the last set of each time.
        self.ends: list[int] = []
        self.time_last = np.zeros(CAPACITY, np.int32)
        self.stock = make_stock(CAPACITY)
        self.pairs: set[Triple] = set()
        self.rng = np.random.default_rng([2017, seed])

    def insert(self, drawn: dict[int, int]) -> int:
        """Insert a set with pairs of these keys by older set; return the rank of the change."""
        is_tied = self.new > self.first and self.rng.random() < self.tied
        self.ends.append(self.ends[-1] if is_tied else self.new)
        self.time_last[self.ends[-1]] = self.new
        added = {self.pair(key, older) for older, key in drawn.items()}
        kept = self.rows(self.stock.pairs)
        candidates = [it for it in added if is_relevant(it, kept, self.k)]
        rank = self.size
        if candidates:
            columns = Candidates(
                np.array([*(it.key for it in candidates), 0]),
                np.array([*(it.older for it in candidates), 0], np.int32),
                np.array([*(it.end for it in candidates), 0], np.int32),
                np.zeros(len(candidates) + 1, np.int32),
            )
            sort_candidates_kernel(columns, len(candidates))
            self.size, rank = insert_pairs_kernel(
                self.stock, self.size, self.k, columns, len(candidates), self.new
            )
        self.pairs |= added
        self.new += 1
        return int(rank)

    def pair(self, key: int, older: int) -> Triple:
        """Return a pair of the next set."""
        return Triple(key, older, self.new, self.ends[older])

    def expire(self, first: int) -> int:
        """Expire the sets of all times before that of a set; return the rank of the change."""
        self.first = first = self.ends[first] if first < self.new else first
        self.pairs = {it for it in self.pairs if it.older >= first}
        self.size, rank = expire_pairs_kernel(self.stock, self.size, first)
        return int(rank)

    def rows(self, pairs: StockColumns) -> list[Triple]:
        """Return the pairs in columns."""
        columns = (column[: self.size].tolist() for column in pairs)
        return [Triple(*row) for row in zip(*columns, strict=True)]

    def assert_minimal(self) -> None:
        """Compare S and E with the definition."""
        expected = relevant(self.pairs, self.k)
        assert self.rows(self.stock.pairs) == expected
        assert self.rows(self.stock.ends) == sorted(expected, key=lambda it: it.end_place)


def walked(k: int, seed: int, steps: int, keys: int, share: float, tied: float = 0) -> Walk:
    """Return the stock after insertions and expiries, each of which is checked."""
    walk = Walk(k, seed, tied)
    for step in range(steps):
        before = walk.rows(walk.stock.pairs)
        if step % 3 == 2 and walk.rng.random() < 0.4:
            rank = walk.expire(min(walk.first + int(walk.rng.integers(0, 3)), walk.new))
        else:
            older = range(walk.first, walk.new)
            rank = walk.insert(
                {it: int(walk.rng.integers(keys)) for it in older if walk.rng.random() < share}
            )
        walk.assert_minimal()
        now = walk.rows(walk.stock.pairs)
        assert now[:rank] == before[:rank]
        # The rank is that of the first change, or follows it only if nothing changed.
        assert now == before or now[: rank + 1] != before[: rank + 1]
    return walk


TIED = pytest.mark.parametrize("tied", [0, 0.4, 0.9])


@TIED
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("k", [1, 2, 5, 30])
def test_p_topk_insert_keeps_the_relevant_pairs_of_any_keys(k: int, seed: int, tied: float) -> None:
    walked(k, seed, 60, (2, 5, 1000)[seed % 3], (0.1, 0.5, 1.0)[seed // 3], tied)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_p_topk_insert_of_sets_of_one_time_keeps_k_pairs(k: int) -> None:
    walk = Walk(k, 2, tied=1)
    for new in range(40):
        walk.insert({it: int(walk.rng.integers(9)) for it in range(new)})
        walk.assert_minimal()
        assert walk.size == min(k, len(walk.pairs))


@TIED
@pytest.mark.parametrize("k", [1, 3, 25])
@pytest.mark.parametrize("seed", range(2))
def test_p_topk_insert_of_runs_between_candidates(k: int, seed: int, tied: float) -> None:
    # Pairs of earlier sets are better, so most are relevant. A new set has few candidates in a
    # large stock, most of which is passed in runs.
    walk = Walk(k, seed, tied)
    for new in range(80):
        share = 1.0 if new < 50 else 0.05
        older = [it for it in range(new) if walk.rng.random() < share]
        walk.insert({it: 5 * (100 - it) + int(walk.rng.integers(12)) for it in older})
        walk.assert_minimal()
    assert walk.size > (30 * k if tied == 0 else k)
    for first in range(0, 60, 10):
        walk.expire(first)
        walk.assert_minimal()


def test_p_topk_insert_step_by_step() -> None:
    # k = 2. Pairs (similarity, older, newer) of the sets 0 … 5; S and E are written out. The keys
    # on the right are those of the bars: the second best pair after each end.
    walk = Walk(2, 0)

    def shown(pairs: StockColumns) -> list[tuple[int, ...]]:
        return [it[:3] for it in walk.rows(pairs)]

    walk.insert({})
    walk.insert({0: 9})
    walk.insert({0: 7, 1: 5})
    # (9, 0, 1) and (7, 0, 2) are the list. (5, 1, 2) follows when set 0 expires.
    assert shown(walk.stock.pairs) == [(9, 0, 1), (7, 0, 2), (5, 1, 2)]
    assert shown(walk.stock.ends) == [(7, 0, 2), (9, 0, 1), (5, 1, 2)]
    # E[0] is aligned with S[1], E[1] with S[2]: a new pair with set 0 needs more than 7. The third
    # end has no counterpart: a pair with set 1 is relevant with any key.
    assert walk.insert({0: 7, 1: 4, 2: 3}) == 3
    assert shown(walk.stock.pairs) == [(9, 0, 1), (7, 0, 2), (5, 1, 2), (4, 1, 3), (3, 2, 3)]
    assert shown(walk.stock.ends) == [(7, 0, 2), (9, 0, 1), (4, 1, 3), (5, 1, 2), (3, 2, 3)]
    # (8, 2, 4) is second. The bar moves to the next end of a kept pair: (7, 0, 2) ends first of the
    # three, so it is dropped; (9, 0, 1) stays. After set 0, (8, 2, 4) and (5, 1, 2) are the list:
    # (4, 1, 3) ends with set 1 and is dropped. (3, 2, 3) is second after set 1.
    assert walk.insert({2: 8}) == 1
    assert shown(walk.stock.pairs) == [(9, 0, 1), (8, 2, 4), (5, 1, 2), (3, 2, 3)]
    assert shown(walk.stock.ends) == [(9, 0, 1), (5, 1, 2), (3, 2, 3), (8, 2, 4)]
    walk.assert_minimal()
    # Set 0 expires: the list loses its first pair, and (5, 1, 2) replaces it.
    assert walk.expire(1) == 0
    assert shown(walk.stock.pairs) == [(8, 2, 4), (5, 1, 2), (3, 2, 3)]
    # The best pair of the latest set makes all others irrelevant but one.
    assert walk.insert({4: 9, 3: 8}) == 0
    assert shown(walk.stock.pairs) == [(9, 4, 5), (8, 3, 5)]
    assert walk.expire(4) == 1
    assert shown(walk.stock.pairs) == [(9, 4, 5)]
    walk.assert_minimal()


@TIED
@pytest.mark.parametrize("k", [1, 2, 7, 500])
def test_p_topk_skyband_kth_pair_at_every_time(k: int, tied: float) -> None:
    walk = walked(k, 50 + k, 50, 6, 0.6, tied)
    stock = walk.rows(walk.stock.pairs)
    for end in [*walk.ends[walk.first :], walk.new]:
        rank = count_ends_before_kernel(walk.stock.ends.end, walk.size, end)
        assert rank == sum(it.end < end for it in stock)
        later = sorted((it for it in walk.pairs if it.end >= end), key=lambda it: it.place)
        kth = stock[k - 1 + rank : k + rank]
        assert kth == later[k - 1 : k]


@TIED
@pytest.mark.parametrize("k", [1, 2, 7, 500])
def test_p_topk_skyband_oldest_set_with_ties(k: int, tied: float) -> None:
    walk = walked(k, 60 + k, 50, 6, 0.6, tied)
    pairs = walk.stock.pairs
    stock, rank = walk.rows(walk.stock.pairs), 0
    for key in range(7, -1, -1):
        older, rank = find_oldest_kernel(
            pairs.key,
            pairs.older,
            pairs.end,
            walk.stock.ends.end,
            walk.size,
            k,
            walk.time_last,
            key,
            walk.first,
            rank,
        )
        needed = [
            it for it in range(walk.first, walk.new) if is_relevant(walk.pair(key, it), stock, k)
        ]
        assert needed == list(range(max(older, walk.first), walk.new))
        assert rank == max(sum(it.key >= key for it in stock) - k + 1, 0)


@TIED
@pytest.mark.parametrize("k", [1, 3, 10])
def test_p_topk_skyband_bars_never_fall(k: int, tied: float) -> None:
    walk, bars = Walk(k, 70 + k, tied), dict[int, int]()
    for step in range(60):
        if step % 4 == 3:
            walk.expire(min(walk.first + 1, walk.new))
        walk.insert({it: int(walk.rng.integers(9)) for it in range(walk.first, walk.new)})
        stock = walk.rows(walk.stock.pairs)
        for older in range(walk.first, walk.new):
            at = k - 1 + sum(it.end < walk.ends[older] for it in stock)
            bar = stock[at].key + (stock[at].older >= older) if at < len(stock) else 0
            assert bar >= bars.get(older, 0)
            bars[older] = bar


@pytest.mark.parametrize(
    ("key", "older", "rank"),
    [
        (9, 9, 0),
        (7, 2, 0),
        (7, 1, 1),
        (7, 0, 1),
        (6, 5, 1),
        (4, 4, 1),
        (4, 3, 3),
        (4, 0, 4),
        (1, 0, 4),
    ],
)
def test_rank_of_a_new_pair_is_behind_equal_pairs(key: int, older: int, rank: int) -> None:
    keys = np.array([7, 4, 4, 4, 0])
    assert rank_pair_kernel(keys, np.array([1, 3, 3, 1, 0], np.int32), 5, key, older) == rank
    assert rank_pair_kernel(keys, np.array([1, 3, 3, 1, 0], np.int32), 0, key, older) == 0
