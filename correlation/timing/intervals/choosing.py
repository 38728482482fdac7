"""Choice of the algorithm of a condition: `auto` chooses between lazy_lookup and indexed.

Problem. Both algorithms return the same pairs. The cost of lazy_lookup grows with the targets in
probe regions, the cost of indexed with the lengths among the targets in reach. The cheaper one
differs by stream and over time.

Algorithm. Declared lengths decide if all events of each stream are equally long: then a wide window
has no probe regions, and a narrow one has only probe regions. Otherwise each block decides: some
evenly spread base events are located among their targets, and each votes for indexed if the lengths
in its reach, at a cost of `PROBES_PER_LENGTH` each, cost less than the targets in its probe
regions. The majority of votes decides.

Cost. O(log t) per vote, and at most `_MAX_TARGETS` targets read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from correlation.timing.intervals.pairs import check_inputs
from correlation.timing.intervals.regions import _locate_event_kernel
from correlation.timing.intervals.searching import _search_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.timing.intervals.pairs import Side
    from correlation.timing.intervals.window import TimingWindow, WindowScalars

AUTO = "auto"
# Cost of a length in indexed (two searches, sometimes an s-window), in evaluations of a
# probability: 5 to 17 were measured, more if fewer base events share a length.
PROBES_PER_LENGTH = 10
_VOTES = 16
# Max targets read, and max distinct lengths counted, per vote.
_MAX_TARGETS = 1024
_MAX_LENGTHS = 256

_WHY = {
    "simple": "requested: the probability of every pair with equal keys is computed",
    "ssort": "requested: the probability of every pair within reach is computed",
    "eager": "requested: satisfaction regions are searched event by event; the probability of "
    "pairs in probe regions is computed",
    "lazy": "requested: satisfaction regions are searched block by block; the probability of "
    "pairs in probe regions is computed",
    "lazy_lookup": "the default: satisfaction regions decide most pairs; look-up tables decide "
    "most pairs in probe regions",
    "indexed": "requested: the order of the targets of each length decides every pair; no "
    "probability is computed",
}


class Choice(NamedTuple):
    """An algorithm and the reason for it.

    Attributes
    ----------
    algorithm : str
        A name of `algorithms.ALGORITHMS`, or AUTO if each block decides by its events.
    why : str
        The reason, for display.
    """

    algorithm: str
    why: str


def choose_algorithm(
    asked: str, window: TimingWindow, lengths_a: tuple[int, int], lengths_b: tuple[int, int]
) -> Choice:
    """Return the algorithm by the condition's `algorithm` field and the declared lengths.

    Parameters
    ----------
    asked : str
        The condition's `algorithm` field.
    window : TimingWindow
        The condition's window.
    lengths_a, lengths_b : (int, int)
        Shortest and longest length that either stream declares, microseconds.

    Returns
    -------
    Choice
        The algorithm that evaluates the condition.
    """
    if asked != AUTO:
        return Choice(asked, _WHY[asked])
    if lengths_a[0] == lengths_a[1] and lengths_b[0] == lengths_b[1]:
        if window.is_wide(lengths_a[1], lengths_b[1]):
            return Choice(
                "lazy_lookup",
                "auto: all events of each stream have the same declared length, so satisfaction "
                "regions decide every pair",
            )
        return Choice(
            "indexed",
            "auto: all events of each stream have the same declared length and the window is "
            "narrower than the events, so lengths decide every pair and regions decide none",
        )
    return Choice(
        AUTO,
        "auto: the streams declare several lengths, so the algorithm is chosen for each block: "
        "indexed if the targets in probe regions have few lengths, otherwise lazy_lookup "
        "(coincide_searches_total counts both)",
    )


def choose_by_events(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    target_lengths: tuple[int, int],
) -> str:
    """Return the algorithm for one block, by the targets in reach of its base events.

    Parameters
    ----------
    base, target, groups, window, target_lengths
        As in `pairs.Correlate`.

    Returns
    -------
    str
        "indexed" or "lazy_lookup".
    """
    base, target, groups = check_inputs(base, target, groups)
    votes = _count_votes_kernel(
        base.earliest,
        base.latest,
        target.earliest,
        target.latest,
        groups,
        window.scalars(),
        target_lengths,
    )
    return "indexed" if votes > 0 else "lazy_lookup"


@njit(cache=True)
def _count_votes_kernel(
    base_earliest: NDArray[np.int64],
    base_latest: NDArray[np.int64],
    target_earliest: NDArray[np.int64],
    target_latest: NDArray[np.int64],
    groups: NDArray[np.int64],
    window: WindowScalars,
    lengths: tuple[int, int],
) -> int:
    """Count votes for indexed minus votes against; base events without targets do not vote."""
    events = 0
    for g in range(len(groups)):
        events += groups[g, 1] - groups[g, 0]
    step = max((events + _VOTES - 1) // _VOTES, 1)
    seen = np.empty(_MAX_LENGTHS + 1, np.int64)
    votes = 0
    row = 0
    for g in range(len(groups)):
        size = groups[g, 1] - groups[g, 0]
        # The first row of this group that is a multiple of the step.
        for k in range(-row % step, size, step):
            i = groups[g, 0] + k
            left, sure, right, stop = _locate_event_kernel(
                base_earliest[i],
                base_latest[i],
                target_latest,
                groups[g, 2],
                groups[g, 3],
                lengths,
                window,
            )
            if left == stop:
                continue
            limit = min(((sure - left) + (stop - right)) // PROBES_PER_LENGTH, _MAX_LENGTHS)
            end = min(stop, left + _MAX_TARGETS)
            found = _count_lengths_kernel(target_earliest, target_latest, left, end, limit, seen)
            votes += 1 if found <= limit else -1
        row += size
    return votes


@njit(cache=True)
def _count_lengths_kernel(
    earliest: NDArray[np.int64],
    latest: NDArray[np.int64],
    begin: int,
    end: int,
    limit: int,
    seen: NDArray[np.int64],
) -> int:
    """Count distinct lengths in [begin, end), up to `limit` + 1; `seen` has room for them."""
    count = 0
    for j in range(begin, end):
        length = latest[j] - earliest[j]
        place = _search_kernel(seen, 0, count, length)
        if place < count and seen[place] == length:
            continue
        for n in range(count, place, -1):
            seen[n] = seen[n - 1]
        seen[place] = length
        count += 1
        if count > limit:
            break
    return count
