"""The regions of a base event by supports alone, if shapes are not known beforehand.

Definitions. As in intervals.regions, for targets of any shape up to π long (docs/proofs.md,
P-SUPPORT):

    LH = lower - a    LL = lower + π    RL = upper - a    RH = upper + π

A base event of length a for which the window is narrower than a + π has no satisfaction region:
its probe regions meet at RL = upper - a, LL = RL + 1. Floor and ceiling cut LH and RH.

Cost. O(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from correlation.timing.intervals.regions import Regions

if TYPE_CHECKING:
    from correlation.timing.intervals.window import TimingWindow


def locate_supports(
    window: TimingWindow,
    length_us: int,
    min_uncertainty_us: int,  # noqa: ARG001 - the interface of `locate_regions`
    max_uncertainty_us: int,
) -> Regions:
    """Compute the regions of a base event that plays role A, as `regions.locate_regions` does.

    Parameters
    ----------
    window : TimingWindow
        The condition; mirror it for a base event of B.
    length_us : int
        Length of the base event, microseconds.
    min_uncertainty_us, max_uncertainty_us : int
        Range of the targets' lengths, microseconds.
    """
    scalars = window.scalars()
    right = scalars.upper - length_us
    left = min(scalars.lower + max_uncertainty_us, right + 1)
    return Regions(
        max(scalars.lower - length_us, scalars.floor),
        left,
        right,
        min(scalars.upper + max_uncertainty_us, scalars.ceiling),
    )
