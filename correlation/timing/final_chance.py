"""Expected number of alarms by chance alone, if each event of A is reported at most once.

Problem. Independent streams still have pairs that satisfy a condition. Compute how many events of A
have at least one B, and how many have no B.

Definitions. The latest times of either stream are a Poisson process. The lengths are independent of
them and of each other; each is uniform between the shortest and the longest length. k keys are
equally frequent. |S(l_A, l_B)| is the width of the s-window.

Theorem (docs/proofs.md, P-ALONE). The number of B that satisfy the condition with an A of length
l_A is Poisson with mean λ(l_A) = rate_B E|S(l_A, l_B)| / k. A fraction E e^(-λ(l_A)) of the events
of A therefore has no B. The theorem holds for self-correlations too.

Reference. Thinning of Poisson processes; Slivnyak's theorem.

Cost. O(1): the mean over all pairs of lengths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from correlation.timing.chance import SECONDS_PER_HOUR, spread_lengths
from correlation.timing.conditions import UNMATCHED
from correlation.timing.histograms.chance import measure_widths
from correlation.timing.intervals.satisfaction import s_window

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.condition_kind import Load
    from correlation.resources.streams import Stream
    from correlation.timing.conditions import TimingCondition


def count_final_alarms(
    condition: TimingCondition, a: Stream, b: Stream, load: Load
) -> float | None:
    """Compute the expected alarms per hour of streams that are independent of each other.

    Parameters
    ----------
    condition : TimingCondition
        With `emit` best or unmatched.
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
    widths = _measure(condition, a, b)
    if widths is None:
        return None
    keys = load.keys if a.partitioning.by == "key" else 1.0
    expected = load.rates[condition.b] * widths.mean(axis=1) / 1e6 / keys
    alone = float(np.exp(-expected).mean())
    part = alone if condition.emit == UNMATCHED else 1.0 - alone
    return load.rates[condition.a] * part * SECONDS_PER_HOUR


def _measure(condition: TimingCondition, a: Stream, b: Stream) -> NDArray[np.float64] | None:
    """Compute the widths of the s-windows of all shapes of A and B, in µs."""
    lengths_a, lengths_b = spread_lengths(a), spread_lengths(b)
    if a.has_shapes or b.has_shapes:
        lengths = lengths_a.tolist(), lengths_b.tolist()
        return measure_widths(condition.window, a, b, *lengths, either_order=False)
    low, high = s_window(
        np.repeat(lengths_a, len(lengths_b)), np.tile(lengths_b, len(lengths_a)), condition.window
    )
    widths: NDArray[np.float64] = np.maximum(high - low + 1, 0).astype(np.float64)
    return widths.reshape(len(lengths_a), len(lengths_b))
