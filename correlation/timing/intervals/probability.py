"""The satisfaction probability of a pair, in float64, for reporting.

Problem. P(lower ≤ T_B - T_A ≤ upper) for T_A, T_B uniform on intervals, independent, both ends
closed. It is never compared with a threshold; intervals.exact decides.

Definitions and equation. As in intervals.exact: P = 1 - (K(u) + K(v)) / 2mM.

Reference. LL10 Theorem 1, integrated (spec section 3).

Cost. O(n). Absolute error below 2**-50.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from numba.extending import register_jitable

from correlation.timing.intervals.arguments import as_columns
from correlation.timing.intervals.integral import measure_cut, pair_probability

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from correlation.timing.intervals.window import TimingWindow, WindowScalars

# Kernels can call it under its own name.
register_jitable(measure_cut)
_pair_probability_kernel = njit(cache=True)(pair_probability)


def probability(
    earliest_a: ArrayLike,
    latest_a: ArrayLike,
    earliest_b: ArrayLike,
    latest_b: ArrayLike,
    window: TimingWindow,
) -> NDArray[np.float64]:
    """Compute the satisfaction probability of pairs.

    Parameters
    ----------
    earliest_a, latest_a, earliest_b, latest_b : array_like of int, shape (n,) or scalar
        The two timestamps, microseconds, within ±2**60, lengths 0 … 2**45.
    window : TimingWindow
        The condition; its floor and ceiling are ignored.

    Returns
    -------
    ndarray of float64, shape (n,)
        P(lower ≤ T_B - T_A ≤ upper), in [0, 1].

    Notes
    -----
    The value of a pair exactly at its threshold may be one rounding error below it.
    """
    min_a, max_a, min_b, max_b = as_columns(earliest_a, latest_a, earliest_b, latest_b)
    out = np.empty(min_a.shape, np.float64)
    _integrate_pairs_kernel(min_a, max_a, min_b, max_b, window.scalars(), out)
    return out


@njit(cache=True)
def _integrate_pairs_kernel(
    earliest_a: NDArray[np.int64],
    latest_a: NDArray[np.int64],
    earliest_b: NDArray[np.int64],
    latest_b: NDArray[np.int64],
    window: WindowScalars,
    out: NDArray[np.float64],
) -> None:
    for i in range(len(out)):
        a = latest_a[i] - earliest_a[i]
        b = latest_b[i] - earliest_b[i]
        u = window.lower + latest_a[i] - earliest_b[i]
        v = latest_b[i] - window.upper - earliest_a[i]
        out[i] = _pair_probability_kernel(u, v, a, b)
