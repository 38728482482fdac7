"""The top-k join finds the pairs of the exact reference after every insertion and expiry.

Sets of few tokens from a small universe have many ties: equal similarities, and identical sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from correlation.topk.join import join as module
from correlation.topk.join.changes import EXPIRY, SET
from correlation.topk.join.join import Changes, TopKJoin
from tests.oracle.topk import Pair, TokenSet, relevant_pairs
from tests.support.topk_joins import (
    FULL_COUNT,
    NAMES,
    Case,
    by_end,
    draw_case,
    draw_cuts,
    draw_full_case,
    ends_of,
    found,
    numbers,
    stock_of,
    to_block,
)

# Changes of an event: event, time, reason, entered, older set, newer set.
Change = tuple[int, int, int, bool, int, int]


def assert_exact(join: TopKJoin, case: Case, count: int, now: int) -> None:
    """Compare stock, both its orders and the list with the reference."""
    base = join.next - count
    ranked = case.ranked(count, now)
    relevant = relevant_pairs(ranked, case.k)
    assert found(stock_of(join), base) == numbers(relevant)
    assert found(ends_of(join), base) == numbers(by_end(relevant))
    assert found(join.list_pairs(), base) == numbers(ranked[: case.k])
    valid = case.valid(count, now)
    assert join.first - base == (valid[0].number if valid else count)
    assert len(relevant) <= case.k * len(valid)


@pytest.mark.parametrize("seed", range(40))
def test_p_topk_insert_keeps_the_relevant_pairs(seed: int) -> None:
    case, join = draw_case(seed, 60), draw_case(seed, 60).join()
    for begin, end in draw_cuts(seed, 60):
        now = case.sets[end - 1].time + seed % 3
        # The next set is not older than the time up to which sets expire.
        now = min(now, case.sets[end].time) if end < 60 else now
        join.insert(to_block(case.sets[begin:end]), now)
        assert_exact(join, case, end, now)


@pytest.mark.parametrize("seed", range(30))
def test_p_topk_rebuild_equals_single_insertions(seed: int) -> None:
    case, join = draw_case(seed, 60), draw_case(seed, 60).join()
    for begin, end in draw_cuts(seed, 60):
        now = case.sets[end - 1].time
        join.insert(to_block(case.sets[begin:end]), now)
        assert_exact(join, case, end, now)
        if begin % 3 == 0:
            # Single insertions follow, into the same join or into a new one.
            join = case.join() if begin % 2 else join
            join.rebuild(to_block(case.valid(end, now)))
            assert_exact(join, case, end, now)
            join.log_changes(now)
            assert len(join.take_changes().event) == 0


@pytest.mark.parametrize("seed", range(20))
def test_p_topk_bound_registered_similarity_is_exact(seed: int) -> None:
    # Its key is a function of another package, which the compiled kernels take as an argument: also
    # for sets that are larger than those of the table of keys.
    longest, count = ((8, 60), (50, 50), (100, 30))[seed % 3]
    case = draw_case(seed, count, longest, name="containment")
    join = case.join()
    for begin, end in draw_cuts(seed, count):
        now = case.sets[end - 1].time
        join.insert(to_block(case.sets[begin:end]), now)
        assert_exact(join, case, end, now)
        if begin % 3 == 0:
            join.rebuild(to_block(case.valid(end, now)))
            assert_exact(join, case, end, now)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("tied", [4, 12, 60])
def test_p_topk_insert_keeps_the_relevant_pairs_of_sets_of_few_times(seed: int, tied: int) -> None:
    drawn = draw_case(seed, 60, k=(1, 2, 5, 20)[seed % 4])
    times = [drawn.sets[number // tied * tied].time for number in range(60)]
    sets = [replace(it, time=time) for it, time in zip(drawn.sets, times, strict=True)]
    case = replace(drawn, sets=sets)
    join, bulk = case.join(), case.join()
    # A block may end within a time.
    for begin, end in draw_cuts(seed, 60):
        now = sets[end - 1].time
        join.insert(to_block(sets[begin:end]), now)
        assert_exact(join, case, end, now)
        bulk.rebuild(to_block(case.valid(end, now)))
        assert_exact(bulk, case, end, now)
    now = sets[-1].time + case.window
    join.insert(to_block([]), now)
    assert_exact(join, case, 60, now)
    join.insert(to_block([]), now + 1)
    assert (join.first, join.stock_size) == (60, 0)


@pytest.mark.parametrize("single", [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("k", [100, 1000])
@pytest.mark.parametrize("name", NAMES)
def test_long_list_is_exact_while_sets_expire(
    name: str, k: int, *, crossed: bool, single: bool
) -> None:
    case = draw_full_case(name, k, crossed=crossed)
    join, full, listed = case.join(every=True), 0, set[tuple[int, int]]()
    cuts = pairwise(range(FULL_COUNT + 1)) if single else draw_cuts(k, FULL_COUNT)
    is_built, now = False, case.sets[0].time
    for begin, end in cuts:
        stayed = case.ranked(begin, case.sets[end - 1].time)
        full += k < len(stayed) < len(case.ranked(begin, now))
        now = case.sets[end - 1].time
        join.insert(to_block(case.sets[begin:end]), now)
        assert_exact(join, case, end, now)
        listed = apply(listed, join.take_changes(), join.next - end)
        assert listed == {*numbers(case.ranked(end, now)[:k])}
        if not is_built and full > 2:
            is_built = True
            join.rebuild(to_block(case.valid(end, now)))
            assert_exact(join, case, end, now)
    # Pairs expired beside more than k others, also after the rebuild.
    assert is_built
    assert full > 4


@pytest.mark.parametrize("k", [1, 2, 5])
def test_stock_of_sets_of_one_time_is_the_list(k: int) -> None:
    sets = [TokenSet(i, 7, frozenset({i % 3, 3 + i % 5, 8})) for i in range(60)]
    case = Case("jaccard", k, 10, None, crossed=False, shortest=True, sets=sets)
    join, bulk = case.join(), case.join()
    for begin in range(0, 60, 5):
        join.insert(to_block(sets[begin : begin + 5]), 7)
        bulk.rebuild(to_block(sets[: begin + 5]))
        assert (join.stock_size, bulk.stock_size) == (k, k)
        assert found(join.list_pairs()) == found(stock_of(join))


@pytest.mark.parametrize("seed", range(15))
def test_changes_of_every_event_are_logged_with_reason_and_time(seed: int) -> None:
    case, join = draw_case(seed, 50), draw_case(seed, 50).join(every=True)
    expected = list(events(case))
    logged: list[Change] = []
    for begin, end in draw_cuts(seed, 50):
        join.insert(to_block(case.sets[begin:end]), case.sets[end - 1].time)
        logged += rows(join.take_changes())
    assert logged == expected


def events(case: Case) -> Iterator[Change]:
    """Yield the changes of the list by each expiry and insertion, from the reference."""
    event, before = 0, list[Pair]()
    last = case.sets[0].time
    for count, new in enumerate(case.sets):
        for time in sorted({it.time for it in case.valid(count, last)}):
            if time >= new.time - case.window:
                break
            event += 1
            now = case.ranked(count, time + case.window + 1)[: case.k]
            yield from differences(event, time + case.window, EXPIRY, before, now)
            before = now
        event += 1
        now = case.ranked(count + 1, new.time)[: case.k]
        yield from differences(event, new.time, SET, before, now)
        before, last = now, new.time


def differences(
    event: int, time: int, reason: int, before: list[Pair], now: list[Pair]
) -> Iterator[Change]:
    """Yield the changes between two lists, in the order of pairs."""
    for pair in sorted({*before} ^ {*now}, key=lambda it: it.place):
        yield (event, time, reason, pair in now, pair.older.number, pair.newer.number)


def rows(changes: Changes) -> list[Change]:
    """Return logged changes as rows."""
    columns = (changes.event, changes.time_us, changes.reason, changes.entered)
    older, newer = changes.pairs.older, changes.pairs.newer
    return list(zip(*(it.tolist() for it in (*columns, older, newer)), strict=True))


@pytest.mark.parametrize("seed", range(15))
def test_changes_of_blocks_are_net_with_reason(seed: int) -> None:
    case, join = draw_case(seed, 60), draw_case(seed, 60).join()
    before: list[Pair] = []
    for begin, end in draw_cuts(seed, 60):
        now = case.sets[end - 1].time
        join.insert(to_block(case.sets[begin:end]), now)
        join.log_changes(now)
        listed = case.ranked(end, now)[: case.k]
        expected = [
            (
                now,
                SET if (pair.newer.number >= begin if pair in listed else not expired) else EXPIRY,
                pair in listed,
                pair.older.number,
                pair.newer.number,
            )
            for pair in sorted({*before} ^ {*listed}, key=lambda it: it.place)
            for expired in [pair.older.time < now - case.window]
        ]
        assert [it[1:] for it in rows(join.take_changes())] == expected
        before = listed


@pytest.mark.parametrize("k", [1, 7, 1000])
def test_identical_sets_are_ordered_by_end_and_age(k: int) -> None:
    sets = [TokenSet(i, i // 3, frozenset([(1,), (1, 2), (3,)][i % 3])) for i in range(48)]
    case = Case("jaccard", k, 11, None, crossed=False, shortest=True, sets=sets)
    join = case.join()
    for begin in range(0, 48, 4):
        join.insert(to_block(sets[begin : begin + 4]), sets[begin + 3].time)
        assert_exact(join, case, begin + 4, sets[begin + 3].time)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("longest", "count"), [(50, 60), (100, 40), (2000, 24)])
def test_sets_of_many_tokens_are_joined(seed: int, longest: int, count: int) -> None:
    case = draw_case(seed, count, longest, k=3)
    join = case.join()
    for begin, end in draw_cuts(seed, count):
        join.insert(to_block(case.sets[begin:end]), case.sets[end - 1].time)
        assert_exact(join, case, end, case.sets[end - 1].time)


@pytest.mark.parametrize(
    ("name", "minimum"),
    [("jaccard", "0.6"), ("cosine", "0.75"), ("dice", "0.75"), ("overlap", 30), ("hamming", 20)],
)
def test_pairs_of_large_sets_may_have_exactly_the_minimum(name: str, minimum: str | int) -> None:
    # 30 and 29 common tokens of 40.
    sets = [
        TokenSet(i, i, frozenset(range(begin, begin + 40))) for i, begin in enumerate((11, 21, 0))
    ]
    case = Case(name, 5, 9, Fraction(minimum), crossed=False, shortest=False, sets=sets)
    join = case.join()
    join.insert(to_block(sets), 2)
    assert found(join.list_pairs()) == [(0, 1)]
    assert_exact(join, case, 3, 2)


@pytest.mark.parametrize("seed", range(5))
def test_numbers_are_reduced_before_they_exceed_int32(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NUMBER_LIMIT", 64)
    case = draw_case(seed, 200, k=4)
    case = Case(case.name, 4, 8, case.minimum, case.crossed, case.shortest, case.sets)
    join, reduced = case.join(every=bool(seed % 2)), 0
    listed: set[tuple[int, int]] = set()
    for begin, end in draw_cuts(seed, 200):
        now = case.sets[end - 1].time
        held = join.first
        join.insert(to_block(case.sets[begin:end]), now)
        reduced += begin >= 64 and held > 0
        assert_exact(join, case, end, now)
        join.log_changes(now)
        changes = join.take_changes()
        listed = apply(listed, changes)
        assert listed == {*numbers(case.ranked(end, now)[:4])}
    assert reduced > 0
    assert join.next == 200


def apply(listed: set[tuple[int, int]], changes: Changes, base: int = 0) -> set[tuple[int, int]]:
    """Return the list after changes; each must be possible."""
    for (_, _, _, entered, _, _), pair in zip(
        rows(changes), found(changes.pairs, base), strict=True
    ):
        assert (pair in listed) is not entered
        listed = listed ^ {pair}
    return listed


@pytest.mark.parametrize("shortest", [False, True])
def test_token_numbers_may_be_reused_after_their_sets_expired(*, shortest: bool) -> None:
    rng = np.random.default_rng(7)
    meanings = iter(range(10**6))
    sets: list[TokenSet] = []
    blocks: list[list[TokenSet]] = []
    for epoch in range(6):
        # The numbers of the tokens are 0 … 9 in each epoch; their meanings are new.
        meaning = [next(meanings) for _ in range(10)]
        start = len(sets)
        drawn = [rng.choice(10, 4, replace=False).tolist() for _ in range(12)]
        times = [20 * epoch + i // 2 for i in range(12)]
        encoded = [
            TokenSet(start + i, times[i], frozenset(tokens)) for i, tokens in enumerate(drawn)
        ]
        sets += [
            TokenSet(it.number, it.time, frozenset(meaning[token] for token in it.tokens))
            for it in encoded
        ]
        blocks.append(encoded)
    case = Case("dice", 3, 10, None, crossed=False, shortest=shortest, sets=sets)
    join = case.join()
    for epoch, (before, block) in enumerate(pairwise([[], *blocks])):
        assert not before or join.stock_size > 0
        join.insert(to_block(block), block[-1].time)
        assert_exact(join, case, 12 * (epoch + 1), block[-1].time)


def test_empty_blocks_expire_sets() -> None:
    sets = [TokenSet(0, 0, frozenset({1})), TokenSet(1, 3, frozenset({1}))]
    join = Case("overlap", 2, 5, None, crossed=False, shortest=True, sets=sets).join(every=True)
    empty = to_block([])
    join.insert(empty, -1)
    join.insert(to_block(sets), 3)
    for now, first, size in ((5, 0, 1), (6, 1, 0), (8, 1, 0), (9, 2, 0)):
        join.insert(empty, now)
        assert (join.first, join.next, join.stock_size) == (first, 2, size)
    assert rows(join.take_changes()) == [(2, 3, SET, True, 0, 1), (3, 5, EXPIRY, False, 0, 1)]
    join.rebuild(empty)
    assert (join.first, join.next, join.stock_size) == (2, 2, 0)
