"""Exact numbers of a record, including numbers that float64 cannot represent.

Problem. A fast JSON parser rounds numbers with a fraction or an exponent, and integers beyond 64
bits, to float64, and drops their digits. Find the decimal in the record's JSON.

Definitions. The *shortest decimal* of a float is the decimal that `repr` writes. A record is
*plain* if its runs of digits and dots have at most 17 characters, or 16 before an exponent, and its
exponents are not negative.

A number of a plain record has at most 16 significant digits, or 15 if it is below 1. The number is
the shortest decimal of its float if decimals of 16 digits are farther apart than all decimals that
round to that float (docs/proofs.md, P-SHORTEST-DECIMAL). Otherwise the record is parsed a second
time, by a parser that keeps decimals.

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

# Maps digits and dots to "0", the letter of an exponent to "e", "-" to itself, others to a space.
_KIND_OF = {**dict.fromkeys(".0123456789", "0"), **dict.fromkeys("eE", "e"), "-": "-"}
_KINDS = "".join(_KIND_OF.get(chr(code), " ") for code in range(256)).encode()
_NOT_PLAIN = (b"0" * 18, b"0" * 17 + b"e", b"0e-0")
# Distance between adjacent decimals of 16 digits, by exponent.
_EXPONENTS = range(20)
_SPACING: Mapping[int, float] = {it: float(f"1e{it - 15}") for it in _EXPONENTS}
# Powers of ten to whose float the next smaller decimal of 16 digits rounds as well; its distance is
# a tenth of `_SPACING`.
_CROWDED = frozenset(
    float(f"1e{it}")
    for it in _EXPONENTS
    if float(f"9999999999999999e{it - 16}") == float(f"1e{it}")
)
# Maximum depth of numbers in a histogram: a list of buckets, which are lists or objects.
_DEPTH = 2


class _UncertainError(Exception):
    """Several decimals that a plain record may contain round to the same float."""


def find_as_written(value: object, path: Path, text: bytes | None) -> object:
    """Return the field of a record with the exact numbers of its JSON.

    Parameters
    ----------
    value : object
        The parsed record.
    path : path
        Path of the field.
    text : bytes or None
        JSON of the record; None if the record is not JSON: its floats are returned unchanged.

    Returns
    -------
    object
        The field; floats, including those of a histogram, are replaced by Decimals.

    Raises
    ------
    RejectedEventError
        The field is missing.
    """
    found = find(value, path)
    kind = type(found)
    if text is None or kind is int or kind is str:
        return found
    if is_plain(text):
        try:
            return _with_decimals(found, _shortest_decimal, _DEPTH)
        except _UncertainError:
            pass
    return find(_parse_exactly(text), path)


def is_plain(text: bytes) -> bool:
    """Return whether a record is plain: the shortest decimals of its floats are its numbers."""
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
    """Return the decimal of a plain record that rounds to a float, if it is the only one."""
    shortest = Decimal(repr(number))
    size = abs(number)
    if size >= 1 and (math.ulp(size) >= _SPACING.get(shortest.adjusted(), 0) or size in _CROWDED):
        raise _UncertainError
    return shortest


def _parse_exactly(text: bytes) -> object:
    """Parse a record that a faster parser has read, with all numbers as Decimals."""
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
    except InvalidOperation:  # exponent out of the range of Decimal
        return Decimal("NaN")
