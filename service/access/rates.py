"""Limits of the number of requests per second: token buckets in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from ipaddress import IPv6Address, ip_address
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Max number of callers remembered; the least recently seen is forgotten first. About 2 MB.
_CALLERS = 10_000
# One subscriber has a whole /64 of addresses.
_SUBSCRIBER_BITS = 64


class RateLimit:
    """Token buckets, one for each caller.

    Parameters
    ----------
    per_second : float
        Requests per second that a caller may send in the long run; 0: no limit.
    burst : float
        Requests that a caller may send at once.
    seconds : callable
        Returns a monotonic time in seconds.
    callers : int
        Max number of callers remembered.
    """

    def __init__(
        self,
        per_second: float,
        burst: float,
        seconds: Callable[[], float],
        callers: int = _CALLERS,
    ) -> None:
        self._per_second = per_second
        self._burst = max(1.0, burst)
        self._seconds = seconds
        self._callers = callers
        # Tokens left, and the time of the last request, by caller.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> int:
        """Count a request; return 0 if it is allowed, else the seconds until one will be."""
        if self._per_second == 0:
            return 0
        now = self._seconds()
        tokens, before = self._buckets.pop(caller, (self._burst, now))
        tokens = min(self._burst, tokens + (now - before) * self._per_second)
        is_allowed = tokens >= 1
        self._buckets[caller] = (tokens - is_allowed, now)
        if len(self._buckets) > self._callers:
            self._buckets.popitem(last=False)
        return 0 if is_allowed else max(1, ceil((1 - tokens) / self._per_second))


def network_of(address: str) -> str:
    """Return the address whose requests are counted together: a /64 of IPv6, else the address."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return f"{int(found) >> _SUBSCRIBER_BITS:x}/64"
