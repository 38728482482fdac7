"""Compare all algorithms as bare kernels with writing their pairs and with a plain loop."""

from __future__ import annotations

import math
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.kernel import (
    MAX_UNCERTAINTY_US,
    MIN_UNCERTAINTY_US,
    REPEATS,
    Workload,
    best_seconds,
    make_groups,
    mutual,
    scan_support,
    write_pairs,
)
from benchmarks.ll10.measuring import DifferentPairsError
from benchmarks.ll10.texts import KERNELS, SLOPES
from benchmarks.report import Report
from correlation.timing.intervals.algorithms import ALGORITHMS, Side

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from correlation.timing.intervals.window import TimingWindow

_LOOKUP = ALGORITHMS["lazy_lookup"]
# Max number of decisions for `simple`, which would otherwise take hours.
_MOST_DECISIONS = 10**9


class Given(NamedTuple):
    """Two streams of one key.

    Attributes
    ----------
    workload : Workload
        Rate, number of events and condition.
    lengths : int
        Number of distinct lengths, spaced evenly between ρ and π; 0 means any length.
    """

    workload: Workload
    lengths: int = 0

    @property
    def name(self) -> str:
        """Name of the workload, with its lengths."""
        return self.workload.name + (f", {self.lengths} lengths" if self.lengths else "")


class KernelPoint(NamedTuple):
    """Times of one workload, in processor time of one core.

    Attributes
    ----------
    given : Given
        The workload.
    pairs : int
        Number of pairs found.
    seconds : mapping of str to float
        Seconds of each algorithm that was run.
    writing, scanning : float
        Seconds of writing the pairs, and of the plain loop.
    """

    given: Given
    pairs: int
    seconds: dict[str, float]
    writing: float
    scanning: float


class SlopePoint(NamedTuple):
    """Time of lazy_lookup over n unsorted events of each stream.

    Attributes
    ----------
    name : str
        Name of the series.
    events : int
        n.
    pairs : int
        Number of pairs found.
    sorting, correlating : float
        Seconds of both steps.
    """

    name: str
    events: int
    pairs: int
    sorting: float
    correlating: float

    @property
    def seconds(self) -> float:
        """Seconds of both steps together."""
        return self.sorting + self.correlating


def measure_kernels(*, quick: bool) -> list[KernelPoint]:
    """Run every algorithm over workloads with many and with few pairs."""
    many = Workload("1,600/s, 1,000 ms, ct 0.7", 1600, 2_000 if quick else 8_000, 1, _many())
    few = Workload("0.05/s, 500 ms, ct 0.7", 0.05, 50_000 if quick else 1_000_000, 1, _few())
    return [
        _measure_kernel(given, 1 if quick else REPEATS)
        for given in (Given(many), Given(many, 8), Given(few), Given(few, 8))
    ]


def _many() -> TimingWindow:
    return mutual(1000, "0.7")


def _few() -> TimingWindow:
    return mutual(500, "0.7")


def _measure_kernel(given: Given, repeats: int) -> KernelPoint:
    rng = np.random.default_rng(2010)
    workload = given.workload
    base, target = (_sort(_draw(given, rng)) for _ in range(2))
    groups = make_groups(workload)
    pairs = len(_LOOKUP(base, target, groups, workload.window, exclude_same=False).base_index)
    algorithms = {
        name: algorithm
        for name, algorithm in ALGORITHMS.items()
        if name != "simple" or workload.events**2 <= _MOST_DECISIONS
    }
    for name, algorithm in algorithms.items():
        found = len(algorithm(base, target, groups, workload.window, exclude_same=False).base_index)
        if found != pairs:
            raise DifferentPairsError(f"{given.name}, {name}: {found} pairs, not {pairs}")
    # Floating point may decide near ties differently: reserve some more room.
    room = pairs + pairs // 10 + 1000
    runs: list[Callable[[], object]] = [
        *(
            partial(algorithm, base, target, groups, workload.window, exclude_same=False)
            for algorithm in algorithms.values()
        ),
        partial(write_pairs, pairs),
        partial(scan_support, base, target, workload, room),
    ]
    *seconds, writing, scanning = best_seconds(*runs, repeats=repeats)
    return KernelPoint(given, pairs, dict(zip(algorithms, seconds, strict=True)), writing, scanning)


def measure_slopes(*, quick: bool) -> list[SlopePoint]:
    """Run lazy_lookup over increasing numbers of events."""
    many = (1_000, 2_000) if quick else (1_000, 2_000, 4_000, 8_000, 16_000)
    few = (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000, 10_000_000)
    repeats = 1 if quick else 5
    points = [_measure_slope("few pairs", 0.05, n, _few(), repeats) for n in few]
    points += [_measure_slope("many pairs", 1600, n, _many(), repeats) for n in many]
    return points


def _measure_slope(
    name: str, rate: float, events: int, window: TimingWindow, repeats: int
) -> SlopePoint:
    rng = np.random.default_rng(2010)
    workload = Workload(name, rate, events, 1, window)
    given = Given(workload)
    groups = make_groups(workload)
    drawn = [_draw(given, rng) for _ in range(2)]
    sorting = correlating = math.inf
    pairs = 0
    for _ in range(repeats + 1):
        begin = time.process_time()
        base, target = (_sort(side) for side in drawn)
        middle = time.process_time()
        found = _LOOKUP(base, target, groups, window, exclude_same=False)
        correlating = min(correlating, time.process_time() - middle)
        sorting = min(sorting, middle - begin)
        pairs = len(found.base_index)
    return SlopePoint(name, events, pairs, sorting, correlating)


def _draw(given: Given, rng: np.random.Generator) -> Side:
    """Draw an unsorted stream."""
    workload = given.workload
    latest = rng.integers(0, int(workload.events / workload.rate * 1e6), workload.events)
    lengths = rng.integers(MIN_UNCERTAINTY_US, MAX_UNCERTAINTY_US + 1, workload.events)
    if given.lengths:
        choice: NDArray[np.int64] = np.linspace(
            MIN_UNCERTAINTY_US, MAX_UNCERTAINTY_US, given.lengths
        ).astype(np.int64)
        lengths = choice[rng.integers(0, given.lengths, workload.events)]
    return Side(latest - lengths, latest)


def _sort(side: Side) -> Side:
    order = np.argsort(side.latest, kind="stable")
    return Side(side.earliest[order], side.latest[order])


def report_kernels(points: Sequence[KernelPoint]) -> Report:
    """Build the table of all algorithms."""
    rows = []
    for point in points:
        events = 2 * point.given.workload.events
        for name in ALGORITHMS:
            seconds = point.seconds.get(name)
            cells = ["-"] * 4
            if seconds is not None:
                cells = [
                    f"{point.pairs / seconds / 1e6:,.1f}",
                    f"{events / seconds / 1e6:,.2f}",
                    f"{point.writing / seconds:.2f}",
                    f"{point.scanning / seconds:.1f}",
                ]
            rows.append([f"{point.given.name}: {name}", f"{point.pairs:,}", *cells])
    return Report(
        "All algorithms as kernels",
        KERNELS,
        (
            *("workload, algorithm", "pairs", "M pairs/s", "M events/s"),
            *("sequential write", "plain loop"),
        ),
        rows,
    )


def report_slopes(points: Sequence[SlopePoint]) -> Report:
    """Build the table of time by n."""
    rows = []
    before: SlopePoint | None = None
    for point in points:
        slope = "-"
        if before is not None and before.name == point.name:
            growth = math.log(point.seconds / before.seconds)
            slope = f"{growth / math.log(point.events / before.events):.2f}"
        before = point
        n = 2 * point.events
        rows.append(
            [
                f"{point.name}, {point.events:,} a stream",
                f"{point.pairs:,}",
                f"{point.sorting * 1e3:,.2f} ms",
                f"{point.correlating * 1e3:,.2f} ms",
                f"{point.seconds * 1e9 / (n * math.log2(n) + point.pairs):.2f} ns",
                slope,
            ]
        )
    return Report(
        "Time against the number of events",
        SLOPES,
        (
            *("series", "pairs", "sorting", "lazy_lookup"),
            *("time / (n log₂ n + pairs)", "slope"),
        ),
        rows,
    )
