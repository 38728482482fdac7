"""The clock of the job's own heartbeats: the host's clock, unless it is ahead of Kafka's.

The clock of a host may be wrong, or jump. A heartbeat that is ahead of the times of the events
would make them late, and the slots refuse a heartbeat that is ahead of Kafka's clock: an idle
stream would then stop. Kafka's clock is known from the job's own heartbeats. The broker stamps each
of them when it is appended (`message.timestamp.type=LogAppendTime`), and its acknowledgement
contains the timestamp. Between acknowledgements, a clock that never jumps advances the time. The
time is behind Kafka's clock by the delay of an acknowledgement, which includes the time until the
driver polls for it; the shortest delay of the last minute counts. If Kafka's clock is set back by
less than five seconds, the time is therefore ahead of it for up to a minute, unless the host's
clock is behind.

If the clock of the host is behind Kafka's clock, its own time counts: heartbeats then declare less
than is known, which delays idle streams, but makes no event late. The same applies if the clock of
a broker is ahead of the host.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


# Time for which the fastest acknowledgement counts; meanwhile clocks drift apart by microseconds.
_KEPT_US = 60_000_000
# An acknowledgement that seems to have taken longer proves that Kafka's clock was set back.
_SLOWEST_US = 5_000_000


class HeartbeatClock:
    """The earlier of the host's time and Kafka's time.

    Parameters
    ----------
    clock : callable
        Wall time of the host in µs since 1970.
    elapsed : callable
        Time in ns, from a clock that never jumps.
    """

    def __init__(
        self, clock: Callable[[], int], elapsed: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._clock = clock
        self._elapsed = elapsed
        # Kafka's time minus the elapsed time, in µs, or None; and when it was found.
        self._ahead_us: int | None = None
        self._found_at_us = 0

    def note_append(self, timestamp_us: int) -> None:
        """Note the time of the broker when it appended a record; its acknowledgement arrives now.

        Parameters
        ----------
        timestamp_us : int
            Timestamp that the broker has given to the record, in µs since 1970.
        """
        elapsed_us = self._elapsed() // 1_000
        ahead_us = timestamp_us - elapsed_us
        known_us = self._ahead_us
        if (
            known_us is None
            or not 0 <= known_us - ahead_us <= _SLOWEST_US
            or elapsed_us - self._found_at_us > _KEPT_US
        ):
            self._ahead_us, self._found_at_us = ahead_us, elapsed_us

    def __call__(self) -> int:
        """Return the time in µs since 1970."""
        now_us = self._clock()
        if self._ahead_us is None:
            return now_us
        return min(now_us, self._elapsed() // 1_000 + self._ahead_us)
