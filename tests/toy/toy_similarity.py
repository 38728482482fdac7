"""A similarity of another package: the part of the smaller set that the larger one contains.

The entry point in `toy_similarity-1.dist-info` registers it.
"""

from __future__ import annotations

import math

from numba import njit

from correlation.topk.similarities import KEY_SIGNATURE, Similarity, quotient_key


@njit(KEY_SIGNATURE)
def _containment_key(o: int, r: int, s: int) -> int:
    return quotient_key(o, min(r, s))


CONTAINMENT = Similarity(
    "containment",
    _containment_key,
    lambda o, r, s: o / min(r, s),
    lambda minimum: math.floor(minimum * 2**54),
)
