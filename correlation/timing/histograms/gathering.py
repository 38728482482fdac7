"""The targets of released base events, from all segments, as one.

Whoever compares all targets of a base event, or asks whether there is one, looks at the segments of
a stream together. Those of events with histograms are put into one, as far as the base events
reach.

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

# No row.
NONE = -1
# More than a segment has.
_ROWS = 2**40


@dataclass(frozen=True, slots=True)
class Gathered:
    """Targets in one segment, and where they were: row `rows[i]` of segment `places[i]`."""

    segment: Segment
    places: Int64s
    rows: Int64s

    def find(self, places: Int64s, rows: Int64s) -> Int64s:
        """Give the row here of each row there; NONE where it is not among the gathered."""
        mine = self.places * _ROWS + self.rows
        order = np.argsort(mine)
        wanted = places * _ROWS + rows
        found = order[np.minimum(np.searchsorted(mine[order], wanted), len(mine) - 1)]
        return np.where(mine[found] == wanted, found, NONE)


def gather_targets(
    base: Segment, targets: Sequence[Segment], reach: tuple[int, int]
) -> Gathered | None:
    """Put those targets into one segment that some base event can reach.

    Parameters
    ----------
    base : Segment
        Events of A.
    targets : sequence of Segment
        Of B.
    reach : (int, int)
        Least and greatest max_B - max_A of any satisfied pair, in µs.

    Returns
    -------
    Gathered or None
        None if there are none.
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
