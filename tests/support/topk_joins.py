"""Random sets for tests of top-k joins, and their pairs as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from correlation.topk.join.join import Pairs, TopKJoin
from correlation.topk.join.state import Block
from correlation.topk.similarities import SIMILARITIES
from tests.oracle.topk import Pair, TokenSet, ranked_pairs
from tests.toy.toy_similarity import CONTAINMENT

# Similarities of the package, and one that another package registers.
JOINED = {**SIMILARITIES, CONTAINMENT.name: CONTAINMENT}
NAMES = ("jaccard", "cosine", "dice", "overlap", "hamming")

# Number of sets of a case of `draw_full_case`.
FULL_COUNT = 120


@dataclass(frozen=True)
class Case:
    """A join and its sets."""

    name: str
    k: int
    window: int
    minimum: Fraction | None
    crossed: bool
    shortest: bool
    sets: Sequence[TokenSet]

    def join(self, *, every: bool = False) -> TopKJoin:
        """Return the join, empty."""
        return TopKJoin(
            self.k,
            self.window,
            JOINED[self.name],
            minimum=self.minimum,
            crossed=self.crossed,
            shortest=self.shortest,
            every=every,
        )

    def valid(self, count: int, now: int) -> list[TokenSet]:
        """Return those of the first sets that are valid."""
        return [it for it in self.sets[:count] if it.time >= now - self.window]

    def ranked(self, count: int, now: int) -> list[Pair]:
        """Return all pairs of the valid sets with numbers below `count`, in the order of pairs."""
        low = now - self.window
        return [it for it in self._all_ranked if it.newer.number < count and it.older.time >= low]

    @cached_property
    def _all_ranked(self) -> list[Pair]:
        """All pairs of the sets; their order does not depend on which of them are valid."""
        minimum = self.minimum
        if minimum is not None and self.name == "hamming":
            minimum = -minimum
        elif minimum is not None and self.name == "cosine":
            minimum = minimum * minimum
        return ranked_pairs(self.name, self.sets, crossed=self.crossed, minimum=minimum)


def draw_case(
    seed: int, count: int, longest: int = 8, k: int | None = None, name: str | None = None
) -> Case:
    """Draw a join and its sets; the seed determines the similarity if it is not named."""
    rng = np.random.default_rng([2017, seed])
    name = name or NAMES[seed % len(NAMES)]
    universe = int(rng.choice([3, 6, 12, 60])) + longest - 8
    crossed = bool(rng.random() < 0.4)
    minimum = None
    if rng.random() < 0.4:
        is_count = name in {"overlap", "hamming"}
        minimum = Fraction(int(rng.integers(0, 11)), 1 if is_count else 10)
    times = np.cumsum(rng.choice([0, 0, 1, 1, 2, 5], count))
    longest = min(int(rng.choice([1, 3, longest, longest])), universe)
    sets = [
        TokenSet(
            number,
            int(time),
            frozenset(
                rng.choice(universe, int(rng.integers(1, longest + 1)), replace=False).tolist()
            ),
            int(rng.integers(2)) if crossed else 0,
        )
        for number, time in enumerate(times)
    ]
    return Case(
        name,
        k or int(rng.choice([1, 2, 3, 5, 10, 40, 1000])),
        int(rng.choice([0, 1, 3, 8, 20, 10**6])),
        minimum,
        crossed,
        bool(rng.random() < 0.5),
        sets,
    )


def draw_full_case(name: str, k: int, *, crossed: bool) -> Case:
    """Draw a join whose valid sets have more than k pairs, also when sets expire.

    The similarities of many pairs are equal, and some sets are identical.
    """
    rng = np.random.default_rng([2020, k, crossed])
    times = np.cumsum(rng.choice([0, 0, 1, 1, 3], FULL_COUNT))
    sets: list[TokenSet] = []
    for number, time in enumerate(times.tolist()):
        tokens = frozenset(rng.choice(9, int(rng.integers(2, 7)), replace=False).tolist())
        if number and rng.random() < 0.2:
            tokens = sets[int(rng.integers(number))].tokens
        sets.append(TokenSet(number, time, tokens, int(rng.integers(2)) if crossed else 0))
    # About as many sets are valid, since a set follows another after a unit of time on average.
    window = {100: 40, 1000: 80}[k]
    return Case(name, k, window, None, crossed, shortest=True, sets=sets)


def draw_cuts(seed: int, count: int) -> list[tuple[int, int]]:
    """Cut a number of sets into blocks."""
    rng = np.random.default_rng([2018, seed])
    ends = np.cumsum(rng.choice([1, 1, 2, 5, 17], count))
    ends = np.append(ends[ends < count], count)
    return list(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True))


def to_block(sets: Sequence[TokenSet]) -> Block:
    """Return the sets as a block; their numbers are not part of it."""
    return Block(
        np.array([it.time for it in sets], np.int64),
        np.array([it.side for it in sets], np.int8),
        np.cumsum([0, *(len(it.tokens) for it in sets)], dtype=np.int64),
        np.array([token for it in sets for token in sorted(it.tokens)], np.int32),
    )


def numbers(pairs: Iterable[Pair]) -> list[tuple[int, int]]:
    """Return the numbers of the sets of pairs."""
    return [(it.older.number, it.newer.number) for it in pairs]


def found(pairs: Pairs, base: int = 0) -> list[tuple[int, int]]:
    """Return the numbers of the sets of pairs that a join found, minus a base."""
    return list(zip((pairs.older - base).tolist(), (pairs.newer - base).tolist(), strict=True))


def by_end(pairs: Iterable[Pair]) -> list[Pair]:
    """Return pairs in the order of ends: end ascending, then the reverse of their order."""
    return sorted(pairs, key=lambda it: (it.older.time, *(-part for part in it.place)))


def stock_of(join: TopKJoin) -> Pairs:
    """Return the stock in the order of pairs."""
    return join._numbered(join._state.stock.pairs, join.stock_size)  # noqa: SLF001 - for judges only


def ends_of(join: TopKJoin) -> Pairs:
    """Return the stock in the order of ends: pairs that end first, and of these the worst."""
    return join._numbered(join._state.stock.ends, join.stock_size)  # noqa: SLF001 - for judges only
