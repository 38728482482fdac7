"""The satisfaction and probe regions of a base event.

Problem. Given a base event of A and targets of B with lengths in [shortest, longest], split the
axis s = max_B - max_A into violated, probe, satisfied, probe, violated.

Definitions. With W as in intervals.satisfaction, the offsets from max_A are

    LH = lower + shortest - W(l_A, shortest)    LL = lower + longest - W(l_A, longest)
    RL = upper - l_A + W(l_A, shortest)         RH = upper - l_A + W(l_A, longest)

(LL10 Figure 1). All targets in [LL, RL], the satisfaction region, are satisfied; all targets
outside [LH, RH] are violated; [LH, LL) and (RL, RH] are the probe regions (docs/proofs.md,
P-REGIONS). A base event for which the window is narrow has an empty satisfaction region: its probe
regions meet at RL = upper - l_A, LL = RL + 1. Floor and ceiling cut LH and RH.

Reference. LL10 section 4.1; spec section 4.

Cost. O(1), two max depths per base event; O(log t) to find the regions among t targets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from numba import njit

from correlation.resources.durations import format_duration
from correlation.timing.intervals.satisfaction import _find_depth_kernel
from correlation.timing.intervals.searching import _search_kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from correlation.timing.intervals.window import TimingWindow, WindowScalars


class Regions(NamedTuple):
    """Offsets of s, microseconds; the probe regions are [lh, ll) and (rl, rh]."""

    lh: int
    ll: int
    rl: int
    rh: int


def locate_regions(
    window: TimingWindow, length_us: int, min_uncertainty_us: int, max_uncertainty_us: int
) -> Regions:
    """Compute the regions of a base event that plays role A.

    Parameters
    ----------
    window : TimingWindow
        The condition; mirror it for a base event of B.
    length_us : int
        Length of the base event, microseconds.
    min_uncertainty_us, max_uncertainty_us : int
        Range of the targets' lengths, microseconds.

    Returns
    -------
    Regions
        LH, LL, RL, RH as offsets from the base event's latest time.
    """
    offsets = _locate_offsets_kernel(
        length_us, min_uncertainty_us, max_uncertainty_us, window.scalars()
    )
    return Regions(*(int(offset) for offset in offsets))


def describe_regions(
    window: TimingWindow,
    min_uncertainty_a_us: int,
    max_uncertainty_a_us: int,
    min_uncertainty_b_us: int,
    max_uncertainty_b_us: int,
    locate: Callable[[TimingWindow, int, int, int], Regions] = locate_regions,
) -> dict[str, object]:
    """Return the regions of a condition as text for display.

    Parameters
    ----------
    window : TimingWindow
        The condition.
    min_uncertainty_a_us, max_uncertainty_a_us, min_uncertainty_b_us, max_uncertainty_b_us : int
        Min and max uncertainty of either stream, microseconds.
    locate : callable
        Computes the regions, with the signature of `locate_regions`.

    Returns
    -------
    dict
        "window": "wide" or "narrow"; "base_a" and "base_b", each for a base event of length
        "min_uncertainty" and "max_uncertainty": durations LH, LL, RL, RH, as offsets of the
        target's latest time from the base event's latest time, and their "meaning".
    """
    a = (min_uncertainty_a_us, max_uncertainty_a_us)
    b = (min_uncertainty_b_us, max_uncertainty_b_us)
    wide = window.is_wide(max_uncertainty_a_us, max_uncertainty_b_us)
    return {
        "window": "wide" if wide else "narrow",
        "base_a": _describe_direction(window, a, b, locate),
        "base_b": _describe_direction(window.mirrored(), b, a, locate),
    }


def _describe_direction(
    window: TimingWindow,
    base: tuple[int, int],
    target: tuple[int, int],
    locate: Callable[[TimingWindow, int, int, int], Regions],
) -> dict[str, object]:
    return {
        name: {
            "length": format_duration(length_us),
            **_describe_base(locate(window, length_us, *target)),
        }
        for name, length_us in zip(("min_uncertainty", "max_uncertainty"), base, strict=True)
    }


def _describe_base(regions: Regions) -> dict[str, str]:
    # An inner end is never shown beyond its horizon.
    certain = max(regions.ll, regions.lh), min(regions.rl, regions.rh)
    lh, ll, rl, rh = (format_duration(end) for end in (regions.lh, *certain, regions.rh))
    if regions.lh > regions.rh:
        meaning = "no target satisfies the condition"
    elif certain[0] > certain[1]:
        meaning = f"targets from {lh} to {rh} are probed, all others are violated"
    else:
        meaning = (
            f"targets from {ll} to {rl} are satisfied, targets below {lh} or above {rh} are "
            "violated, and the others are probed"
        )
    return {"LH": lh, "LL": ll, "RL": rl, "RH": rh, "meaning": meaning}


@njit(cache=True)
def _locate_offsets_kernel(
    length: int, shortest: int, longest: int, window: WindowScalars
) -> tuple[int, int, int, int]:
    """Compute LH, LL, RL, RH, the outer two cut by floor and ceiling."""
    deep_shortest = _find_depth_kernel(length, shortest, window)
    deep_longest = deep_shortest
    if longest != shortest:
        deep_longest = _find_depth_kernel(length, longest, window)
    lh = max(window.lower + shortest - deep_shortest, window.floor)
    rh = min(window.upper - length + deep_longest, window.ceiling)
    if window.upper - window.lower >= length + longest:
        return lh, window.lower + longest - deep_longest, window.upper - length + deep_shortest, rh
    return lh, window.upper - length + 1, window.upper - length, rh


@njit(cache=True)
def _locate_event_kernel(
    earliest: int,
    latest: int,
    target_latest: NDArray[np.int64],
    begin: int,
    end: int,
    lengths: tuple[int, int],
    window: WindowScalars,
) -> tuple[int, int, int, int]:
    """Find left, sure, right, stop of a base event among the targets in [begin, end)."""
    lh, ll, rl, rh = _locate_offsets_kernel(latest - earliest, lengths[0], lengths[1], window)
    left = _search_kernel(target_latest, begin, end, latest + lh)
    stop = _search_kernel(target_latest, left, end, latest + rh + 1)
    sure = _search_kernel(target_latest, left, stop, latest + ll)
    right = _search_kernel(target_latest, sure, stop, latest + rl + 1)
    return left, sure, right, stop
