"""Reasons why lists do not contain pairs, against all pairs of the reference."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from correlation.explaining import FoundList
from correlation.topk.condition import TopKCondition
from correlation.topk.ranking import PlacedPair, SetPlace, describe_place, find_rank
from correlation.topk.similarities import SIMILARITIES
from tests.oracle.topk import Pair, TokenSet
from tests.support.topk_joins import Case, draw_case

COUNT = 30


def condition_of(case: Case) -> TopKCondition:
    """Return the condition of a join."""
    other = "right" if case.crossed else "left"
    return TopKCondition(
        "c", 1, "left", other, case.k, case.window, SIMILARITIES[case.name], minimum=case.minimum
    )


def set_place(it: TokenSet) -> SetPlace:
    """Return the place of a set; ids have the order of the sets."""
    # Sets of a time are of A, then of B.
    return it.time, it.side, b"%03d" % it.number


def placed(pair: Pair) -> PlacedPair:
    """Return a pair as explanations describe it."""
    r, s = pair.older, pair.newer
    sizes = len(r.tokens), len(s.tokens)
    return PlacedPair(len(r.tokens & s.tokens), sizes, set_place(r), set_place(s))


def item(rank: int, pair: Pair) -> dict[str, Any]:
    """Return a pair as an item of a present list."""
    names = ("left", "right")
    overlap, sizes, *sets = placed(pair)
    older, newer = (
        {"stream": names[side], "id": name.decode(), "time": time} for time, side, name in sets
    )
    return {
        "rank": rank,
        "overlap": overlap,
        "sizes": [*sizes],
        "older": older,
        "newer": newer,
    }


def sorted_case(seed: int) -> Case:
    """Draw a join whose sets of a time are of A, then of B."""
    case = draw_case(seed, COUNT)
    found = sorted(case.sets, key=lambda it: (it.time, it.side, it.number))
    sets = [TokenSet(i, it.time, it.tokens, it.side) for i, it in enumerate(found)]
    return Case(
        case.name, case.k, case.window, case.minimum, case.crossed, shortest=True, sets=sets
    )


def reason(told: str) -> str:
    """Return the reason that a sentence contains."""
    begins = {
        "the pair ended": "ended",
        "the newer set": "not in effect",
        "the pair can never": "never",
        "the list is full": "worse",
    }
    return next(name for begin, name in begins.items() if told.startswith(begin))


@pytest.mark.parametrize("begin", range(0, 40, 10))
def test_reasons_are_those_of_the_reference(begin: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(begin, begin + 10):
        seen += compared(sorted_case(seed))
    assert {*seen} == {"ended", "not in effect", "never", "worse"}


def compared(case: Case) -> Counter[str]:
    """Compare the reasons at many moments with the reference; return their numbers."""
    condition, k = condition_of(case), case.k
    last = case.sets[-1].time
    seen: Counter[str] = Counter()
    # Pairs that can never enter.
    barred: set[Pair] = set()
    # Pairs that are not within the window are not asked for.
    asked = [
        it
        for it in case.ranked(COUNT, case.sets[0].time)
        if it.newer.time - it.older.time <= case.window
    ]
    for now in range(0, last + 2, 2):
        count = sum(it.time <= now for it in case.sets)
        ranked = case.ranked(count, now)
        listed = ranked[:k]
        assert barred.isdisjoint(listed)
        found = FoundList(now, [item(rank, it) for rank, it in enumerate(listed, start=1)])
        for pair in asked:
            rank = find_rank(condition, placed(pair), found)
            assert rank == (listed.index(pair) + 1 if pair in listed else None)
            if rank is not None:
                continue
            told = describe_place(condition, placed(pair), found)
            why = reason(told)
            seen[why] += 1
            better = [it for it in listed if it.place < pair.place]
            ends = pair.older.time + case.window
            if why == "ended":
                assert ends < now
                continue
            assert ends >= now
            if why == "not in effect":
                # It may enter at once.
                assert pair.newer.time > now
                assert len(better) < k
                continue
            assert len(better) == k
            outlived = sum(it.older.time >= pair.older.time for it in better) == k
            assert outlived is (why == "never")
            if outlived:
                barred.add(pair)
            assert_needed(case, pair, listed[-1], told)
    return seen


def assert_needed(case: Case, pair: Pair, last: Pair, told: str) -> None:
    """Compare the overlap that is needed with all possible overlaps."""
    r, s = pair.older, pair.newer
    possible = []
    for overlap in range(1, min(len(r.tokens), len(s.tokens)) + 1):
        # Sets of these sizes with this overlap.
        first = frozenset(range(len(r.tokens)))
        second = frozenset(range(len(r.tokens) - overlap, len(r.tokens) - overlap + len(s.tokens)))
        sets = [TokenSet(r.number, r.time, first, 0), TokenSet(s.number, s.time, second, 1)]
        (changed,) = Case(case.name, 1, 10**9, None, True, True, sets).ranked(COUNT, 0)  # noqa: FBT003
        if changed.place < last.place:
            possible.append(overlap)
    if possible:
        assert f"an overlap of {possible[0]} (" in told
    else:
        assert "no overlap of" in told
