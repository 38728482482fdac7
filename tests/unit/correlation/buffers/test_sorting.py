"""Stable sorts of rows, against Python's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.sorting import count_sort, sort_groups

ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3)))


@given(ROWS)
def test_rows_are_sorted_stably(rows: list[tuple[int, int]]) -> None:
    codes, times = np.array(rows, np.int64).reshape(-1, 2).T.copy()
    numbers = range(len(rows))
    starts = [sum(code < limit for code, _ in rows) for limit in range(6)]
    order, bounds = count_sort(codes, 5)
    assert order.tolist() == sorted(numbers, key=lambda it: rows[it][0])
    assert bounds.tolist() == starts
    order, bounds = sort_groups(codes, 5, times)
    assert order.tolist() == sorted(numbers, key=lambda it: rows[it])
    assert bounds.tolist() == starts
