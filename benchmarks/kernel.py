"""Compare the look-up correlation with only writing its pairs.

The streams are those of LL10 section 5 (lengths uniform from 20 to 200 ms). Every figure is the
best processor time of several runs. Only ratios within one run are meaningful.
"""

from __future__ import annotations

import time
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from benchmarks.report import Report
from correlation.timing.intervals.algorithms import ALGORITHMS, Side
from correlation.timing.intervals.window import TimingWindow

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

MIN_UNCERTAINTY_US, MAX_UNCERTAINTY_US = 20_000, 200_000
REPEATS = 7


class Workload(NamedTuple):
    """Two streams and a condition."""

    name: str
    rate: float  # events a second, per stream and key
    events: int  # per stream
    keys: int
    window: TimingWindow


def mutual(deadline_ms: int, threshold: str) -> TimingWindow:
    """Return |T_A - T_B| ≤ deadline."""
    return TimingWindow(-deadline_ms * 1000, deadline_ms * 1000, None, None, Fraction(threshold))


WORKLOADS = [
    Workload("1600/s, 1000 ms, ct 0.7", 1600, 8_000, 1, mutual(1000, "0.7")),
    Workload("1600/s, 1000 ms, ct 1", 1600, 8_000, 1, mutual(1000, "1")),
    Workload("500/s, 500 ms, ct 0.8", 500, 20_000, 1, mutual(500, "0.8")),
    Workload("1600/s, 100 ms (narrow), ct 0.5", 1600, 20_000, 1, mutual(100, "0.5")),
    Workload("few pairs: 0.05/s, 500 ms", 0.05, 1_000_000, 1, mutual(500, "0.7")),
    Workload("few pairs: 1/s, 50 ms", 1, 1_000_000, 1, mutual(50, "0.5")),
    Workload("500,000 keys of 2 + 2 events", 0.2, 1_000_000, 500_000, mutual(500, "0.7")),
]


def make_side(workload: Workload, rng: np.random.Generator) -> Side:
    """Draw a stream of one side, sorted by latest inside every key."""
    span_us = int(workload.events / workload.keys / workload.rate * 1e6)
    latest = rng.integers(0, span_us, (workload.keys, workload.events // workload.keys))
    latest.sort(axis=1)
    latest = latest.ravel()
    return Side(
        latest - rng.integers(MIN_UNCERTAINTY_US, MAX_UNCERTAINTY_US + 1, len(latest)), latest
    )


def make_groups(workload: Workload) -> NDArray[np.int64]:
    """Return equal ranges of both sides, one per key."""
    size = workload.events // workload.keys
    begin = np.arange(workload.keys) * size
    return np.column_stack([begin, begin + size, begin, begin + size])


@njit(cache=True)
def _write_pairs_kernel(
    base_index: NDArray[np.int64],
    target_index: NDArray[np.int64],
    decided_by: NDArray[np.uint8],
) -> None:
    """Write pairs sequentially, without any decision."""
    for k in range(len(base_index)):
        base_index[k] = k
        target_index[k] = k
        decided_by[k] = 0


@njit(cache=True)
def _scan_support_kernel(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    ends: tuple[float, float, float],
    out: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> int:
    """Evaluate the probability in float64 of every pair in the support of the window."""
    base_index, target_index = out
    lower, upper, threshold = ends
    found = 0
    for g in range(len(groups)):
        first = groups[g, 2]
        for i in range(groups[g, 0], groups[g, 1]):
            latest = float(base.latest[i])
            length = latest - float(base.earliest[i])
            while (
                first < groups[g, 3] and target.latest[first] < latest + lower - MAX_UNCERTAINTY_US
            ):
                first += 1
            for j in range(first, groups[g, 3]):
                s = float(target.latest[j]) - latest
                if s > upper + MAX_UNCERTAINTY_US:
                    break
                other = float(target.latest[j] - target.earliest[j])
                inside = _integrate_kernel(upper - s, length, other)
                inside -= _integrate_kernel(lower - s, length, other)
                if inside >= threshold * length * other:
                    base_index[found] = i
                    target_index[found] = j
                    found += 1
    return found


@njit(cache=True)
def _integrate_kernel(c: float, length: float, other: float) -> float:
    """Compute the area where T_B - T_A - s ≤ c (LL10 Theorem 1)."""
    total = 0.0
    for z, sign in ((c + other, 1.0), (c + other - length, -1.0)):
        if z > other:
            total += sign * (other * z - 0.5 * other * other)
        elif z > 0:
            total += sign * 0.5 * z * z
    return total


def write_pairs(count: int) -> None:
    """Allocate and write `count` pairs."""
    _write_pairs_kernel(
        np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.uint8)
    )


def scan_support(base: Side, target: Side, workload: Workload, room: int) -> int:
    """Find the pairs by a plain loop, with memory for `room` pairs."""
    window = workload.window
    ends = (float(window.lower_us or 0), float(window.upper_us or 0), float(window.threshold))
    out = (np.empty(room, np.int64), np.empty(room, np.int64))
    return int(_scan_support_kernel(base, target, make_groups(workload), ends, out))


def best_seconds(*runs: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """Return the min processor time of each run; runs take turns, so that load affects all."""
    for run in runs:
        run()  # compiles
    seconds = [float("inf")] * len(runs)
    for _ in range(repeats):
        for i, run in enumerate(runs):
            begin = time.process_time()
            run()
            seconds[i] = min(seconds[i], time.process_time() - begin)
    return seconds


def measure(workload: Workload, rng: np.random.Generator) -> list[str]:
    """Return a row of the table."""
    base, target = make_side(workload, rng), make_side(workload, rng)
    groups = make_groups(workload)
    window = workload.window
    lazy = ALGORITHMS["lazy_lookup"]
    pairs = lazy(base, target, groups, window, exclude_same=False)
    count = len(pairs.base_index)
    # Floating point may decide near ties differently: reserve some more room.
    room = count + count // 10 + 1000
    ours, writing, scanning = best_seconds(
        lambda: lazy(base, target, groups, window, exclude_same=False),
        lambda: write_pairs(count),
        lambda: scan_support(base, target, workload, room),
    )
    return [
        workload.name,
        f"{count:,}",
        f"{pairs.counts.lookup_hits / max(pairs.counts.probe_region, 1):.0%}",
        f"{count / ours / 1e6:,.1f}",
        f"{2 * workload.events / ours / 1e6:,.2f}",
        f"{writing / ours:.2f}",
        f"{scanning / ours:.1f}",
    ]


def run() -> list[Report]:
    """Measure all workloads."""
    rng = np.random.default_rng(2010)
    return [
        Report(
            "The correlation kernel",
            "`lazy_lookup` on one core. The last two columns are the time of a reference divided "
            "by the time of `lazy_lookup`. The references are a sequential write of the same "
            "pairs without decisions, and a plain numba loop over all pairs in the support of the "
            "window. Aims in the first row: at least 0.5 for the write, and 5 for a simple "
            "loop. The second aim is missed against this loop, which skips pairs outside the "
            "support. It is met against `simple`, the loop over all pairs: `lazy_lookup` is 14 "
            "times as fast ([all algorithms](figures.md#all-algorithms-as-kernels)).",
            (
                "workload",
                "pairs",
                "hit ratio",
                "M pairs/s",
                "M events/s",
                "sequential write",
                "support loop",
            ),
            [measure(workload, rng) for workload in WORKLOADS],
        )
    ]


if __name__ == "__main__":
    for found in run():
        found.show()
