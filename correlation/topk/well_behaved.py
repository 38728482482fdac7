"""Check of the properties that the top-k join needs of a similarity.

Problem. A package registers a similarity as functions. If they lack a property, lists are wrong.

Definitions. Let key(o, r, s) be the key of two sets with r and s tokens, of which they share o, for
1 <= o <= min(r, s). A similarity is well-behaved if

1. key(o, r, s) = key(o, s, r),
2. key(o, r, s) grows with o: otherwise a key would not determine the overlap of a listed pair,
3. key(o, r, s) does not grow with s,
4. key(o, r, o) does not decrease when o grows.

SWOOP's Definition 4.1 has the first and the fourth property, and that key(o, r, s) does not
decrease when o grows. Its Theorem 5.1 needs the third, too (docs/proofs.md, P-TOPK-BOUND).

Algorithm. Each property is transitive, so neighbours in a list of sizes are compared.

Reference. Mann, Augsten & Jensen, "SWOOP: Top-k Similarity Joins over Set Streams", 2017,
sections 4 and 5.
Cost. O(n³) for n sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

# Maximum key, with which the join can compute.
KEY_LIMIT = 2**62
# Overlap and sizes of two sets.
Place = tuple[int, int, int]


def find_wrong_key(key: Callable[[int, int, int], int], sizes: Sequence[int]) -> str | None:
    """Return a property that a key lacks, with an example; None if it has all.

    Parameters
    ----------
    key : callable
        `(o, r, s) -> key`.
    sizes : sequence of int
        Sizes and overlaps of the sets that are compared, ascending.
    """
    keys = {place: key(*place) for place in _places(sizes)}
    for place, found in keys.items():
        if not isinstance(found, int) or not 0 <= found <= KEY_LIMIT:
            return f"key must be an integer from 0 to 2**62; key{place} is {found!r}"
    for rule, one, other in _comparisons(sizes):
        if one in keys and other in keys and not _RULES[rule](keys[one], keys[other]):
            return f"key {rule}; key{one} is {keys[one]}, key{other} is {keys[other]}"
    return None


_SYMMETRIC = "must be symmetric"
_GROWS = "must grow with the overlap"
_SIZE = "must not grow with a size"
_SUBSET = "(o, r, o) must not decrease when o grows"
_RULES: dict[str, Callable[[int, int], bool]] = {
    _SYMMETRIC: lambda one, other: one == other,
    _GROWS: lambda one, other: one < other,
    _SIZE: lambda one, other: one >= other,
    _SUBSET: lambda one, other: one <= other,
}


def _places(sizes: Sequence[int]) -> Iterator[Place]:
    return ((o, r, s) for r in sizes for s in sizes for o in sizes if o <= min(r, s))


def _comparisons(sizes: Sequence[int]) -> Iterator[tuple[str, Place, Place]]:
    """Yield the properties, and the places of keys that they compare."""
    after = dict(pairwise(sizes))
    for o, r, s in _places(sizes):
        yield _SYMMETRIC, (o, r, s), (o, s, r)
        if o in after:
            yield _GROWS, (o, r, s), (after[o], r, s)
            yield _SUBSET, (o, r, o), (after[o], r, after[o])
        if s in after:
            yield _SIZE, (o, r, s), (o, r, after[s])


def find_wrong_minimum(
    key: Callable[[int, int, int], int],
    value: Callable[[int, int, int], float],
    minimum_key: Callable[[Fraction], int],
    sizes: Sequence[int],
    step: Fraction,
    *,
    is_distance: bool,
) -> str | None:
    """Return an example of a minimum that is not exact; None if all are.

    Parameters
    ----------
    key, value, minimum_key : callable
        Functions of the similarity.
    sizes : sequence of int
        Sizes and overlaps of the sets that are compared, ascending.
    step : Fraction
        Distance of two minimums, which is larger than the rounding of values.
    is_distance : bool
        Whether smaller values are more similar.
    """
    for place in _places(sizes):
        found = value(*place)
        if not isinstance(found, int | float) or not math.isfinite(found):
            return f"value must be a finite number; value{place} is {found!r}"
        # The next minimums below and above the value, which may be rounded.
        steps, margin = Fraction(found) / step, Fraction(1, 100)
        for minimum, is_below in (
            (math.floor(steps - margin) * step, True),
            (math.ceil(steps + margin) * step, False),
        ):
            reaches = key(*place) >= minimum_key(minimum)
            if minimum >= 0 and reaches is (is_below is is_distance):
                verb = "reaches" if reaches else "does not reach"
                return (
                    "minimum_key must be a key that the pairs of the minimum reach; "
                    f"key{place} {verb} minimum_key({float(minimum):g}), but the value is {found:g}"
                )
    return None
