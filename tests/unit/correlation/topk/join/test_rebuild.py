"""Bulk construction: the k best keys, and memory."""

from __future__ import annotations

import numpy as np
import pytest

from correlation.topk.join.rebuild import _merge_best_kernel
from tests.oracle.topk import TokenSet
from tests.support.topk_joins import Case, found, numbers, stock_of, to_block

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


@pytest.mark.parametrize("seed", range(20))
def test_p_topk_rebuild_merges_the_best_keys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 9))
    best: list[tuple[int, int]] = []
    keys, ends = np.zeros(k, np.int64), np.zeros(k, np.int32)
    for end in range(12, 0, -1):
        new = sorted(rng.integers(0, 10, int(rng.integers(1, 12))).tolist(), reverse=True)
        kept, size = _merge_best_kernel(keys, ends, len(best), k, np.array(new), end, len(new))
        # Of equal keys, those that end later were found earlier.
        best = sorted([*best, *((-key, -end) for key in new)])[:k]
        assert (kept, size) == (sum(it == -end for _, it in best), len(best))
        assert keys[:size].tolist() == [-key for key, _ in best]
        assert ends[:size].tolist() == [-it for _, it in best]


def test_rebuild_replaces_sets_and_numbers_continue() -> None:
    sets = [TokenSet(i, i, frozenset({i % 3, 7})) for i in range(30)]
    case = Case("jaccard", 4, 100, None, crossed=False, shortest=True, sets=sets)
    join = case.join()
    join.insert(to_block(sets[20:]), 29)
    join.rebuild(to_block(sets))
    assert (join.first, join.next) == (10, 40)
    assert found(join.list_pairs(), 10) == numbers(case.ranked(30, 29)[:4])
    # Far fewer sets than before: nothing of them is left.
    join.rebuild(to_block(sets[:2]))
    assert (join.first, join.next) == (40, 42)
    assert found(stock_of(join)) == [(40, 41)]
    assert stock_of(join).key.tolist() == [2**54 // 3]


def test_memory_is_counted_and_bounded_by_the_window() -> None:
    sets = [TokenSet(i, i, frozenset({i % 7, 7 + i % 5})) for i in range(400)]
    case = Case("jaccard", 4, 20, None, crossed=False, shortest=True, sets=sets)
    join = case.join()
    empty = join.nbytes
    join.insert(to_block(sets[:100]), 99)
    full = join.nbytes
    assert full > empty > 0
    join.insert(to_block(sets[100:]), 399)
    assert join.nbytes == full
