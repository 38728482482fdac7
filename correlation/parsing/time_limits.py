"""Limits that a stream declares for the times of its events.

`TimeLimits.check` is the definition, with the reason of a rejection; `TimeLimits.are_kept` decides
the same for columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from correlation.errors import RejectedEventError
from correlation.limits import TIME_LIMIT_US
from correlation.reasons import Reason
from correlation.resources.times import out_of_range

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.buffers.columns import Int64s
    from correlation.resources.streams import Stream


class TimeLimits:
    """Limits of a stream for the times of its events (spec: timing, sections 1 and 7).

    The times of an event that lasts are not uncertain: its end, like the `earliest` time of other
    events, may not be ahead of Kafka's clock by more than max_skew.

    Parameters
    ----------
    stream : Stream
        Stream with the limits.
    """

    __slots__ = ("_lasts", "_live", "_max_length", "_min_length", "_skew")

    def __init__(self, stream: Stream) -> None:
        self._live, self._skew = stream.clock == "live", stream.max_skew_us
        self._lasts = stream.lasts
        self._min_length, self._max_length = stream.min_uncertainty_us, stream.max_uncertainty_us
        if stream.lasts:
            self._min_length = stream.min_length_us or 0
            # No event is longer than twice the limit of times.
            longest = stream.max_length_us
            self._max_length = 2 * TIME_LIMIT_US if longest is None else longest

    def check(self, earliest: int, latest: int, record_timestamp_us: int) -> None:
        """Raise RejectedEventError if an interval exceeds a limit; times in µs."""
        length = latest - earliest
        if length < 0:
            low, high = self._ends
            reason = Reason.BEGIN_AFTER_END if self._lasts else Reason.EARLIEST_AFTER_LATEST
            raise RejectedEventError(reason, f"{low} is {-length} us after {high}")
        if not (-TIME_LIMIT_US <= earliest and latest <= TIME_LIMIT_US):
            raise out_of_range()
        if length < self._min_length:
            raise RejectedEventError(
                Reason.SHORTER_THAN_DECLARED,
                f"length {length} us is below min_{self._limit}, {self._min_length} us",
            )
        if length > self._max_length:
            raise RejectedEventError(
                Reason.LONGER_THAN_DECLARED,
                f"length {length} us exceeds max_{self._limit}, {self._max_length} us",
            )
        reported = latest if self._lasts else earliest
        if self._live and reported > record_timestamp_us + self._skew:
            raise RejectedEventError(
                Reason.FUTURE_DATED,
                f"{self._ends[self._lasts]} is {reported - record_timestamp_us} us after the "
                f"record's Kafka timestamp; max_skew is {self._skew} us",
            )

    def are_kept(
        self, earliest: Int64s, latest: Int64s, record_timestamp_us: Int64s
    ) -> NDArray[np.bool_]:
        """Return which of n intervals exceed no limit.

        Parameters
        ----------
        earliest, latest : int64[n]
            The intervals, in µs. Times out of the range of all times may be any value out of it.
        record_timestamp_us : int64[n]
            Kafka's timestamp of each record, in µs.
        """
        # Of times that are in their range, no difference overflows.
        length = latest - earliest
        found: NDArray[np.bool_] = (
            (earliest >= -TIME_LIMIT_US)
            & (earliest <= TIME_LIMIT_US)
            & (latest >= -TIME_LIMIT_US)
            & (latest <= TIME_LIMIT_US)
            & (length >= max(self._min_length, 0))
            & (length <= self._max_length)
        )
        if self._live:
            reported = latest if self._lasts else earliest
            found &= reported - self._skew <= record_timestamp_us
        return found

    @property
    def _ends(self) -> tuple[str, str]:
        return ("begin", "end") if self._lasts else ("earliest", "latest")

    @property
    def _limit(self) -> str:
        return "length" if self._lasts else "uncertainty"
