"""How many alarms chance alone gives, of conditions that report each event of A once at most.

Problem. Streams that know nothing of each other still have pairs that satisfy a condition. How many
events of A have at least one B, and how many have none?

Definitions. The latest times of either stream are a Poisson process, the lengths independent of
them and of each other, each of them uniform between the shortest and the longest; k keys are
equally frequent. |S(l_A, l_B)| is the width of the s-window.

Theorem (docs/proofs.md, P-ALONE). The B that satisfy the condition with an A of length l_A are a
Poisson number of mean λ(l_A) = rate_B E|S(l_A, l_B)| / k, so a part E e^(-λ(l_A)) of the events of
A has none. It holds within one stream too.

Reference. Thinning of Poisson processes; Slivnyak's theorem.

Cost. O(1): the mean over all pairs of lengths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from correlation.timing.chance import spread_lengths
from correlation.timing.conditions import UNMATCHED
from correlation.timing.satisfaction import s_window

if TYPE_CHECKING:
    from correlation.operators import Load
    from correlation.streams import Stream
    from correlation.timing.conditions import TimingCondition

_SECONDS_PER_HOUR = 3600.0


def count_final_alarms(condition: TimingCondition, a: Stream, b: Stream, load: Load) -> float:
    """Compute the expected alarms per hour of streams that are independent of each other.

    Parameters
    ----------
    condition : TimingCondition
        With `emit` best or unmatched.
    a, b : Stream
        Its streams; lengths are uniform between what they declare.
    load : Load
        Rates of both, and their keys.

    Returns
    -------
    float
        Alarms per hour.
    """
    lengths_a, lengths_b = spread_lengths(a), spread_lengths(b)
    low, high = s_window(
        np.repeat(lengths_a, len(lengths_b)), np.tile(lengths_b, len(lengths_a)), condition.window
    )
    widths = np.maximum(high - low + 1, 0).reshape(len(lengths_a), len(lengths_b))
    keys = load.keys if a.partitioning.by == "key" else 1.0
    expected = load.rates[condition.b] * widths.mean(axis=1) / 1e6 / keys
    alone = float(np.exp(-expected).mean())
    part = alone if condition.emit == UNMATCHED else 1.0 - alone
    return load.rates[condition.a] * part * _SECONDS_PER_HOUR
