"""Alarms that were read recently, by which repeated alarms are recognised."""

from __future__ import annotations

from collections import OrderedDict


class RecentAlarms:
    """A bounded set of alarms; when it is full, the alarm that was added longest ago is forgotten.

    Parameters
    ----------
    limit : int
        Max number of alarms.

    Raises
    ------
    ValueError
        The limit is negative.
    """

    def __init__(self, limit: int) -> None:
        if limit < 0:
            raise ValueError(f"remembered_alarms: must be at least 0; got {limit}")
        self._limit = limit
        self._identities: OrderedDict[bytes, None] = OrderedDict()

    def __contains__(self, identity: bytes) -> bool:
        return identity in self._identities

    def add(self, identity: bytes) -> None:
        """Add an alarm; an alarm that is known counts as added last."""
        self._identities[identity] = None
        self._identities.move_to_end(identity)
        if len(self._identities) > self._limit:
            self._identities.popitem(last=False)
