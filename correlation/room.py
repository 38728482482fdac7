"""Room in memory for the pairs of timing conditions in a batch."""

from __future__ import annotations

# Pairs of a batch that are kept in memory until they are written; further ones are found again.
_KEPT_PAIRS = 4_000_000


class Room:
    """Room for pairs that operators of timing conditions keep in memory until they are written.

    All conditions of a slot, and all blocks of a batch, share it.

    Parameters
    ----------
    left : int or None
        Number of pairs that may still be kept; None: the default of a batch.
    """

    def __init__(self, left: int | None = None) -> None:
        self.left = _KEPT_PAIRS if left is None else left

    def take(self, count: int) -> bool:
        """Return whether there is room for some pairs, and take it."""
        if count > self.left:
            return False
        self.left -= count
        return True
