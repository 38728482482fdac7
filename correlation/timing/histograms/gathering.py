"""Targets of released base events, gathered from all segments in one segment.

The search for the best target, or for any target, needs all segments of a stream together. For
events with histograms, the targets in reach of the base events are joined in one segment.

Cost. O(n log n) for n events in reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from correlation.buffers.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from correlation.buffers.columns import Int64s

# Row number for "no row".
NONE = -1
# Larger than the number of rows of any segment.
_ROWS = 2**40


@dataclass(frozen=True, slots=True)
class Gathered:
    """Targets in one segment, each with its origin: row `rows[i]` of segment `places[i]`."""

    segment: Segment
    places: Int64s
    rows: Int64s

    def find(self, places: Int64s, rows: Int64s) -> Int64s:
        """Return the gathered row of each row of an original segment; NONE if not gathered."""
        mine = self.places * _ROWS + self.rows
        order = np.argsort(mine)
        wanted = places * _ROWS + rows
        found = order[np.minimum(np.searchsorted(mine[order], wanted), len(mine) - 1)]
        return np.where(mine[found] == wanted, found, NONE)


def gather_targets(
    base: Segment, targets: Sequence[Segment], reach: tuple[int, int]
) -> Gathered | None:
    """Join the targets in reach of the base events in one segment.

    Parameters
    ----------
    base : Segment
        Events of A.
    targets : sequence of Segment
        Segments of B.
    reach : (int, int)
        Min and max of max_B - max_A of any satisfied pair, in µs.

    Returns
    -------
    Gathered or None
        None if no target is in reach.
    """
    first, last = base.min_latest + reach[0], base.max_latest + reach[1]
    found = []
    for place, target in enumerate(targets):
        rows = np.flatnonzero((target.latest >= first) & (target.latest <= last))
        if len(rows):
            found.append((place, target, rows))
    if not found:
        return None
    joined, order = Segment.join([target.take(rows) for _, target, rows in found])
    places = np.concatenate([np.full(len(rows), place, np.int64) for place, _, rows in found])
    rows = np.concatenate([rows for _, _, rows in found])
    return Gathered(joined, places[order], rows[order])
