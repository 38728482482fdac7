"""Measure several algorithms over the same arrivals, in turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from benchmarks.kernel import mutual
from benchmarks.ll10.arrivals import (
    Arrivals,
    Workload,
    cut_by_interval,
    cut_by_size,
    draw_arrivals,
)
from benchmarks.ll10.simulator import BY_ARRIVAL, BY_BLOCK, Measured, play_arrivals, play_blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

# LL10: "the enough number of tuple" of Figures 3 to 5.
BLOCK_EVENTS = 1_000


class Series(NamedTuple):
    """An algorithm and, if it uses blocks, their size.

    Attributes
    ----------
    algorithm : str
        Name of the algorithm.
    block_events : int or None
        Block size in events of a stream.
    interval_us : int or None
        Block size in stream time, microseconds.
    """

    algorithm: str
    block_events: int | None = None
    interval_us: int | None = None

    @property
    def name(self) -> str:
        """Name of the line in a plot."""
        if self.interval_us is None:
            return self.algorithm
        return f"{self.algorithm}, {self.interval_us / 1e6:g} s"

    def play(self, workload: Workload, arrivals: Arrivals) -> Measured:
        """Run the algorithm once."""
        if self.interval_us is not None:
            blocks = cut_by_interval(arrivals, self.interval_us)
        elif self.block_events is not None:
            blocks = cut_by_size(arrivals, self.block_events)
        else:
            return play_arrivals(self.algorithm, workload, arrivals)
        return play_blocks(self.algorithm, workload, arrivals, blocks)


SERIES = (
    *(Series(name) for name in BY_ARRIVAL),
    *(Series(name, block_events=BLOCK_EVENTS) for name in BY_BLOCK),
)


class DifferentPairsError(Exception):
    """Two algorithms found different numbers of pairs, so their times are meaningless."""


def measure(workload: Workload, series: Sequence[Series], repeats: int) -> list[Measured]:
    """Run algorithms over the same arrivals.

    Parameters
    ----------
    workload : Workload
        Workload to draw.
    series : sequence of Series
        Series to run, in turns, so that the load of the machine affects all of them.
    repeats : int
        Number of runs of each series.

    Returns
    -------
    list of Measured
        The run of median processor time of each series.

    Raises
    ------
    DifferentPairsError
        When the numbers of pairs differ.
    """
    arrivals = draw_arrivals(workload)
    runs = [[one.play(workload, arrivals) for one in series] for _ in range(repeats)]
    found = {run.pairs for turn in runs for run in turn}
    if len(found) > 1:
        raise DifferentPairsError(f"{workload}: {sorted(found)} pairs")
    return [
        sorted(turns, key=lambda run: run.busy_us)[repeats // 2]
        for turns in zip(*runs, strict=True)
    ]


def warm_up() -> None:
    """Compile all kernels before the measurements."""
    for keys in (1, 2):
        measure(Workload(500, 1000, mutual(500, "0.8"), keys=keys), SERIES, 1)
