"""Ask for a batch if slots may have left out the metrics of the last one.

A slot with a large record does not write it in each batch (`spark_jobs.worker.metrics_pace`). If no
batch follows, as when all streams are replayed to their end, the record would remain that of an
earlier batch.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from spark_jobs.worker.metrics_pace import MAX_PAUSE_US

if TYPE_CHECKING:
    from collections.abc import Callable

# The clocks of the slots' hosts may be behind.
_PAUSE_SECONDS = MAX_PAUSE_US / 1_000_000 + 1


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

    def needs_batch(self) -> bool:
        """Return whether the caller must cause a batch now."""
        now = self._elapsed()
        if self._since is None or now - self._since < _PAUSE_SECONDS:
            return False
        self._since, self._is_asked = now, True
        return True
