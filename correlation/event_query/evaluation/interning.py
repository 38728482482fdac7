"""Interning: equal byte strings get equal numbers, so that they can be compared in columns.

Numbers are valid within an epoch. A new epoch begins, and forgets all numbers, when at most half of
them are in use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from correlation.buffers.columns import BytesColumn, Int64s, number_values
from correlation.buffers.numbering import Numbering

_MIN_SIZE = 2**16
# A number takes less than half of an int64, so two of them are one.
_HALF = np.int64(32)


class Interner:
    """Numbers of byte strings, and of pairs of numbers.

    Attributes
    ----------
    epoch : int
        Numbers of different epochs must not be compared.
    """

    __slots__ = ("_pairs", "_tidy_at", "_values", "epoch")

    def __init__(self) -> None:
        self.epoch = 0
        self._values = Numbering()
        self._pairs: defaultdict[int, int] = number_values()
        self._tidy_at = _MIN_SIZE

    def __len__(self) -> int:
        return len(self._values) + len(self._pairs)

    def intern(self, values: BytesColumn) -> Int64s:
        """Return the number of each value, int64[n] below 2**31."""
        return self._values.number(values.data, values.offsets)

    def pack(self, columns: Sequence[Int64s], size: int) -> Int64s:
        """Return one number per row of columns; rows are equal iff their numbers are.

        Parameters
        ----------
        columns : sequence of int64[n]
            Columns of numbers; without columns all rows are equal.
        size : int
            n.
        """
        if not columns:
            return np.zeros(size, np.int64)
        packed = columns[0]
        for place, column in enumerate(columns[1:]):
            if place:
                distinct, rows = np.unique(packed, return_inverse=True)
                pairs = map(self._pairs.__getitem__, distinct.tolist())
                packed = np.fromiter(pairs, np.int64, len(distinct))[rows]
            packed = packed << _HALF | column
        return packed

    def tidy(self, count_used: Callable[[], int]) -> None:
        """Begin a new epoch if at most half of the numbers are in use.

        Parameters
        ----------
        count_used : callable
            Returns the number of values in use, or more. It is called once each time that the
            number of values doubles, so it costs O(1) per value.
        """
        if len(self) < self._tidy_at:
            return
        if 2 * count_used() <= len(self):
            self._values = Numbering()
            self._pairs = number_values()
            self.epoch += 1
        self._tidy_at = max(_MIN_SIZE, 2 * len(self))
