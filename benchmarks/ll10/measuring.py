"""Several algorithms over the same arrivals, in turns."""

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
    """An algorithm and, if it waits for blocks, when one is complete.

    Attributes
    ----------
    algorithm : str
        Its name.
    block_events : int or None
        So many events of a stream make a block.
    interval_us : int or None
        So much stream time makes a block.
    """

    algorithm: str
    block_events: int | None = None
    interval_us: int | None = None

    @property
    def name(self) -> str:
        """Of the line in a plot."""
        if self.interval_us is None:
            return self.algorithm
        return f"{self.algorithm}, {self.interval_us / 1e6:g} s"

    def play(self, workload: Workload, arrivals: Arrivals) -> Measured:
        """Run it once."""
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
    """Raised when two algorithms found different numbers of pairs: their times mean nothing."""


def measure(workload: Workload, series: Sequence[Series], repeats: int) -> list[Measured]:
    """Run algorithms over the same arrivals.

    Parameters
    ----------
    workload : Workload
        To draw.
    series : sequence of Series
        To run, in turns, so that a busy machine is busy for all of them.
    repeats : int
        Runs of each.

    Returns
    -------
    list of Measured
        Of each the run of median processor time.

    Raises
    ------
    DifferentPairsError
        If they do not agree.
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
    """Have everything compiled before anything is measured."""
    for keys in (1, 2):
        measure(Workload(500, 1000, mutual(500, "0.8"), keys=keys), SERIES, 1)
