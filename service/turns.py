"""Lock for writes: one write at a time, a bounded number of waiting writes, and a timeout."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from service.errors import BusyError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Each waiting write occupies one of the 40 threads that answer requests. A write takes about ten
# milliseconds, so the last one in the queue waits for a fraction of a second.
MAX_WAITING = 16


class Turns:
    """Lets one write proceed at a time.

    Parameters
    ----------
    seconds : float
        How long a write waits for its turn.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._places = threading.Semaphore(1 + MAX_WAITING)
        self._turn = threading.Lock()

    @contextmanager
    def take(self) -> Iterator[None]:
        """Acquire the turn and hold it until the block ends.

        Raises
        ------
        BusyError
            When too many writes are waiting, or the turn did not come in time.
        """
        if not self._places.acquire(blocking=False):
            raise BusyError(f"{MAX_WAITING} other writes are already waiting; nothing was written")
        try:
            if not self._turn.acquire(timeout=self._seconds):
                raise BusyError(
                    f"other writes took longer than {self._seconds:g} s; nothing was written"
                )
            try:
                yield
            finally:
                self._turn.release()
        finally:
            self._places.release()
