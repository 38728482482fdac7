"""A trial of a top-k join over the sets of a sample, which counts work and memory.

Problem. Find what the join of a condition does with given sets: how many sets its searches meet,
how much memory its arrays take, and which pairs its lists hold.

Algorithm. The real join runs over the newest sets, with the window of the condition. Work and
memory are those of the kernels that the job runs.

Cost. The join over at most SETS_LIMIT sets, TOKENS_LIMIT tokens and PAIRS_LIMIT pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.topk.condition import TopKCondition
from correlation.topk.gathering import Sets
from correlation.topk.join.join import TopKJoin
from correlation.topk.join.search import PRECANDIDATES
from correlation.topk.join.state import Block

# Limits of the sets that are joined: they bound time and memory of a trial. A stock of n sets has
# at most k · n pairs, and n² / 2.
SETS_LIMIT = 10_000
TOKENS_LIMIT = 500_000
PAIRS_LIMIT = 1_000_000
# Sets inserted at once: the interpreter can run other threads between two insertions.
_BLOCK_SETS = 64
# Bytes of a token in the dictionary of a list, beside the join's arrays: object, name and number.
_TOKEN_BYTES = 200
# Bytes of a set for results, beside its id: time, side and size.
_NAME_BYTES = 17
_SIDES = 2


@dataclass(slots=True)
class Trial:
    """Counts of the joins of a sample, over the lists of all keys.

    Parameters
    ----------
    sets, lists : int
        Number of sets, and of lists.
    newer_sets : int
        Number of sets in the newer half of the sets.
    others, newer_others : int
        Sum, over all sets and over those of the newer half, of the number of valid sets with which
        the set could form a pair when it was added, if its key were not considered.
    max_valid, last_valid : int
        Maximum number of valid sets, and the number at the end.
    met, newer_met : int
        Number of sets that searches met: those for all sets, and for those of the newer half.
    candidates : int
        Number of pairs that searches passed to the stock.
    stock_pairs : int
        Number of pairs in the stock at the end.
    identical_sets : int
        Number of sets that equal a valid set with which they form a pair.
    listed_pairs, identical_pairs, full_lists : int
        Number of pairs in the lists at the end, those of equal sets, and number of lists of k.
    last_value : float or None
        Similarity or distance of the k-th pair of the only list; None: several lists, or a list
        with less than k pairs.
    empty_bytes : int
        Memory of empty joins, in bytes.
    set_bytes, stock_bytes : int
        Further memory of sets with their tokens, and of the stock, in bytes.
    """

    sets: int = 0
    lists: int = 0
    newer_sets: int = 0
    others: int = 0
    newer_others: int = 0
    max_valid: int = 0
    last_valid: int = 0
    met: int = 0
    newer_met: int = 0
    candidates: int = 0
    stock_pairs: int = 0
    identical_sets: int = 0
    listed_pairs: int = 0
    identical_pairs: int = 0
    full_lists: int = 0
    last_value: float | None = None
    empty_bytes: int = 0
    set_bytes: int = 0
    stock_bytes: int = 0

    @property
    def list_bytes(self) -> int:
        """Memory of the lists, in bytes."""
        return self.empty_bytes + self.set_bytes + self.stock_bytes


def join_newest(condition: TopKCondition, keyed: Sequence[Sets]) -> Trial:
    """Join the newest sets of each key, within the limits.

    Parameters
    ----------
    condition : TopKCondition
        The condition.
    keyed : sequence of Sets
        The sets of each list in their order, at least one set.
    """
    chosen = _choose_newest(condition, keyed)
    times_us = np.concatenate([it.time_us for it in chosen])
    side = np.concatenate([it.side for it in chosen])
    count = len(times_us)
    trial = Trial(sets=count, lists=len(chosen), newer_sets=count - count // 2)
    is_newer = np.zeros(count, np.bool_)
    is_newer[np.lexsort((side, times_us))[count // 2 :]] = True
    others = count_others(condition, times_us, side)
    trial.others, trial.newer_others = int(others.sum()), int(others[is_newer].sum())
    trial.max_valid = count_max_valid(condition, times_us)
    low, until_us, empty = 0, int(times_us.max()), _new_join(condition)
    trial.empty_bytes = len(chosen) * empty.nbytes
    for sets in chosen:
        # The newer sets of a key are its last.
        newer = int(is_newer[low : low + len(sets)].sum())
        join = _join_key(condition, sets, len(sets) - newer, until_us, trial)
        _add_memory(sets, join, empty, trial)
        trial.identical_sets += count_identical(condition, sets)
        low += len(sets)
    if condition.per_key:
        trial.last_value = None
    return trial


def _choose_newest(condition: TopKCondition, keyed: Sequence[Sets]) -> list[Sets]:
    """Return the newest sets of all keys within the limits, at least one."""
    most = min(SETS_LIMIT, max(PAIRS_LIMIT // condition.k, isqrt(2 * PAIRS_LIMIT)))
    times_us = np.concatenate([it.time_us for it in keyed])
    sizes = np.concatenate([np.diff(it.tokens.offsets) for it in keyed])
    newest = np.argsort(times_us, kind="stable")[::-1][:most]
    chosen = np.zeros(len(times_us), np.bool_)
    chosen[newest[np.cumsum(sizes[newest]) <= TOKENS_LIMIT]] = True
    bounds = np.cumsum([0, *map(len, keyed)]).tolist()
    rows = [np.flatnonzero(chosen[low:high]) for low, high in pairwise(bounds)]
    return [it.take(own) for it, own in zip(keyed, rows, strict=True) if len(own)]


def _join_key(
    condition: TopKCondition, sets: Sets, older: int, until_us: int, trial: Trial
) -> TopKJoin:
    """Join the sets of a key, of which `older` are of the older half, and add the counts."""
    join = _new_join(condition)
    _insert(join, sets, 0, older)
    before = int(join.work[PRECANDIDATES])
    _insert(join, sets, older, len(sets))
    join.insert(_NO_SETS, until_us)
    met, _, candidates = join.work.tolist()
    trial.met += met
    trial.newer_met += met - before
    trial.candidates += candidates
    trial.last_valid += join.next - join.first
    trial.stock_pairs += join.stock_size
    _read_list(condition, join, np.diff(sets.tokens.offsets), trial)
    return join


def _add_memory(sets: Sets, join: TopKJoin, empty: TopKJoin, trial: Trial) -> None:
    """Add the memory of a list to the trial, beside that of an empty one."""
    stock_bytes = join.stock_nbytes - empty.stock_nbytes
    trial.stock_bytes += stock_bytes
    trial.set_bytes += join.nbytes - empty.nbytes - stock_bytes
    trial.set_bytes += _TOKEN_BYTES * len(sets.tokens.values)
    trial.set_bytes += sets.id.nbytes + _NAME_BYTES * len(sets)


def _insert(join: TopKJoin, sets: Sets, begin: int, end: int) -> None:
    """Insert the sets from one position to another."""
    offsets = sets.tokens.offsets
    for low in range(begin, end, _BLOCK_SETS):
        high = min(low + _BLOCK_SETS, end)
        start, stop = offsets[[low, high]].tolist()
        block = Block(
            sets.time_us[low:high],
            sets.side[low:high],
            offsets[low : high + 1] - start,
            sets.tokens.codes[start:stop],
        )
        join.insert(block, int(block.time_us[-1]))


_NO_SETS = Block(
    np.zeros(0, np.int64), np.zeros(0, np.int8), np.zeros(1, np.int64), np.zeros(0, np.int32)
)


def _new_join(condition: TopKCondition) -> TopKJoin:
    return TopKJoin(
        condition.k,
        condition.window_us,
        condition.similarity,
        minimum=condition.minimum,
        crossed=condition.crossed,
        shortest=condition.shortest,
    )


def _read_list(condition: TopKCondition, join: TopKJoin, sizes: Int64s, trial: Trial) -> None:
    """Add the pairs of a list to the trial."""
    similarity, value = condition.similarity, None
    pairs = join.list_pairs()
    for key, older, newer in zip(*(it.tolist() for it in pairs), strict=True):
        r, s = int(sizes[older]), int(sizes[newer])
        overlap = similarity.overlap_needed(key, r, s) or 0
        trial.identical_pairs += overlap == r == s
        value = similarity.value(overlap, r, s)
    trial.listed_pairs += len(pairs.key)
    if len(pairs.key) == condition.k:
        trial.full_lists += 1
        trial.last_value = value


def count_others(condition: TopKCondition, times_us: Int64s, side: NDArray[np.int8]) -> Int64s:
    """Count the valid sets with which each set could form a pair when it is added.

    Parameters
    ----------
    condition : TopKCondition
        The condition; keys are not considered.
    times_us, side : int64[n], int8[n]
        Times and streams of the sets, in any order.

    Returns
    -------
    int64[n]
        Number of sets that are valid when the set is added; for two streams, of the other stream.
    """
    if not condition.crossed:
        order = np.argsort(times_us, kind="stable")
        ordered = times_us[order]
        found = np.empty(len(order), np.int64)
        found[order] = np.arange(len(order)) - np.searchsorted(
            ordered, ordered - condition.window_us
        )
        return found
    found = np.zeros(len(times_us), np.int64)
    for it in range(_SIDES):
        mine, theirs = times_us[side == it], np.sort(times_us[side != it])
        # At equal times the sets of A come first.
        before = np.searchsorted(theirs, mine, side="right" if it else "left")
        found[side == it] = before - np.searchsorted(theirs, mine - condition.window_us)
    return found


def count_max_valid(condition: TopKCondition, times_us: Int64s) -> int:
    """Return the maximum number of sets that are valid at a moment; times in any order."""
    ordered = np.sort(times_us)
    expired = np.searchsorted(ordered, ordered - condition.window_us)
    return int((np.arange(1, len(ordered) + 1) - expired).max())


def count_identical(condition: TopKCondition, sets: Sets) -> int:
    """Count the sets that equal a valid set with which they form a pair; sets of one key."""
    newest: list[dict[frozenset[bytes], int]] = [{} for _ in range(_SIDES)]
    count = 0
    rows = zip(sets.tokens.to_list(), sets.time_us.tolist(), sets.side.tolist(), strict=True)
    for tokens, time_us, side in rows:
        equal_us = newest[1 - side if condition.crossed else side].get(tokens)
        count += equal_us is not None and equal_us >= time_us - condition.window_us
        newest[side][tokens] = time_us
    return count
