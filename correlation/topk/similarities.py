"""Similarities of sets that a top-k join can use, and their exact comparison.

Problem. Pairs of sets are ordered by similarity. Rounded values would decide ties wrongly.

Definitions. A similarity depends only on the overlap o of the two sets and on their sizes r and s,
and is well-behaved (`well_behaved`; SWOOP, Definition 4.1). Then no set that lacks j of the r
tokens of a set is more similar to it than the set of the other r − j tokens (Theorem 5.1;
docs/proofs.md, P-TOPK-BOUND).

Algorithm. Each similarity has an integer key in place of its value: a larger key is a larger
similarity, and equal keys are equal similarities (docs/proofs.md, P-TOPK-KEY). The bounds that the
join needs, the largest key of a set that lacks tokens and the overlap needed for a key, follow from
the key alone.

References. Mann, Augsten & Jensen, "SWOOP: Top-k Similarity Joins over Set Streams", 2017,
section 4.
Cost. A key is O(1), an overlap needed O(log o).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

import numpy as np
from numba import cfunc, njit, types
from numpy.typing import NDArray

from correlation.errors import InvalidFieldError, InvalidSimilarityError
from correlation.resources.checks import check_name
from correlation.topk.well_behaved import find_wrong_key, find_wrong_minimum

# Type of the compiled key: (overlap, size, size) -> key.
KEY_SIGNATURE = types.int64(types.int64, types.int64, types.int64)
# Maximum number of tokens of a set, for which all keys are exact (P-TOPK-KEY).
SIZE_LIMIT = 10_000
# Maximum number of decimal places of a minimum similarity, for which its key is exact.
MINIMUM_PLACES = 4
# Packages register further similarities as entry points of this group.
ENTRY_POINTS = "coincide.similarities"
# Keys of smaller sets are read from a table.
TABLE_SIZES = 32
# Bits of each of the two digits of a quotient.
_DIGIT_BITS = 27
_SCALE = 1 << (2 * _DIGIT_BITS)
# Sizes for which the keys of registered similarities are checked, and their minimums.
_SIZES = (*range(1, 13), 31, 32, 100, 1_000, SIZE_LIMIT - 1, SIZE_LIMIT)
_FEW_SIZES = range(1, 9)
Key = Callable[[int, int, int], int]


@njit(cache=True)
def quotient_key(numerator: int, denominator: int) -> int:
    """Return floor(numerator / denominator · 2**54), for similarities that are quotients.

    Quotients with denominators below 2**27 are ordered by their keys, and equal quotients have
    equal keys.

    Parameters
    ----------
    numerator, denominator : int
        0 <= numerator <= denominator < 2**27 and 0 < denominator.
    """
    scaled = numerator << _DIGIT_BITS
    high = scaled // denominator
    low = ((scaled - high * denominator) << _DIGIT_BITS) // denominator
    return (high << _DIGIT_BITS) + low


# The keys below have no signature: with one, each process would compile or load them at its import,
# also those that compare no sets.
@njit(cache=True)
def _jaccard_key(o: int, r: int, s: int) -> int:
    return quotient_key(o, r + s - o)


@njit(cache=True)
def _cosine_key(o: int, r: int, s: int) -> int:
    # The square of the similarity has the same order.
    return quotient_key(o * o, r * s)


@njit(cache=True)
def _dice_key(o: int, r: int, s: int) -> int:
    return quotient_key(2 * o, r + s)


@njit(cache=True)
def _overlap_key(o: int, _r: int, _s: int) -> int:
    return o


@njit(cache=True)
def _hamming_key(o: int, r: int, s: int) -> int:
    return 2 * SIZE_LIMIT - (r + s - 2 * o)


@dataclass(frozen=True, slots=True)
class Similarity:
    """A well-behaved similarity (SWOOP, Definition 4.1).

    Parameters
    ----------
    name : str
        Name in documents of conditions.
    key : callable
        `(o, r, s) -> int`, compiled with `numba.njit(KEY_SIGNATURE)`: integers from 0 to 2**62
        that are larger for more similar sets and equal for equally similar sets, for all sizes r, s
        up to SIZE_LIMIT and overlaps o from 1 to min(r, s). It is symmetric in r and s, grows with
        o, does not grow with s, and key(o, r, o) does not decrease when o grows.
    value : callable
        `(o, r, s) -> int or float`: the similarity, or the distance, as results contain it.
    minimum_key : callable
        `(Fraction) -> int`: a key that exactly the pairs reach whose similarity is at least a
        value, or whose distance is at most a value. Values have at most MINIMUM_PLACES decimal
        places.
    is_distance : bool
        Whether `value` is a distance: smaller is more similar.
    """

    name: str
    key: Key
    value: Callable[[int, int, int], float]
    minimum_key: Callable[[Fraction], int]
    is_distance: bool = False

    def overlap_needed(self, key: int, r: int, s: int) -> int | None:
        """Return the minimum overlap of two sets whose key is at least `key`, if it exists.

        Keys grow with the overlap, so for the key of a pair it is the overlap of the pair.

        Parameters
        ----------
        key : int
            Key to reach.
        r, s : int
            Sizes of the sets.
        """
        low, high = 1, min(r, s) + 1
        while low < high:
            middle = (low + high) // 2
            if self.key(middle, r, s) >= key:
                high = middle
            else:
                low = middle + 1
        return low if low <= min(r, s) else None


def _scaled(value: Fraction) -> int:
    return math.floor(value * _SCALE)


JACCARD = Similarity("jaccard", _jaccard_key, lambda o, r, s: o / (r + s - o), _scaled)
COSINE = Similarity(
    "cosine", _cosine_key, lambda o, r, s: o / math.sqrt(r * s), lambda it: _scaled(it * it)
)
DICE = Similarity("dice", _dice_key, lambda o, r, s: 2 * o / (r + s), _scaled)
OVERLAP = Similarity("overlap", _overlap_key, lambda o, _r, _s: o, math.ceil)
HAMMING = Similarity(
    "hamming",
    _hamming_key,
    lambda o, r, s: r + s - 2 * o,
    lambda it: 2 * SIZE_LIMIT - math.floor(it),
    is_distance=True,
)


def _all_similarities() -> dict[str, Similarity]:
    found = {it.name: it for it in (JACCARD, COSINE, DICE, OVERLAP, HAMMING)}
    for point in entry_points(group=ENTRY_POINTS):
        similarity = _load(point)
        if similarity.name in found:
            raise InvalidSimilarityError(
                point.value,
                f"similarity {similarity.name!r} is already registered; choose another name",
            )
        found[similarity.name] = similarity
    return found


def _load(point: EntryPoint) -> Similarity:
    """Return the similarity of an entry point, checked."""
    try:
        similarity = point.load()
        problem = find_problem(similarity)
    except Exception as error:
        # Functions of other packages may raise any error.
        problem = f"raised {type(error).__name__}: {error}"
        raise InvalidSimilarityError(point.value, f"{problem}; correct or remove it") from error
    if problem is not None:
        raise InvalidSimilarityError(point.value, f"{problem}; correct or remove it")
    checked: Similarity = similarity
    return checked


def find_problem(similarity: object) -> str | None:
    """Return why the join cannot use a similarity; None if it can, as far as checks find.

    Parameters
    ----------
    similarity : object
        What an entry point names.
    """
    if not isinstance(similarity, Similarity):
        return f"must be a Similarity; got {type(similarity).__name__}"
    try:
        check_name(similarity.name)
    except InvalidFieldError as error:
        return str(error)
    if not _is_compiled(similarity.key):
        return "key must be compiled with numba.njit(KEY_SIGNATURE)"
    return find_wrong_key(similarity.key, _SIZES) or find_wrong_minimum(
        similarity.key,
        similarity.value,
        similarity.minimum_key,
        _FEW_SIZES,
        Fraction(1, 10**MINIMUM_PLACES),
        is_distance=similarity.is_distance,
    )


def _is_compiled(key: Key) -> bool:
    # Without compilation (NUMBA_DISABLE_JIT=1) keys are plain functions, as those of this package.
    is_plain = callable(key) and not hasattr(_overlap_key, "nopython_signatures")
    return is_plain or KEY_SIGNATURE in getattr(key, "nopython_signatures", ())


SIMILARITIES: Mapping[str, Similarity] = MappingProxyType(_all_similarities())


@cache
def first_class_key(similarity: Similarity) -> Key:
    """Return the key of a similarity as a function that kernels take as an argument.

    The keys of all similarities have one type, so kernels are compiled once, and their compiled
    form is found in the cache by every process.

    Parameters
    ----------
    similarity : Similarity
        The similarity.
    """
    # Without compilation (NUMBA_DISABLE_JIT=1) the key is a plain function.
    plain = getattr(similarity.key, "py_func", None)
    return similarity.key if plain is None else cfunc(KEY_SIGNATURE)(plain)


@cache
def key_table(similarity: Similarity) -> NDArray[np.int64]:
    """Return the keys of all sets with less than TABLE_SIZES tokens.

    Parameters
    ----------
    similarity : Similarity
        The similarity.

    Returns
    -------
    int64[TABLE_SIZES**3]
        Element (r · TABLE_SIZES + s) · TABLE_SIZES + o is the key of sizes r, s and overlap o; -1
        if o is 0 or larger than r or s.
    """
    sizes = range(1, TABLE_SIZES)
    table = np.full((TABLE_SIZES,) * 3, -1, np.int64)
    for r in sizes:
        for s in sizes:
            for o in range(1, min(r, s) + 1):
                table[r, s, o] = similarity.key(o, r, s)
    table.flags.writeable = False
    return table.reshape(-1)
