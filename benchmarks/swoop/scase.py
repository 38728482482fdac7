"""The operator `scase` of the source: the skyband is recomputed for every set.

Problem. The generic framework of Shen et al. keeps the pairs that fewer than k better pairs outlive
(the skyband), as `TopKJoin` does, but does not maintain them incrementally, and knows nothing of
sets: every valid set is a pre-candidate of a new set.

Algorithm. The similarity of the new set and every valid set is computed. A pre-candidate passes if
its key reaches the skyband lower bound at its end time. The staircase of these bounds is stored.
The valid sets are visited from the newest, so that a pointer into the staircase finds each bound.
The pairs that pass are merged into the stock; then the skyband is recomputed: the stock is read in
the order of pairs with a heap of the k latest ends, and a pair remains if it ends after the first
of them. A set without such pairs leaves the skyband as it is; it is not recomputed then.

The overlap is counted by marks of the new set's tokens, as in `TopKJoin`, which is faster than the
merge of sorted tokens that the source describes; with `merging`, it is counted by that merge.

References. Shen, Cheema, Lin, Zhang & Wang, "A Generic Framework for Top-k Pairs and Top-k Objects
Queries over Sliding Windows", 2014, as Mann, Augsten & Jensen, "SWOOP: Top-k Similarity Joins over
Set Streams", 2017, describe it in sections 1, 6.1 and 7.1.
Cost. O(w) per set for windows of w sets, and O(n log k) per set that changes a stock of n pairs.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from benchmarks.swoop.base import advance_kernel
from benchmarks.swoop.sorted_stock import (
    Found,
    Stock,
    grow_stock,
    list_stock,
    make_found,
    make_stock,
    merge_found_kernel,
)
from benchmarks.swoop.window import (
    Int32s,
    Int64s,
    Operator,
    count_overlap_kernel,
    find_key_kernel,
    mark_tokens_kernel,
    take_sets,
)
from correlation.topk.join.join import Pairs, TopKJoin
from correlation.topk.join.state import Block
from correlation.topk.similarities import Key, Similarity
from tests.support.topk_joins import stock_of


class Scase(Operator):
    """The operator.

    Parameters
    ----------
    stream, k, window_us, similarity
        As in `Operator`.
    merging : bool
        Whether the overlap of two sets is counted by a merge of their sorted tokens.
    """

    name = "scase"

    def __init__(
        self,
        stream: Block,
        k: int,
        window_us: int,
        similarity: Similarity,
        *,
        merging: bool = False,
    ) -> None:
        super().__init__(sort_tokens(stream) if merging else stream, k, window_us, similarity)
        self._merging = merging
        if merging:
            self.name = "scase, merge"
        self._stock, self._stairs = make_stock(0), make_stock(0)
        self._found = make_found(len(stream.time_us))
        self._mark = np.full(int(stream.tokens.max()) + 1, -1, np.int64)
        self._heap = np.empty(k, np.int32)
        self._first = self._n = self._steps = 0
        # Number of pairs that passed the lower bound since the beginning.
        self.candidates = 0

    def fill(self, count: int) -> None:
        """Take the skyband from `TopKJoin`, which builds it in bulk."""
        join = TopKJoin(self.k, self.window_us, self.similarity)
        join.rebuild(take_sets(self.stream, 0, count))
        pairs = stock_of(join)
        self._n, self.next = len(pairs.key), count
        self._reserve(self._n + count)
        self._stock.key[: self._n] = pairs.key
        self._stock.older[: self._n] = pairs.older
        self._stock.newer[: self._n] = pairs.newer
        self.recompute()

    def insert(self, count: int) -> None:
        """Insert sets."""
        for new in range(self.next, self.next + count):
            self._reserve(self._n + new - self._first)
            self._first, self._n, self._steps, m = insert_kernel(
                self.stream, new, self.window_us, self.table, self.similarity.key,
                self._stock, self._stairs, self._steps, self._heap, self._found, self._mark,
                self._first, self._n, self._merging,
            )  # fmt: skip
            self.candidates += m
        self.next += count

    def recompute(self) -> None:
        """Recompute the skyband of the stock, which is minimal already."""
        self._n, self._steps = recompute_skyband_kernel(
            self._stock, self._n, self._stairs, self._heap
        )

    def _reserve(self, room: int) -> None:
        if room > len(self._stock.key):
            self._stock = grow_stock(self._stock, room + room // 4)
            self._stairs = grow_stock(self._stairs, room + room // 4)

    def list_pairs(self) -> Pairs:
        """Return the first k pairs of the stock."""
        return list_stock(self._stock, min(self.k, self._n))

    @property
    def stock_size(self) -> int:
        """Number of pairs in the skyband."""
        return self._n

    @property
    def nbytes(self) -> int:
        """Memory of the stock and the staircase, in bytes."""
        return sum(column.nbytes for part in (self._stock, self._stairs) for column in part)


def sort_tokens(stream: Block) -> Block:
    """Return a stream with the tokens of each set in ascending order."""
    owner = np.repeat(np.arange(len(stream.time_us)), np.diff(stream.offsets))
    return stream._replace(tokens=stream.tokens[np.lexsort((stream.tokens, owner))])


@njit(cache=True, forceinline=True)
def _merge_tokens_kernel(stream: Block, older: int, new: int) -> int:
    """Return the overlap of two sets whose tokens are sorted."""
    tokens = stream.tokens
    at, end = np.uint64(stream.offsets[older]), np.uint64(stream.offsets[older + 1])
    place, stop = np.uint64(stream.offsets[new]), np.uint64(stream.offsets[new + 1])
    overlap, one = 0, np.uint64(1)
    while at < end and place < stop:
        token, other = tokens[at], tokens[place]
        overlap += token == other
        if token <= other:
            at += one
        if other <= token:
            place += one
    return overlap


@njit(cache=True, forceinline=True)
def _replace_first_kernel(heap: Int32s, end: int) -> None:
    """Replace the minimum of a full heap."""
    k, at = len(heap), 0
    while True:
        child = 2 * at + 1
        if child >= k:
            break
        if child + 1 < k and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= end:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = end


@njit(cache=True)
def recompute_skyband_kernel(stock: Stock, n: int, stairs: Stock, heap: Int32s) -> tuple[int, int]:
    """Remove the pairs that k better pairs outlive, and store the staircase.

    Parameters
    ----------
    stock : Stock
        Pairs in their order.
    n : int
        Number of pairs.
    stairs : Stock
        Output: the steps. Pairs whose older set is not after column `newer`, which ascends, are
        relevant if they precede the pair of `key` and `older`.
    heap : int32[k]
        Work space.

    Returns
    -------
    size, steps : int
        Number of pairs that remain, and number of steps.
    """
    k = len(heap)
    heap[:] = -1
    kept, steps = 0, 0
    for at in range(n):
        key, older = stock.key[at], stock.older[at]
        if older <= heap[0]:
            continue
        stock.key[kept], stock.older[kept] = key, older
        stock.newer[kept] = stock.newer[at]
        kept += 1
        _replace_first_kernel(heap, older)
        if kept >= k and (steps == 0 or heap[0] > stairs.newer[steps - 1]):
            stairs.key[steps], stairs.older[steps], stairs.newer[steps] = key, older, heap[0]
            steps += 1
    return kept, steps


@njit(cache=True)
def get_candidates_kernel(
    stream: Block,
    new: int,
    first: int,
    table: Int64s,
    key: Key,
    stairs: Stock,
    steps: int,
    found: Found,
    token_mark: Int64s,
    merging: bool,  # noqa: FBT001 - numba has no keyword-only arguments
) -> int:
    """Find the pairs of a new set that reach the skyband lower bound; return their number."""
    m, step = 0, steps
    mark_tokens_kernel(stream, new, token_mark, new)
    size = stream.offsets[new + 1] - stream.offsets[new]
    for older in range(new - 1, first - 1, -1):
        while step > 0 and stairs.newer[step - 1] >= older:
            step -= 1
        if merging:
            overlap = _merge_tokens_kernel(stream, older, new)
        else:
            overlap = count_overlap_kernel(stream, older, token_mark, new)
        if overlap == 0:
            continue
        other = stream.offsets[older + 1] - stream.offsets[older]
        reached = find_key_kernel(table, key, overlap, size, other)
        if step < steps and (
            reached < stairs.key[step]
            or (reached == stairs.key[step] and older <= stairs.older[step])
        ):
            continue
        found.key[m], found.older[m] = reached, older
        m += 1
    return m


@njit(cache=True)
def insert_kernel(
    stream: Block,
    new: int,
    window_us: int,
    table: Int64s,
    key: Key,
    stock: Stock,
    stairs: Stock,
    steps: int,
    heap: Int32s,
    found: Found,
    token_mark: Int64s,
    first: int,
    n: int,
    merging: bool,  # noqa: FBT001 - numba has no keyword-only arguments
) -> tuple[int, int, int, int]:
    """Insert a set.

    Returns
    -------
    first, size, steps, candidates : int
        First valid set, size of the stock, number of steps of the staircase, and number of pairs
        that were merged into the stock.
    """
    first, n = advance_kernel(stream, stream.time_us[new] - window_us, stock, first, n)
    m = get_candidates_kernel(
        stream, new, first, table, key, stairs, steps, found, token_mark, merging
    )
    if m > 0:
        n = merge_found_kernel(stock, n, found, m, new)
        n, steps = recompute_skyband_kernel(stock, n, stairs, heap)
    return first, n, steps, m
