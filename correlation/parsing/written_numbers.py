"""Numbers of a record as its JSON has them, also those that float64 does not hold.

Problem. A fast parser of JSON rounds a number with a fraction or an exponent, and an integer beyond
64 bits, to float64, and drops its text. Find the decimal that was written.

Definitions. The *shortest decimal* of a float is the one that `repr` writes. A record is *plain* if
digits and dots in a row are at most 17 in it, before an exponent 16, and no exponent is negative.

In a plain record a number has at most 16 significant digits, below 1 at most 15. It is the shortest
decimal of its float wherever such decimals are wider apart than those that round to one float
(docs/proofs.md, P-SHORTEST-DECIMAL). Otherwise the record is parsed a second time, by a parser that
keeps decimals.

Cost. Integers and strings: a comparison of types. Floats: one pass over the record's bytes, in C.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation

from correlation.errors import RejectedEventError
from correlation.reasons import Reason
from correlation.resources.paths import Path, find

# Digits and dots become "0", an exponent's letter "e", a minus stays, all else becomes a space.
_KIND_OF = {**dict.fromkeys(".0123456789", "0"), **dict.fromkeys("eE", "e"), "-": "-"}
_KINDS = "".join(_KIND_OF.get(chr(code), " ") for code in range(256)).encode()
_NOT_PLAIN = (b"0" * 18, b"0" * 17 + b"e", b"0e-0")
# Distance of decimals of 16 digits by the exponent of the first one.
_EXPONENTS = range(20)
_SPACING: Mapping[int, float] = {it: float(f"1e{it - 15}") for it in _EXPONENTS}
# Powers of ten that the next smaller decimal of 16 digits, ten times as near, rounds to as well.
_CROWDED = frozenset(
    float(f"1e{it}")
    for it in _EXPONENTS
    if float(f"9999999999999999e{it - 16}") == float(f"1e{it}")
)
# Numbers lie no deeper in a histogram: a list of buckets, which are lists or objects.
_DEPTH = 2


class _UncertainError(Exception):
    """Several decimals that a plain record may have round to the same float."""


def find_as_written(value: object, path: Path, text: bytes | None) -> object:
    """Return the field of a record with the numbers that its JSON has.

    Parameters
    ----------
    value : object
        The parsed record.
    path : path
        Where the field is.
    text : bytes or None
        The record's JSON; None where a record has none, whose floats are left as they are.

    Returns
    -------
    object
        The field, a Decimal for each float: the field itself, or a number of its histogram.

    Raises
    ------
    RejectedEventError
        When the field is missing.
    """
    found = find(value, path)
    kind = type(found)
    if text is None or kind is int or kind is str:
        return found
    if _is_plain(text):
        try:
            return _with_decimals(found, _shortest_decimal, _DEPTH)
        except _UncertainError:
            pass
    return find(_parse_exactly(text), path)


def _is_plain(text: bytes) -> bool:
    kinds = text.translate(_KINDS)
    long, long_before_exponent, negative_exponent = _NOT_PLAIN
    return (
        long not in kinds and long_before_exponent not in kinds and negative_exponent not in kinds
    )


def _with_decimals(found: object, decimal: Callable[[float], Decimal], depth: int) -> object:
    if type(found) is float:
        return decimal(found)
    if depth and isinstance(found, list):
        return [_with_decimals(part, decimal, depth - 1) for part in found]
    if depth and isinstance(found, dict):
        return {name: _with_decimals(part, decimal, depth - 1) for name, part in found.items()}
    return found


def _shortest_decimal(number: float) -> Decimal:
    """Return the only decimal of a plain record that rounds to a float, if there is only one."""
    shortest = Decimal(repr(number))
    size = abs(number)
    if size >= 1 and (math.ulp(size) >= _SPACING.get(shortest.adjusted(), 0) or size in _CROWDED):
        raise _UncertainError
    return shortest


def _parse_exactly(text: bytes) -> object:
    """Parse a record that a faster parser has read, every number a Decimal."""
    try:
        return json.loads(text.decode(), parse_float=_decimal, parse_int=_decimal)
    except RecursionError:
        raise RejectedEventError(
            Reason.NOT_A_TIME,
            "the record is nested too deeply to read a number with this many digits; write it as a "
            "string, or as an integer in microseconds",
        ) from None


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond all that Decimal can hold
        return Decimal("NaN")
