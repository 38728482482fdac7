"""Lists into which a slot divides its sets: one, one per join key, or one per cell of a grid.

In a grid of g groups the sets of two groups meet in one cell (see `correlation.buffers.grid`). The
copy of a set in the cell {h, k} has the key (h, k) if the set is of group h.

    pairs of one stream     the cell {h, h} joins group h with itself, the cell {h, k} the two
                            groups with each other: g (g + 1) / 2 lists
    pairs of two streams    group h of A is joined with group k of B: g² lists

By P-GRID, any two sets meet in exactly one list. `merging` merges the lists.
"""

from __future__ import annotations

from typing import NamedTuple

from correlation.buffers.grid import crossed_key

Key = bytes | None


class Division(NamedTuple):
    """Division of the sets of a slot into lists.

    Parameters
    ----------
    per_key : bool
        Whether each join key has a list.
    groups : int
        Number of groups g of the grid; 1 without a grid.
    crossed : bool
        Whether pairs are of sets of different streams.
    """

    per_key: bool
    groups: int
    crossed: bool

    @property
    def has_cells(self) -> bool:
        """Whether a list is that of a cell, to be merged with those of other cells."""
        return self.groups > 1

    @property
    def is_single(self) -> bool:
        """Whether all sets are in one list, whose name is None."""
        return not self.per_key and not self.has_cells

    def place(self, side: int, key: bytes) -> tuple[Key, int]:
        """Return the list of the sets of a stream with a join key, and their half of the list.

        Parameters
        ----------
        side : int
            0 for stream A, 1 for stream B.
        key : bytes
            Join key.

        Returns
        -------
        Key, int
            Name of the list; 0 or 1: if a list is crossed, its pairs are of sets of both halves.
        """
        if not self.has_cells:
            return (key if self.per_key else None), side
        other = crossed_key(key)
        if self.crossed:
            return (other if side else key), side
        return min(key, other), int(key > other)

    def is_crossed(self, name: Key) -> bool:
        """Return whether the pairs of a list are of sets of both halves."""
        if name is not None and self.has_cells and not self.crossed:
            return name != crossed_key(name)
        return self.crossed
