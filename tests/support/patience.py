"""Time limits of tests: they only end a hang.

A machine that is ten times slower must produce the same verdicts. A wait therefore ends when its
condition holds, and its limit is minutes longer than a busy machine needs. Live streams accept
events that are as old as a whole run of the tests.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_SECONDS = 600
# Time for which the service waits for Kafka, in tests that do not stop Kafka.
SERVICE_SECONDS = 300
# Limit for processes that have been asked to end.
END_SECONDS = 300
# max_delay of live streams, in µs: longer than any restart or command.
MAX_DELAY_US = 24 * 3600 * 1_000_000
# A condition is checked often at first, then at intervals of a tenth of the time waited: each check
# takes time from the processes that are awaited.
_CHECK_SECONDS = 0.02
_MAX_CHECK_SECONDS = 1.0


def wait_until(
    holds: Callable[[], bool], seconds: float = PATIENCE_SECONDS, *, briefly: bool = False
) -> None:
    """Wait until a condition holds.

    Parameters
    ----------
    holds
        Checks the condition.
    seconds
        Max wait.
    briefly
        The condition may hold for a moment only: the interval between two checks stays short.

    Raises
    ------
    AssertionError
        The condition does not hold in time.
    """
    begin = time.monotonic()
    never_set = threading.Event()
    while not holds():
        waited = time.monotonic() - begin
        assert waited < seconds, f"not in {seconds:g} s"
        longest = _CHECK_SECONDS if briefly else _MAX_CHECK_SECONDS
        never_set.wait(min(max(waited / 10, _CHECK_SECONDS), longest))
