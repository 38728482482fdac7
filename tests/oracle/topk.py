"""Reference of top-k set-similarity joins: all pairs of valid sets, compared with rational numbers.

The order of pairs is that of docs/topk.md: similarity descending, then the pair whose older set
comes later, then the pair whose newer set comes earlier.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations


@dataclass(frozen=True)
class TokenSet:
    """A set with its number in the order of sets, its time and its stream (0 or 1)."""

    number: int
    time: int
    tokens: frozenset[int]
    side: int = 0


@dataclass(frozen=True)
class Pair:
    """A pair of sets; `value` has the order of the similarity."""

    value: Fraction
    older: TokenSet
    newer: TokenSet

    @property
    def place(self) -> tuple[Fraction, int, int]:
        """Sort key: smaller is better."""
        return (-self.value, -self.older.number, self.newer.number)


def similarity(name: str, r: frozenset[int], s: frozenset[int]) -> Fraction:
    """Return a number with the order of the similarity; cosine is squared, hamming negative."""
    overlap = len(r & s)
    if name == "jaccard":
        return Fraction(overlap, len(r | s))
    if name == "cosine":
        return Fraction(overlap * overlap, len(r) * len(s))
    if name == "dice":
        return Fraction(2 * overlap, len(r) + len(s))
    if name == "overlap":
        return Fraction(overlap)
    if name == "hamming":
        return Fraction(-len(r ^ s))
    if name == "containment":
        return Fraction(overlap, min(len(r), len(s)))
    raise ValueError(name)


def ranked_pairs(
    name: str, valid: Iterable[TokenSet], *, crossed: bool, minimum: Fraction | None = None
) -> list[Pair]:
    """Return all pairs that share a token, best first.

    `crossed` pairs are of different streams. `minimum` is a minimum of `similarity`.
    """
    pairs = [
        Pair(similarity(name, r.tokens, s.tokens), r, s)
        for r, s in combinations(sorted(valid, key=lambda it: it.number), 2)
        if r.tokens & s.tokens and (not crossed or r.side != s.side)
    ]
    return sorted(
        (it for it in pairs if minimum is None or it.value >= minimum), key=lambda it: it.place
    )


def relevant_pairs(pairs: Sequence[Pair], k: int) -> list[Pair]:
    """Return the pairs that fewer than k better pairs outlive; pairs end with their older sets."""
    relevant, ends = [], list[int]()
    for pair in pairs:
        # The ends of the better pairs are in order: those from this place on are not earlier.
        if len(ends) - bisect_left(ends, pair.older.time) < k:
            relevant.append(pair)
        insort(ends, pair.older.time)
    return relevant
