"""Common parts of the reference operators: the stream, the overlap of two sets, the interface.

A reference operator holds the whole stream, as arrays. Its window is a range of positions in them,
so that storing and forgetting sets costs it nothing. Pairs are compared by the integer keys of
`correlation.topk.similarities`, which `TopKJoin` uses, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.topk.join.join import Pairs, TopKJoin
from correlation.topk.join.state import Block
from correlation.topk.similarities import TABLE_SIZES, Key, Similarity, key_table

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]


def take_sets(stream: Block, begin: int, end: int) -> Block:
    """Return the sets of a stream from one position to another.

    Parameters
    ----------
    stream : Block
        The stream.
    begin, end : int
        Positions of the first set and after the last set.
    """
    offsets = stream.offsets[begin : end + 1]
    return Block(
        stream.time_us[begin:end],
        stream.side[begin:end],
        offsets - offsets[0],
        stream.tokens[offsets[0] : offsets[-1]],
    )


@njit(cache=True, forceinline=True)
def find_key_kernel(table: Int64s, key: Key, overlap: int, size: int, other: int) -> int:
    """Return the key of two sets, from the table of `similarities.key_table` if they are small."""
    if size < TABLE_SIZES and other < TABLE_SIZES:
        found: int = table[(size * TABLE_SIZES + other) * TABLE_SIZES + overlap]
        return found
    return key(overlap, size, other)


@njit(cache=True, forceinline=True)
def mark_tokens_kernel(stream: Block, number: int, token_mark: Int64s, mark: int) -> None:
    """Mark the tokens of a set."""
    for at in range(stream.offsets[number], stream.offsets[number + 1]):
        token_mark[stream.tokens[at]] = mark


@njit(cache=True, forceinline=True)
def count_overlap_kernel(stream: Block, number: int, token_mark: Int64s, mark: int) -> int:
    """Return the number of marked tokens of a set."""
    overlap = 0
    for at in range(np.uint64(stream.offsets[number]), np.uint64(stream.offsets[number + 1])):
        overlap += token_mark[stream.tokens[at]] == mark
    return overlap


class Operator(ABC):
    """A top-k self join over one stream.

    Parameters
    ----------
    stream : Block
        The stream.
    k : int
        Length of the list.
    window_us : int
        Age up to which a set is valid, in µs.
    similarity : Similarity
        The similarity.
    """

    # Name in tables and plots.
    name: str

    def __init__(self, stream: Block, k: int, window_us: int, similarity: Similarity) -> None:
        self.stream = stream
        self.k = k
        self.window_us = window_us
        self.similarity = similarity
        self.table = key_table(similarity)
        # Position of the next set.
        self.next = 0

    @abstractmethod
    def fill(self, count: int) -> None:
        """Insert the first sets of the stream in bulk.

        Parameters
        ----------
        count : int
            Number of sets, all valid together.
        """

    @abstractmethod
    def insert(self, count: int) -> None:
        """Insert the next sets one by one.

        Parameters
        ----------
        count : int
            Number of sets.
        """

    @abstractmethod
    def list_pairs(self) -> Pairs:
        """Return the list, best pair first."""

    @property
    @abstractmethod
    def stock_size(self) -> int:
        """Number of pairs that the operator keeps."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory of the pairs, in bytes; for `Swoop`, of all arrays."""


class Swoop(Operator):
    """`TopKJoin`, as the product uses it.

    Parameters
    ----------
    stream, k, window_us, similarity
        As in `Operator`.
    shortest : bool
        Whether the shortest inverted list is read first, otherwise that of the newest token.
    """

    name = "swoop"

    def __init__(
        self,
        stream: Block,
        k: int,
        window_us: int,
        similarity: Similarity,
        *,
        shortest: bool = True,
    ) -> None:
        super().__init__(stream, k, window_us, similarity)
        self.join = TopKJoin(k, window_us, similarity, shortest=shortest)

    def fill(self, count: int) -> None:
        """Build the stock in bulk."""
        self.join.rebuild(take_sets(self.stream, 0, count))
        self.next = count

    def insert(self, count: int) -> None:
        """Insert a block."""
        end = self.next + count
        block = take_sets(self.stream, self.next, end)
        self.join.insert(block, int(self.stream.time_us[end - 1]))
        self.next = end

    def list_pairs(self) -> Pairs:
        """Return the list."""
        return self.join.list_pairs()

    @property
    def stock_size(self) -> int:
        """Number of pairs in the stock."""
        return self.join.stock_size

    @property
    def nbytes(self) -> int:
        """Memory of all arrays: sets, inverted lists and stock."""
        return self.join.nbytes
