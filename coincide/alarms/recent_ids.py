"""Ids that were read recently, by which repeated alarms are recognised."""

from __future__ import annotations

from collections import OrderedDict


class RecentIds:
    """A bounded set of ids; when it is full, the id that was added longest ago is forgotten.

    Parameters
    ----------
    limit : int
        Max number of ids.

    Raises
    ------
    ValueError
        The limit is negative.
    """

    def __init__(self, limit: int) -> None:
        if limit < 0:
            raise ValueError(f"remembered_ids: must be at least 0; got {limit}")
        self._limit = limit
        self._ids: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, ident: str) -> bool:
        """Add an id and return whether it is new; an id that is known counts as added last."""
        is_new = ident not in self._ids
        self._ids[ident] = None
        self._ids.move_to_end(ident)
        if len(self._ids) > self._limit:
            self._ids.popitem(last=False)
        return is_new
