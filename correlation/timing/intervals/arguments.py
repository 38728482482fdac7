"""Conversion of arrays to kernel arguments: contiguous, int64 and read-only.

numba compiles a kernel again for every combination of read-only and writable arguments. Buffers
read from bytes are read-only and fresh columns are writable, so all are passed as read-only views.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def as_column(values: ArrayLike) -> NDArray[np.int64]:
    """Return a contiguous read-only view (a copy only if needed) of integers.

    Parameters
    ----------
    values : array_like of int
        Any shape.

    Returns
    -------
    ndarray of int64
        Same shape, C-contiguous, not writable.
    """
    view = np.ascontiguousarray(values, np.int64).view()
    view.flags.writeable = False
    return view


def as_columns(*values: ArrayLike) -> tuple[NDArray[np.int64], ...]:
    """Return columns of one common length.

    Parameters
    ----------
    *values : array_like of int, shape (n,) or scalar
        Columns to broadcast against each other.

    Returns
    -------
    tuple of ndarray of int64, shape (n,)
        Contiguous, not writable.

    Raises
    ------
    ValueError
        The shapes cannot be broadcast.
    """
    columns = [np.atleast_1d(np.asarray(value, np.int64)) for value in values]
    shape = np.broadcast_shapes(*(column.shape for column in columns))
    return tuple(
        as_column(column if column.shape == shape else np.broadcast_to(column, shape))
        for column in columns
    )
