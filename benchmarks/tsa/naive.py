"""Naive evaluation: all events are kept, and each step evaluates the whole query over all of them.

A step decides every pair of a smoke and a report by the whole formula, in a compiled loop over
columns; the reports of a smoke are searched until one of them stops it. Results whose time is
after the progress are not known yet. New results are those that no step before has found. Two
shortcuts keep the baseline from being slower than it has to be: areas are compared by number, and
the loop ends at the first report that stops a smoke.

Reference. Novoseltsev 2013 (TSA), "naïve evaluation", with the bound of the incremental one.

Cost. O(smokes · reports) a step.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks.tsa.workload import ATTRIBUTE, DEADLINE_US, DELAY_US, STREAMS
from correlation.buffers.columns import BytesColumn, DictionaryColumn, Int64s, number_values
from correlation.buffers.events import Events
from correlation.resources.attributes import column_name

_NO_EVENTS_US = -(2**60)


class Kept(NamedTuple):
    """All events of a stream so far, in order of arrival.

    Attributes
    ----------
    time : ndarray of int64, shape (n,)
        Times, in µs.
    area : ndarray of int64, shape (n,)
        Numbers of the areas.
    """

    time: Int64s
    area: Int64s


@njit(cache=True)
def _mark_alarms_kernel(
    smokes: Kept, reports: Kept, until: int, deadline: int, alarms: NDArray[np.bool_]
) -> None:
    """Mark the smokes up to a time that no report follows within the deadline."""
    for i in range(len(smokes.time)):
        time = smokes.time[i]
        alarms[i] = time <= until
        if not alarms[i]:
            continue
        for j in range(len(reports.time)):
            if (
                smokes.area[i] == reports.area[j]
                and time <= reports.time[j]
                and reports.time[j] <= time + deadline
            ):
                alarms[i] = False
                break


class Naive:
    """Naive evaluation of the running example on key-less streams."""

    def __init__(self) -> None:
        self._numbers = number_values()
        empty = np.zeros(0, np.int64)
        self._kept = {name: Kept(empty, empty) for name in STREAMS}
        self._ids = {name: BytesColumn.from_list([]) for name in STREAMS}
        self._reported = np.zeros(0, np.bool_)

    def take(self, events: list[Events]) -> Int64s:
        """Add the events of a block; return the numbers of the smokes that are new results."""
        for part in events:
            self._add(part)
        smokes, reports = (self._kept[name] for name in STREAMS)
        # Of the watermark of each stream, the last microsecond: its events are complete up to it.
        progress = [int(it.time.max(initial=_NO_EVENTS_US)) - DELAY_US - 1 for it in self._order()]
        until = min(progress[0], progress[1] - DEADLINE_US)
        alarms = np.empty(len(smokes.time), np.bool_)
        _mark_alarms_kernel(smokes, reports, until, DEADLINE_US, alarms)
        before = np.concatenate(
            [self._reported, np.zeros(len(alarms) - len(self._reported), np.bool_)]
        )
        self._reported = alarms
        return np.flatnonzero(alarms & ~before)

    @property
    def buffered(self) -> int:
        """Number of kept events."""
        return sum(len(it.time) for it in self._order())

    @property
    def nbytes(self) -> int:
        """Memory of the columns of kept events, in bytes."""
        columns = sum(it.time.nbytes + it.area.nbytes for it in self._order())
        return columns + sum(it.nbytes for it in self._ids.values())

    def ids(self, numbers: Int64s) -> set[bytes]:
        """Return the ids of some smokes."""
        return set(self._ids["smoke"].take(numbers).to_list())

    def _order(self) -> list[Kept]:
        return [self._kept[name] for name in STREAMS]

    def _add(self, events: Events) -> None:
        column = cast("DictionaryColumn", events.columns[column_name(ATTRIBUTE)])
        names = column.values.to_list()
        numbers = np.fromiter(map(self._numbers.__getitem__, names), np.int64, len(names))
        before = self._kept[events.stream]
        self._kept[events.stream] = Kept(
            np.concatenate([before.time, events.latest]),
            np.concatenate([before.area, numbers[column.codes]]),
        )
        self._ids[events.stream] = BytesColumn.concat([self._ids[events.stream], events.id])
