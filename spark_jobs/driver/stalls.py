"""Decide from times whether a query still completes batches.

A query waits while it has unread records or runs a batch. The time for which it has waited since
its last completed batch has two limits: after the first the query is stalled, which is reported;
after the second it hangs, and is restarted. A query without work may complete no batch for hours.

Before its first batch, a query compiles kernels, which takes minutes where no cache has them, and
repeats a batch that was begun before. It is then never stalled: its state `starting` already says
that it does not run. The second limit applies to it too.

Only time in which the driver looks is counted. After a pause of the whole machine, or of the
driver alone, a query that could not run or could not be seen is not restarted.
"""

from __future__ import annotations

from enum import Enum


class Pace(Enum):
    """A query completes batches or has no work, is stalled, or hangs."""

    FINE = "fine"
    STALLED = "stalled"
    HANGING = "hanging"


class StallWatch:
    """Measures how long a query has waited for its next completed batch.

    Parameters
    ----------
    stalled_seconds : float
        Time without a completed batch after which a query is stalled.
    hanging_seconds : float
        Time without a completed batch after which a query hangs.
    step_seconds : float
        Max time that counts between two looks.
    now : float
        Time of the start of the query, in seconds, from a clock that never moves back.
    """

    def __init__(
        self, stalled_seconds: float, hanging_seconds: float, step_seconds: float, now: float
    ) -> None:
        self._stalled_seconds = stalled_seconds
        self._hanging_seconds = hanging_seconds
        self._step_seconds = step_seconds
        self._looked_at = now
        self._is_waiting = False
        self._has_completed = False
        self.waited_seconds = 0.0

    def complete(self) -> None:
        """Record a completed batch; whether the query waits is unknown until the next `wait`."""
        self._has_completed = True
        self.wait(is_waiting=False)

    def wait(self, *, is_waiting: bool) -> None:
        """Record whether the query has unread records or runs a batch."""
        self._is_waiting = is_waiting
        if not is_waiting:
            self.waited_seconds = 0.0

    def look(self, now: float) -> Pace:
        """Return the pace of the query.

        Parameters
        ----------
        now : float
            The time, from the clock of the constructor.
        """
        if self._is_waiting:
            self.waited_seconds += min(now - self._looked_at, self._step_seconds)
        self._looked_at = now
        if self.waited_seconds >= self._hanging_seconds:
            return Pace.HANGING
        if self._has_completed and self.waited_seconds >= self._stalled_seconds:
            return Pace.STALLED
        return Pace.FINE
