"""Room in memory for the results of a batch."""

from __future__ import annotations

# Results of a batch that are kept in memory until they are written; further ones are found again.
_KEPT_RESULTS = 4_000_000


class Room:
    """Room for results that operators keep in memory until they are written.

    All conditions of a slot, and all blocks of a batch, share it.

    Parameters
    ----------
    left : int or None
        Number of results that may still be kept; None: the default of a batch.
    """

    def __init__(self, left: int | None = None) -> None:
        self.left = _KEPT_RESULTS if left is None else left

    def take(self, count: int) -> bool:
        """Return whether there is room for some results, and take it."""
        if count > self.left:
            return False
        self.left -= count
        return True
