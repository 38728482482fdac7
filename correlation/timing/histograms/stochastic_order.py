"""Stochastic order of uncertain times: shifts between shapes.

Problem. For shapes u and v, find the min integer δ such that u + δ dominates v in the usual
stochastic order, P(u + δ ≤ t) ≤ P(v ≤ t) for all t: an event of shape u whose latest time is δ or
more after the latest time of an event of shape v is stochastically later. With a table of these
shifts the look-up table of LL10 is valid for arbitrary distributions (docs/proofs.md,
P-STOCHASTIC-LOOKUP), which LL10 left as future work.

Definitions. Q_u(y) is the quantile function of u. u + δ dominates v iff Q_u(y) + δ ≥ Q_v(y) for
all y in (0, 1), so δ is the min integer ≥ sup (Q_v - Q_u). Both functions are linear between the
sums of masses at which a bucket of u or v ends, and can jump only there. The supremum is therefore
a limit at one of the ends of such a piece (P-STOCHASTIC-SHIFT).

Reference. Shaked and Shanthikumar, "Stochastic Orders", 2007, section 1.A; LL10 Corollary 2 and its
section 6.

Cost. O(n + m) integer operations for n and m buckets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from correlation.resources.histogram import Bucket, Histogram


def shift(u: Histogram, v: Histogram) -> int:
    """Compute the min δ such that u is stochastically later than v if max_u - max_v ≥ δ.

    Parameters
    ----------
    u, v : Histogram
        The shapes; their positions in time are ignored.

    Returns
    -------
    int
        δ ≥ 0, microseconds: an event of shape u dominates an event of shape v in the stochastic
        order if and only if max_u - max_v ≥ δ.
    """
    buckets_u = [bucket for bucket in u.shape().buckets if bucket.mass]
    buckets_v = [bucket for bucket in v.shape().buckets if bucket.mass]
    max_lead = 0
    i = j = below_u = below_v = level = 0
    while i < len(buckets_u) and j < len(buckets_v):
        bucket_u, bucket_v = buckets_u[i], buckets_v[j]
        next_u, next_v = below_u + bucket_u.mass, below_v + bucket_v.mass
        # Between two levels both quantile functions are linear: the ends of the piece are enough.
        following = min(next_u, next_v)
        for y in (level, following):
            max_lead = max(max_lead, _lead(bucket_u, y - below_u, bucket_v, y - below_v))
        level = following
        if next_u == level:
            i, below_u = i + 1, next_u
        if next_v == level:
            j, below_v = j + 1, next_v
    return max_lead


def tabulate_shifts(us: Sequence[Histogram], vs: Sequence[Histogram]) -> NDArray[np.int64]:
    """Compute the shifts of all pairs of shapes.

    Parameters
    ----------
    us, vs : sequence of Histogram

    Returns
    -------
    ndarray of int64, shape (len(us), len(vs))
        shift(us[i], vs[j]), microseconds.
    """
    shifts = [[shift(u, v) for v in vs] for u in us]
    return np.array(shifts, np.int64).reshape(len(us), len(vs))


def _lead(u: Bucket, mass_u: int, v: Bucket, mass_v: int) -> int:
    """Compute ⌈Q_v - Q_u⌉ at mass_u inside bucket u and mass_v inside bucket v."""
    place_u = u.lo_us * u.mass + (u.hi_us - u.lo_us) * mass_u
    place_v = v.lo_us * v.mass + (v.hi_us - v.lo_us) * mass_v
    return -((place_u * v.mass - place_v * u.mass) // (u.mass * v.mass))
