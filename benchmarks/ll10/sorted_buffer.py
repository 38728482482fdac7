"""The buffer of an algorithm that correlates every event as it arrives (LL10 Algorithms 1 and 2).

A buffer has one stream and one join key. `StreamBuffer` is designed for blocks; for single events
it would cost more than the correlation. These algorithms are therefore measured with an array, as
in the paper.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.timing.intervals.pairs import Side

_FIRST_ROOM = 1024


class ArrivalBuffer:
    """Events in arrays; obsolete events are removed from the front.

    Parameters
    ----------
    is_sorted : bool
        Whether events are in the order of their latest times, or in order of arrival.
    """

    __slots__ = ("_is_sorted", "begin", "columns", "end")

    def __init__(self, *, is_sorted: bool) -> None:
        self._is_sorted = is_sorted
        self.columns = Side(np.empty(_FIRST_ROOM, np.int64), np.empty(_FIRST_ROOM, np.int64))
        self.begin = self.end = 0

    def __len__(self) -> int:
        return self.end - self.begin

    def insert(self, earliest: int, latest: int) -> None:
        """Add an event."""
        if self.end == len(self.columns.latest):
            self._make_room()
        _insert_kernel(*self.columns, self.begin, self.end, earliest, latest, self._is_sorted)
        self.end += 1

    def drop(self, keep: int) -> None:
        """Remove the events at the front whose latest time is below the keep value."""
        self.begin = _pass_obsolete_kernel(self.columns.latest, self.begin, self.end, keep)

    def _make_room(self) -> None:
        """Move the events to the front of arrays with room for twice their number."""
        size = len(self)
        for column, old in zip(
            columns := Side(*np.empty((2, max(2 * size, _FIRST_ROOM)), np.int64)),
            self.columns,
            strict=True,
        ):
            column[:size] = old[self.begin : self.end]
        self.columns = columns
        self.begin, self.end = 0, size


@njit(cache=True)
def _insert_kernel(
    earliest: NDArray[np.int64],
    latest: NDArray[np.int64],
    begin: int,
    end: int,
    event_earliest: int,
    event_latest: int,
    is_sorted: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
) -> None:
    place = end
    while is_sorted and place > begin and latest[place - 1] > event_latest:
        earliest[place] = earliest[place - 1]
        latest[place] = latest[place - 1]
        place -= 1
    earliest[place] = event_earliest
    latest[place] = event_latest


@njit(cache=True)
def _pass_obsolete_kernel(latest: NDArray[np.int64], begin: int, end: int, keep: int) -> int:
    while begin < end and latest[begin] < keep:
        begin += 1
    return begin
