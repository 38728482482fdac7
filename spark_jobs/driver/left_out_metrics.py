"""Ask for a batch if slots may have left out the metrics of the last one.

A slot with many conditions does not write its record in each batch
(`spark_jobs.worker.metrics_pace`). If no batch follows, as when all streams are replayed to their
end, the record would remain that of an earlier batch.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# With this number of conditions, slots write their small record in each batch.
_FEW_CONDITIONS = 16
# Longer than the longest pause of a slot.
_PAUSE_SECONDS = 11.0


class LeftOutMetrics:
    """Knows whether a batch was completed after which slots may not have written their metrics.

    Parameters
    ----------
    elapsed : callable
        Time in seconds, from a clock that never jumps.
    """

    def __init__(self, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._elapsed = elapsed
        # When a batch was completed, or the last one was asked for; None: all metrics are written.
        self._since: float | None = None
        self._is_asked = False

    def complete(self, records: int) -> None:
        """Note a completed batch.

        Parameters
        ----------
        records : int
            Number of records that it has read. A batch that was asked for has one record.
        """
        is_last = self._is_asked and records == 1
        self._is_asked = False
        self._since = None if is_last else self._elapsed()

    def needs_batch(self, conditions: int) -> bool:
        """Return whether the caller must cause a batch now.

        Parameters
        ----------
        conditions : int
            Number of conditions.
        """
        if self._since is None or conditions <= _FEW_CONDITIONS:
            return False
        if self._elapsed() - self._since < _PAUSE_SECONDS:
            return False
        self._since, self._is_asked = self._elapsed(), True
        return True
