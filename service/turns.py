"""Whose turn it is to write: one write at a time, a few that wait, and none that waits for ever."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from service.errors import BusyError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Each occupies one of the 40 threads that answer requests. A broker that answers takes some ten
# milliseconds for a write, so that even the last one waits for a fraction of a second.
MOST_WAITING = 16


class Turns:
    """Lets one write proceed at a time.

    Parameters
    ----------
    seconds : float
        How long a write waits for its turn.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._places = threading.Semaphore(1 + MOST_WAITING)
        self._turn = threading.Lock()

    @contextmanager
    def take(self) -> Iterator[None]:
        """Wait for the turn, and keep it until the block ends.

        Raises
        ------
        BusyError
            When enough writes are waiting already, or the turn did not come in time.
        """
        if not self._places.acquire(blocking=False):
            raise BusyError(f"{MOST_WAITING} writes are waiting already; nothing was written")
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
