"""When one uncertain time is stochastically later than another: shifts between shapes.

Problem. For shapes u and v, the least integer δ such that u + δ is at least v in the usual
stochastic order, P(u + δ ≤ t) ≤ P(v ≤ t) for all t: an event of shape u whose latest time is at
least δ after that of an event of shape v lies stochastically after it. With a table of these
shifts the look-up table of LL10 holds for arbitrary distributions (docs/proofs.md,
P-STOCHASTIC-LOOKUP), which LL10 left as future work.

Definitions. Q_u(y) is the quantile function of u. u + δ dominates v iff Q_u(y) + δ ≥ Q_v(y) for
all y in (0, 1), so δ is the least integer at or above sup (Q_v - Q_u). Both are linear between
the sums of masses at which a bucket of u or v ends, and jump there at most, so that the supremum is
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
    """Compute how far shape u has to end after shape v to be stochastically later.

    Parameters
    ----------
    u, v : Histogram
        Their shapes count, not where in time they lie.

    Returns
    -------
    int
        δ ≥ 0, microseconds: an event of shape u is stochastically at least one of shape v if and
        only if max_u - max_v ≥ δ.
    """
    buckets_u = [bucket for bucket in u.shape().buckets if bucket.mass]
    buckets_v = [bucket for bucket in v.shape().buckets if bucket.mass]
    greatest = 0
    i = j = below_u = below_v = level = 0
    while i < len(buckets_u) and j < len(buckets_v):
        bucket_u, bucket_v = buckets_u[i], buckets_v[j]
        next_u, next_v = below_u + bucket_u.mass, below_v + bucket_v.mass
        # Between two levels both quantile functions are linear: the ends of the piece suffice.
        following = min(next_u, next_v)
        for y in (level, following):
            greatest = max(greatest, _lead(bucket_u, y - below_u, bucket_v, y - below_v))
        level = following
        if next_u == level:
            i, below_u = i + 1, next_u
        if next_v == level:
            j, below_v = j + 1, next_v
    return greatest


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
    """⌈Q_v - Q_u⌉ where mass_u of bucket u and mass_v of bucket v lie below."""
    place_u = u.lo_us * u.mass + (u.hi_us - u.lo_us) * mass_u
    place_v = v.lo_us * v.mass + (v.hi_us - v.lo_us) * mass_v
    return -((place_u * v.mass - place_v * u.mass) // (u.mass * v.mass))
