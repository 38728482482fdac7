"""Values of an attribute of a segment, prepared for comparisons with the constants of queries.

Problem. Many queries compare the same attribute with different constants. Find the rows that are
equal to a constant without a look at the others, and decide any other comparison once per distinct
value.

Cost. O(n + k) once per segment, for n rows and k distinct values; then O(rows found) an equality,
O(k) another comparison.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import DictionaryColumn, Int64s
from correlation.buffers.segment import Segment
from correlation.buffers.sorting import count_sort
from correlation.event_query.evaluation.candidates import (
    compare_values,
    decode_exactly,
    equal_encodings,
)
from correlation.event_query.query import Comparison, Constant
from correlation.resources.attributes import column_name


class AttributeValues:
    """Values of an attribute of a segment, prepared for comparisons.

    Parameters
    ----------
    column : DictionaryColumn
        The attribute.
    """

    __slots__ = ("_codes", "_decoded", "_order", "column")

    def __init__(self, column: DictionaryColumn) -> None:
        self.column = column
        self._codes: dict[bytes, int] | None = None
        self._decoded: list[Constant] | None = None
        self._order: tuple[Int64s, Int64s] | None = None

    def hold(self, comparison: Comparison) -> NDArray[np.bool_]:
        """Return whether a comparison holds for each code; the last element is for -1."""
        holds = np.zeros(len(self.column.values) + 1, np.bool_)
        if comparison.operator == "=":
            holds[self._codes_of(comparison.constant)] = True
        else:
            if self._decoded is None:
                self._decoded = decode_exactly(self.column.values.to_list())
            holds[:-1] = compare_values(self._decoded, comparison)
        return holds

    def rows_of(self, comparison: Comparison) -> Int64s:
        """Return the rows whose value is equal to a constant, ascending."""
        if self._order is None:
            codes = self.column.codes.astype(np.int64) + 1
            self._order = count_sort(codes, len(self.column.values) + 1)
        order, bounds = self._order
        found = [
            order[bounds[it + 1] : bounds[it + 2]] for it in self._codes_of(comparison.constant)
        ]
        # Rows of one code are in order.
        return found[0] if len(found) == 1 else np.sort(np.concatenate([order[:0], *found]))

    def _codes_of(self, constant: Constant) -> list[int]:
        if self._codes is None:
            self._codes = {it: code for code, it in enumerate(self.column.values.to_list())}
        encoded = dict.fromkeys(equal_encodings(constant))
        return [self._codes[it] for it in encoded if it in self._codes]


def attribute_of(segment: Segment, name: str) -> DictionaryColumn:
    """Return the column of an attribute; all values are missing if the segment has no column."""
    column = segment.columns.get(column_name(name))
    if column is None:
        return DictionaryColumn.from_list([None] * len(segment))
    return cast("DictionaryColumn", column)


def read_only(column: Int64s) -> Int64s:
    """Return a read-only view: numba compiles other kernels for writable arguments."""
    view = np.ascontiguousarray(column).view()
    view.flags.writeable = False
    return view
