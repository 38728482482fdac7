"""Expected number of alarms by chance alone.

Problem. Two independent streams still have pairs that satisfy a condition. Compute the expected
number of these pairs per hour.

Definitions. The latest times of either stream are a Poisson process. The lengths are independent
of them and of each other; each is uniform between the shortest and the longest length, or all are
equal if the mapping sets a fixed length. Keys are independent too, and k keys are equally frequent;
for keys with shares p_i in A and q_i in B, k = 1 / Σ p_i q_i.

Theorem (docs/proofs.md, P-CHANCE). With |S(l_A, l_B)| the width of the s-window,

    alarms per second = rate_A rate_B E|S(l_A, l_B)| / k.

A self-correlation reports a pair once, in either order:

    alarms per second = rate² E|S(l_1, l_2) or -S(l_2, l_1)| / 2k.

Reference. Mecke's formula for the pairs of Poisson processes; spec section 4.

Cost. O(1): the mean over at most `_LENGTHS`² pairs of lengths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from correlation.timing.histograms.chance import measure_widths
from correlation.timing.intervals.satisfaction import s_window

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.condition_kind import Load
    from correlation.resources.streams import Stream
    from correlation.timing.conditions import TimingCondition

# Lengths per stream over which the width of the s-window is averaged.
_LENGTHS = 64
SECONDS_PER_HOUR = 3600.0


def count_chance_alarms(
    condition: TimingCondition, a: Stream, b: Stream, load: Load
) -> float | None:
    """Compute the expected alarms per hour of streams that are independent of each other.

    Parameters
    ----------
    condition : TimingCondition
        Every satisfied pair counts as an alarm.
    a, b : Stream
        Its streams. Templates are equally frequent; lengths of intervals are uniform between the
        declared min and max.
    load : Load
        Event rates of both streams, and the number of keys.

    Returns
    -------
    float or None
        Alarms per hour; None if events carry histograms of their own (histograms.chance).
    """
    keys = load.keys if a.partitioning.by == "key" else 1.0
    if a.has_shapes or b.has_shapes:
        width = _average_shapes(condition, a, b)
    else:
        width = _average_lengths(condition, a, b)
    if width is None:
        return None
    rate = load.rates[condition.a] * load.rates[condition.b]
    return rate * width / 1e6 / keys * SECONDS_PER_HOUR


def _average_shapes(condition: TimingCondition, a: Stream, b: Stream) -> float | None:
    """Compute the mean width of the s-windows of templates, in µs."""
    itself = condition.a == condition.b
    lengths = spread_lengths(a).tolist(), spread_lengths(b).tolist()
    widths = measure_widths(condition.window, a, b, *lengths, either_order=itself)
    return None if widths is None else float(widths.mean()) / (2 if itself else 1)


def _average_lengths(condition: TimingCondition, a: Stream, b: Stream) -> float:
    """Compute the mean width of the s-windows of intervals, in µs."""
    lengths_a, lengths_b = spread_lengths(a), spread_lengths(b)
    pairs_a = np.repeat(lengths_a, len(lengths_b))
    pairs_b = np.tile(lengths_b, len(lengths_a))
    low, high = s_window(pairs_a, pairs_b, condition.window)
    widths = _count_integers(low, high).astype(np.float64)
    if condition.a == condition.b:
        other_low, other_high = s_window(pairs_b, pairs_a, condition.window)
        shared = _count_integers(np.maximum(low, -other_high), np.minimum(high, -other_low))
        widths = (widths + _count_integers(other_low, other_high) - shared) / 2
    return float(widths.mean())


def spread_lengths(stream: Stream) -> NDArray[np.int64]:
    """Return sample lengths for a mean, in µs: every length, or the middles of equal parts."""
    fixed = stream.mapping.spread_us
    if fixed is not None:
        return np.array([fixed], np.int64)
    span = stream.max_uncertainty_us - stream.min_uncertainty_us
    if span < _LENGTHS:
        return np.arange(stream.min_uncertainty_us, stream.max_uncertainty_us + 1, dtype=np.int64)
    middles = (np.arange(_LENGTHS) + 0.5) / _LENGTHS
    return stream.min_uncertainty_us + np.rint(span * middles).astype(np.int64)


def _count_integers(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the integers of intervals; 0 if low > high."""
    counts: NDArray[np.int64] = np.maximum(high - low + 1, 0)
    return counts
