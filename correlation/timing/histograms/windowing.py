"""The s-windows of two shapes: in float64 if the result is certain, otherwise exactly.

Problem. Find all integers s with P(s) ≥ ct and floor ≤ s ≤ ceiling for two shapes, as
histograms.s_windows does, in microseconds of processor time instead of tenths of a millisecond.

Definitions. P(s) = 1 - below(s) - above(s) with below(s) = P(T_B - T_A < lower), which does not
rise with s, and above(s) = P(T_B - T_A > upper), which does not fall. So between two places x < y

    below(y) + above(x) ≤ 1 - P(s) ≤ below(x) + above(y),   x ≤ s ≤ y.

Algorithm. Bisect the interval in which P is not 0. An interval between two places is bisected
further unless these bounds prove that all its integers are satisfied or all are violated. In a wide
window only one of the two terms is not 0, so this is the bisection of both ends; in a narrow window
it finds every gap. Bounds and values are computed as in histograms.filter, with the same rounding
bound (docs/proofs.md, P-SWINDOW-KERNEL). A place that float64 cannot decide is *doubtful*. A few
doubtful places are decided in integers one by one; otherwise histograms.s_windows computes the
whole s-window, if the cost allows.

Cost. Two evaluations of a probability for each bisection of an end, about 45 for lengths of
seconds: 5 to 20 µs for shapes of ten buckets. A narrow window whose probability stays near ct takes
more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from correlation.timing.histograms.filter import (
    _judge_lost_kernel,
    _measure_greater_kernel,
    decide_exactly,
)
from correlation.timing.histograms.integer_sets import unite
from correlation.timing.histograms.s_windows import s_windows
from correlation.timing.intervals.arguments import as_column
from correlation.timing.intervals.search import DOUBTFUL, SATISFIED, VIOLATED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from correlation.timing.histograms.integer_sets import Intervals
    from correlation.timing.histograms.shapes import Shapes
    from correlation.timing.intervals.window import TimingWindow, WindowScalars

# Max evaluations, and max runs, of one cell in the kernel.
MAX_EVALUATIONS = 2000
_MAX_RUNS = 256
# Max doubtful s of a cell that are decided one by one.
_MAX_DOUBTFUL = 32
# Cost of an exact decision, and of a step of an exact s-window, in evaluations.
_EXACT_PRICE = 500
STEP_PRICE = 100
# Max steps (pairs of edges) of an exact s-window: about 10 ms.
MAX_STEPS = 2000
# Columns of a run: both ends, inclusive, and the verdict.
LOW, HIGH, VERDICT = range(3)
# Max depth of the bisection: each level halves an interval shorter than 2**62.
_DEPTH = 64


def find_windows(
    shapes_a: Shapes, a: int, shapes_b: Shapes, b: int, window: TimingWindow
) -> tuple[Intervals | None, int]:
    """Find the s-window of two shapes, exactly.

    Parameters
    ----------
    shapes_a, a, shapes_b, b
        Shapes of either side, and the position of the shape.
    window : TimingWindow
        The condition, wide or narrow, including its floor and ceiling.

    Returns
    -------
    intervals : Intervals or None
        As returned by `s_windows.s_windows`; None if the cost is too high.
    work : int
        Cost in evaluations.
    """
    scalars = window.scalars()
    runs = make_runs()
    count, work = _find_windows_kernel(shapes_a, a, shapes_b, b, scalars, MAX_EVALUATIONS, runs)
    if count >= 0:
        spans = runs[:count].tolist()
        doubtful = sum(high - low + 1 for low, high, how in spans if how == DOUBTFUL)
        if doubtful <= _MAX_DOUBTFUL:
            found = _decide_doubtful(shapes_a, a, shapes_b, b, scalars, spans)
            return found, int(work) + _EXACT_PRICE * doubtful
    u, v = shapes_a.histogram(a), shapes_b.histogram(b)
    steps = len(u.edges_us) * len(v.edges_us)
    if steps > MAX_STEPS:
        return None, int(work)
    return s_windows(u, v, window), int(work) + STEP_PRICE * max(steps, 100)


def _decide_doubtful(
    shapes_a: Shapes,
    a: int,
    shapes_b: Shapes,
    b: int,
    window: WindowScalars,
    spans: Sequence[tuple[int, int, int]],
) -> Intervals:
    """Unite the satisfied runs with the doubtful s that are satisfied in integers."""
    places = [s for low, high, how in spans if how == DOUBTFUL for s in range(low, high + 1)]
    s = as_column(places)
    satisfied = decide_exactly(
        shapes_a, as_column(np.full(len(s), a)), shapes_b, as_column(np.full(len(s), b)), s, window
    )
    found = [(low, high) for low, high, how in spans if how == SATISFIED]
    return unite([*found, *((it, it) for it in s[satisfied].tolist())])


def make_runs() -> NDArray[np.int64]:
    """Build the array for the runs of a pair of shapes."""
    return np.empty((_MAX_RUNS, VERDICT + 1), np.int64)


@njit(cache=True)
def _find_windows_kernel(
    shapes_a: Shapes,
    a: int,
    shapes_b: Shapes,
    b: int,
    window: WindowScalars,
    budget: int,
    runs: NDArray[np.int64],
) -> tuple[int, int]:
    """Write runs of satisfied and of doubtful s, ascending.

    Returns the number of runs, and the number of evaluations. The first is -1 if the runs are too
    many or `budget` evaluations are not enough.
    """
    first, last = shapes_a.starts[a], shapes_a.starts[a + 1]
    edges_a = shapes_a.edges[first + a : last + a + 1]
    masses_a = shapes_a.masses[first:last]
    buckets = last - first
    first, last = shapes_b.starts[b], shapes_b.starts[b + 1]
    edges_b = shapes_b.edges[first + b : last + b + 1]
    masses_b = shapes_b.masses[first:last]
    buckets += last - first
    # Outside these ends the supports imply P = 0.
    left = max(window.lower + edges_a[0], window.floor)
    end = min(window.upper - edges_b[0], window.ceiling)
    if left > end:
        return 0, 0
    places = np.empty(_DEPTH, np.int64)
    belows = np.empty(_DEPTH, np.float64)
    aboves = np.empty(_DEPTH, np.float64)
    below = _measure_greater_kernel(edges_a, masses_a, edges_b, masses_b, window.lower - left)
    above = _measure_greater_kernel(edges_b, masses_b, edges_a, masses_a, left - window.upper)
    found = _add_run_kernel(runs, 0, left, left, _judge_lost_kernel(below + above, buckets, window))
    places[0] = end
    belows[0] = _measure_greater_kernel(edges_a, masses_a, edges_b, masses_b, window.lower - end)
    aboves[0] = _measure_greater_kernel(edges_b, masses_b, edges_a, masses_a, end - window.upper)
    evaluations = 2
    open_places = 1
    while open_places > 0:
        k = open_places - 1
        right = places[k]
        verdict = DOUBTFUL
        if right - left > 1:
            if _judge_lost_kernel(below + aboves[k], buckets, window) == SATISFIED:
                verdict = SATISFIED
            elif _judge_lost_kernel(belows[k] + above, buckets, window) == VIOLATED:
                verdict = VIOLATED
            else:
                if evaluations >= budget:
                    return -1, evaluations
                middle = left + (right - left) // 2
                places[open_places] = middle
                belows[open_places] = _measure_greater_kernel(
                    edges_a, masses_a, edges_b, masses_b, window.lower - middle
                )
                aboves[open_places] = _measure_greater_kernel(
                    edges_b, masses_b, edges_a, masses_a, middle - window.upper
                )
                open_places += 1
                evaluations += 1
                continue
            found = _add_run_kernel(runs, found, left + 1, right - 1, verdict)
        if right > left:
            verdict = _judge_lost_kernel(belows[k] + aboves[k], buckets, window)
            found = _add_run_kernel(runs, found, right, right, verdict)
        if found < 0:
            return -1, evaluations
        left = right
        below = belows[k]
        above = aboves[k]
        open_places -= 1
    return found, evaluations


@njit(cache=True)
def _add_run_kernel(runs: NDArray[np.int64], found: int, low: int, high: int, verdict: int) -> int:
    """Add a run or extend the last one; return the number of runs, -1 if they are too many."""
    if verdict == VIOLATED or found < 0:
        return found
    if found > 0 and runs[found - 1, HIGH] == low - 1 and runs[found - 1, VERDICT] == verdict:
        runs[found - 1, HIGH] = high
        return found
    if found == len(runs):
        return -1
    runs[found, LOW] = low
    runs[found, HIGH] = high
    runs[found, VERDICT] = verdict
    return found + 1
