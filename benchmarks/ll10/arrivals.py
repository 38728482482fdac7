"""Streams of LL10 section 5, in order of arrival.

The two streams have equal rates and lengths uniform between ρ and π; an event arrives up to D after
its latest time. Arrivals before stream time 0 fill the buffers, so that the measurement from 0 on
covers the steady state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.kernel import MAX_UNCERTAINTY_US, MIN_UNCERTAINTY_US
from correlation.timing.intervals.satisfaction import bounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.timing.intervals.window import TimingWindow

DELAY_US = 100_000
LENGTHS = (MIN_UNCERTAINTY_US, MAX_UNCERTAINTY_US)


@dataclass(frozen=True)
class Workload:
    """Two streams and a condition.

    Parameters
    ----------
    rate : int
        Events per second and stream.
    events : int
        Number of measured events per stream.
    window : TimingWindow
        The condition.
    delay_us : int
        D: the max delay of an event after its latest time, microseconds. With 0, events arrive in
        the order of their latest times.
    keys : int
        Equally frequent join keys.
    """

    rate: int
    events: int
    window: TimingWindow
    delay_us: int = DELAY_US
    keys: int = 1

    @property
    def span_us(self) -> int:
        """Measured stream time, microseconds."""
        return self.events * 1_000_000 // self.rate

    @property
    def reach(self) -> tuple[int, int]:
        """Min and max of max_B - max_A of a satisfied pair (docs/proofs.md, P-KEEP)."""
        return bounds(self.window, *LENGTHS, *LENGTHS)

    @property
    def fill_from_us(self) -> int:
        """Stream time of the first arrivals that may be needed at time 0, microseconds."""
        min_s, max_s = self.reach
        return -(max(-min_s, max_s) + 2 * self.delay_us)

    def keep_values(self, now_us: int) -> tuple[int, int]:
        """Return the keep values of A and of B at a stream time.

        As in LL10 Algorithm 2, line 8: future events have a latest time of at least now - D.
        """
        min_s, max_s = self.reach
        mark = now_us - self.delay_us
        return mark - max_s, mark + min_s


class Arrivals(NamedTuple):
    """Events of both streams in order of arrival.

    Attributes
    ----------
    at_us : ndarray of int64, shape (n,)
        Stream time of the arrival; events before 0 only fill the buffers.
    earliest, latest : ndarray of int64, shape (n,)
        Microseconds.
    key : ndarray of int64, shape (n,)
        Number of the join key.
    side : ndarray of int64, shape (n,)
        0 of A, 1 of B.
    """

    at_us: NDArray[np.int64]
    earliest: NDArray[np.int64]
    latest: NDArray[np.int64]
    key: NDArray[np.int64]
    side: NDArray[np.int64]

    @property
    def first_measured(self) -> int:
        """Position of the first arrival at or after stream time 0."""
        return int(np.searchsorted(self.at_us, 0))


def draw_arrivals(workload: Workload, seed: int = 2010) -> Arrivals:
    """Draw the arrivals of a workload.

    Parameters
    ----------
    workload : Workload
        Workload to draw.
    seed : int
        Equal seeds give equal events.

    Returns
    -------
    Arrivals
    """
    rng = np.random.default_rng(seed)
    # Twice the needed time: buffers of blocks have dropped events by then.
    begin = 2 * workload.fill_from_us
    count = 2 * round(workload.rate * (workload.span_us - begin) / 1e6)
    at_us = np.sort(rng.integers(begin, workload.span_us, count))
    latest = at_us - rng.integers(0, workload.delay_us + 1, count)
    lengths = rng.integers(MIN_UNCERTAINTY_US, MAX_UNCERTAINTY_US + 1, count)
    key = rng.integers(0, workload.keys, count)
    side = rng.permutation(np.arange(count) % 2)
    return Arrivals(at_us, latest - lengths, latest, key, side)


def cut_by_size(arrivals: Arrivals, size: int) -> list[tuple[int, int, int]]:
    """Split arrivals into blocks; a block is complete when `size` events of either stream wait.

    Returns
    -------
    list of (int, int, int)
        First and last position (the latter excluded) of a block, and the stream time at which it is
        complete. Stream time 0 also ends a block, so that no block is measured in part.
    """
    first, last = arrivals.first_measured, len(arrivals.at_us)
    blocks = []
    begin = 0
    while begin < last:
        end = first if begin < first else last
        waiting = [np.flatnonzero(arrivals.side[begin:end] == side) for side in (0, 1)]
        full = [int(rows[size - 1]) for rows in waiting if len(rows) >= size]
        stop = begin + min(full) + 1 if full else end
        blocks.append((begin, stop, int(arrivals.at_us[stop - 1])))
        begin = stop
    return blocks


def cut_by_interval(arrivals: Arrivals, interval_us: int) -> list[tuple[int, int, int]]:
    """Split arrivals into blocks of equal stream time; see `cut_by_size`."""
    first = int(arrivals.at_us[0]) // interval_us
    last = int(arrivals.at_us[-1]) // interval_us + 1
    ticks = np.arange(first, last + 1) * interval_us
    ends = np.searchsorted(arrivals.at_us, ticks)
    return [
        (int(begin), int(end), int(tick))
        for begin, end, tick in zip(ends[:-1], ends[1:], ticks[1:], strict=True)
        if begin < end
    ]
