"""The list of one key: its dictionary forgets the tokens that no valid set contains."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from correlation.buffers.columns import BytesColumn, SetsColumn
from correlation.limits import UNKNOWN_WATERMARK
from correlation.topk import listed
from correlation.topk.condition import TopKCondition
from correlation.topk.gathering import Sets
from correlation.topk.listed import KeyedList
from correlation.topk.similarities import JACCARD
from tests.oracle.topk import TokenSet
from tests.support.topk_joins import Case, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

K, WINDOW = 20, 15
# Windows of new tokens, and sets of each.
WINDOWS, OF_WINDOW = 40, 12
FEW_TOKENS = 16
LONG = frozenset(range(1000, 1040))


def make_sets(given: Sequence[TokenSet]) -> Sets:
    """Return sets as they are gathered; ids are numbers."""
    return Sets(
        np.array([it.time for it in given], np.int64),
        np.array([it.side for it in given], np.int8),
        np.array([it.side for it in given], np.int8),
        BytesColumn.from_list([b"%d" % it.number for it in given]),
        SetsColumn.from_list([sorted(b"%d" % token for token in it.tokens) for it in given]),
        np.full(len(given), UNKNOWN_WATERMARK),
    )


def draw_sets(*, crossed: bool) -> list[TokenSet]:
    """Draw sets of tokens of their own window, of two frequent tokens, and of former windows."""
    rng = np.random.default_rng([2021, crossed])
    sets = []
    for number in range(WINDOWS * OF_WINDOW):
        window = number // OF_WINDOW
        own = 10 * window + rng.choice(10, 3, replace=False)
        # Some tokens come again after all their sets have expired.
        former = 10 * max(window - 4, 0) + rng.choice(10, int(rng.integers(2)))
        frequent = 10_000 + rng.choice(2, int(rng.integers(2)))
        tokens = frozenset(np.concatenate([own, former, frequent]).tolist())
        side = int(rng.integers(2)) if crossed else 0
        sets.append(TokenSet(number, number * WINDOW // OF_WINDOW, tokens, side))
    # One set has many tokens.
    sets[60] = replace(sets[60], tokens=sets[60].tokens | LONG)
    return sets


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("shortest", [False, True])
def test_dictionary_forgets_tokens_of_expired_sets(
    monkeypatch: pytest.MonkeyPatch, *, crossed: bool, shortest: bool
) -> None:
    monkeypatch.setattr(listed, "_FEW_TOKENS", FEW_TOKENS)
    sets = draw_sets(crossed=crossed)
    case = Case("jaccard", K, WINDOW, None, crossed=crossed, shortest=shortest, sets=sets)
    b = "right" if crossed else "left"
    condition = TopKCondition("c", 1, "left", b, K, WINDOW, JACCARD, shortest=shortest)
    found = KeyedList(condition, crossed=crossed)
    most, reused = FEW_TOKENS, 0
    for begin, end in pairwise([*range(0, len(sets), 7), len(sets)]):
        now = sets[end - 1].time
        before = len(names_of(found))
        found.insert(make_sets(sets[begin:end]), now)
        pairs = [(int(it.older.id), int(it.newer.id)) for it in found.pairs]
        assert pairs == numbers(case.ranked(end, now)[:K])
        valid = {token for it in case.valid(end, now) for token in it.tokens}
        names = {int(it) for it in tokens_of(found)}
        assert valid <= names
        most = max(most, 2 * len(valid))
        assert len(names) < most
        reused += len(names_of(found)) == before
        if begin == len(sets) // 2 // 7 * 7:
            found.rebuild(make_sets(case.valid(end, now)))
            assert {int(it) for it in tokens_of(found)} == valid
            assert [(int(it.older.id), int(it.newer.id)) for it in found.pairs] == pairs
    # More tokens came than the dictionary ever held; most blocks got numbers of forgotten tokens.
    assert len({token for it in sets for token in it.tokens}) > 2 * most
    assert len(names_of(found)) < 2 * most
    assert reused > 40


def tokens_of(found: KeyedList) -> set[bytes]:
    """Return the tokens that the dictionary numbers."""
    return {*found._dictionary._numbers}  # noqa: SLF001 - not in any output


def names_of(found: KeyedList) -> list[bytes]:
    """Return the tokens by number, those that are forgotten included."""
    return found._dictionary._names  # noqa: SLF001 - not in any output
