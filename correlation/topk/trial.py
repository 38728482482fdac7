"""A trial of a top-k join over the sets of a sample, which counts work and memory.

Problem. Find what the join of a condition does with given sets: how many sets its searches meet,
how much memory its arrays take, and which pairs its lists hold.

Algorithm. The real join runs over the newest sets, with the window of the condition. Work and
memory are those of the kernels that the job runs.

Cost. That of the join over at most SETS_LIMIT sets, TOKENS_LIMIT tokens and PAIRS_LIMIT pairs.
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
    others : int
        Sum, over all sets, of the number of valid sets with which the set could form a pair when it
        was added, if its key were not considered.
    max_valid, last_valid : int
        Maximum number of valid sets, and the number at the end.
    met, candidates : int
        Numbers of sets that searches met, and of pairs that they passed to the stock.
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
    others: int = 0
    max_valid: int = 0
    last_valid: int = 0
    met: int = 0
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
    until_us = max(int(sets.time_us[-1]) for sets in chosen)
    trial = Trial(sets=sum(map(len, chosen)), lists=len(chosen))
    for sets in chosen:
        _join_key(condition, sets, until_us, trial)
        trial.identical_sets += count_identical(condition, sets)
    times_us = np.concatenate([it.time_us for it in chosen])
    side = np.concatenate([it.side for it in chosen])
    trial.others, trial.max_valid = count_others(condition, times_us, side)
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


def _join_key(condition: TopKCondition, sets: Sets, until_us: int, trial: Trial) -> None:
    """Join the sets of a key, and add what is counted to the trial."""
    join, empty = _new_join(condition), _new_join(condition)
    offsets = sets.tokens.offsets
    for low in range(0, len(sets), _BLOCK_SETS):
        high = min(low + _BLOCK_SETS, len(sets))
        begin, end = offsets[[low, high]].tolist()
        block = Block(
            sets.time_us[low:high],
            sets.side[low:high],
            offsets[low : high + 1] - begin,
            sets.tokens.codes[begin:end],
        )
        join.insert(block, int(block.time_us[-1]))
    join.insert(_NO_SETS, until_us)
    met, _, candidates = join.work.tolist()
    trial.met += met
    trial.candidates += candidates
    trial.last_valid += join.next - join.first
    trial.stock_pairs += join.stock_size
    trial.empty_bytes += empty.nbytes
    stock_bytes = join.stock_nbytes - empty.stock_nbytes
    trial.stock_bytes += stock_bytes
    trial.set_bytes += join.nbytes - empty.nbytes - stock_bytes
    trial.set_bytes += _TOKEN_BYTES * len(sets.tokens.values)
    trial.set_bytes += sets.id.nbytes + _NAME_BYTES * len(sets)
    _read_list(condition, join, np.diff(sets.tokens.offsets), trial)


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
    for key, older, younger in zip(*(it.tolist() for it in pairs), strict=True):
        r, s = int(sizes[older]), int(sizes[younger])
        overlap = similarity.overlap_needed(key, r, s) or 0
        trial.identical_pairs += overlap == r == s
        value = similarity.value(overlap, r, s)
    trial.listed_pairs += len(pairs.key)
    if len(pairs.key) == condition.k:
        trial.full_lists += 1
        trial.last_value = value


def count_others(
    condition: TopKCondition, times_us: Int64s, side: NDArray[np.int8]
) -> tuple[int, int]:
    """Count the valid sets that each set finds when it is added.

    Parameters
    ----------
    condition : TopKCondition
        The condition; keys are not considered.
    times_us, side : int64[n], int8[n]
        Times and streams of the sets, in any order.

    Returns
    -------
    others, max_valid : int
        Sum of the numbers of valid sets with which each set could form a pair, and the maximum
        number of valid sets.
    """
    window_us = condition.window_us
    ordered = np.sort(times_us)
    valid = np.arange(1, len(ordered) + 1) - np.searchsorted(ordered, ordered - window_us)
    max_valid = int(valid.max())
    if not condition.crossed:
        return int((valid - 1).sum()), max_valid
    others = 0
    for it in range(_SIDES):
        mine, theirs = times_us[side == it], np.sort(times_us[side != it])
        # At equal times the sets of A come first.
        before = np.searchsorted(theirs, mine, side="right" if it else "left")
        gone = np.searchsorted(theirs, mine - window_us)
        others += int((before - gone).sum())
    return others, max_valid


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
