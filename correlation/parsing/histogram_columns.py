"""Reader of the histograms of many records; see `event_shapes` for single records.

A histogram is *regular* if its buckets are lists of two integers and a mass, if it has at least two
of them, and none of mass zero at either end; and if its record is plain (`written_numbers`), so
that the digits of its numbers need not be read again. Masses are converted once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from operator import lt
from typing import Any

from correlation.errors import InvalidFieldError
from correlation.limits import BUCKET_LIMIT, LENGTH_LIMIT_US, MASS_PLACES, TIME_LIMIT_US
from correlation.parsing.written_numbers import is_plain
from correlation.resources.histogram import WHOLE_MASS, Bucket, read_mass

# Earliest and latest time in µs, and the shape; None if the histogram is not regular.
RegularHistogram = tuple[int, int, bytes] | None
_PARTS = len(Bucket._fields)
_BOUND_TYPES = frozenset({int})
_MASS_TYPES = frozenset({float, int, str})
# Longest mass in a string, "0." and its places; longer ones are not kept in the cache.
_MASS_LENGTH = MASS_PLACES + 2
_CACHED_MASSES = 16_384


def regular_histogram_reader(multiplier: int) -> Callable[[Any, bytes | None], RegularHistogram]:
    """Return the reader of a list of buckets whose bounds are in units of `multiplier` µs.

    Parameters
    ----------
    multiplier : int
        Unit of the bounds.

    Returns
    -------
    callable
        `(found, text) -> (earliest, latest, shape)` as `histogram_reader` returns them, or None.
    """

    def read(found: Any, text: bytes | None) -> RegularHistogram:  # noqa: ANN401 - any JSON value
        if type(found) is not list or not 1 < len(found) <= BUCKET_LIMIT:
            return None
        if {*map(type, found)} != {list} or {*map(len, found)} != {_PARTS}:
            return None
        parts = list(chain.from_iterable(found))
        lows, highs = parts[::_PARTS], parts[1::_PARTS]
        masses = _read_masses(parts[2::_PARTS])
        if masses is None or {*map(type, lows), *map(type, highs)} != _BOUND_TYPES:
            return None
        if lows[1:] != highs[:-1] or not (text is None or is_plain(text)):
            return None
        edges = [lows[0] * multiplier, *(high * multiplier for high in highs)]
        return _with_shape(edges, masses)

    return read


def _with_shape(edges: Sequence[int], masses: Sequence[int]) -> RegularHistogram:
    """Return interval and shape of a valid histogram; see `Histogram.shape_bytes`."""
    earliest, latest = edges[0], edges[-1]
    if not all(map(lt, edges, edges[1:])) or latest - earliest > LENGTH_LIMIT_US:
        return None
    if earliest < -TIME_LIMIT_US or latest > TIME_LIMIT_US:
        return None
    if not (masses[0] and masses[-1]) or sum(masses) != WHOLE_MASS:
        return None
    shape = [*(edge - latest for edge in edges), *masses]
    return earliest, latest, struct.pack(f"<{len(shape)}q", *shape)


def _read_masses(found: Sequence[Any]) -> list[int] | None:
    kinds = {*map(type, found)}
    if not kinds <= _MASS_TYPES:
        return None
    if str in kinds and any(type(it) is str and len(it) > _MASS_LENGTH for it in found):
        return None
    try:
        return [*map(_read_mass, found)]
    except InvalidFieldError:
        return None


@lru_cache(_CACHED_MASSES)
def _read_mass(value: float | str) -> int:
    """Return a mass; an integer and a float that are equal have the same mass."""
    return read_mass(value, "p")
