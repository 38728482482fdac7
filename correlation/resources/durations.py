"""Conversion of durations between strings such as "2s" or "250ms" and whole microseconds."""

from __future__ import annotations

import re
from decimal import Decimal

from correlation.errors import InvalidFieldError
from correlation.resources.decimals import EXACTLY

UNITS_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_DURATION = re.compile(r"\s*([+-]?\d{1,18}(?:\.\d{1,12})?)\s*(us|µs|ms|s|min|h|d)\s*", re.ASCII)
_YEAR_DAYS = 365.25
_REMEDY = 'write a number and a unit (us, ms, s, min, h, d), for example "250ms" or "2s"'


def parse_duration_us(text: str, field: str = "duration") -> int:
    """Read a duration exactly.

    Parameters
    ----------
    text : str
        A decimal number and a unit: us, ms, s, min, h or d.
    field : str
        Name of the field for the error.

    Returns
    -------
    int
        Microseconds.

    Raises
    ------
    InvalidFieldError
        The string is not a duration, or not a whole number of microseconds.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise InvalidFieldError(field, f"{text[:60]!r} is not a valid duration", _REMEDY)
    unit = match[2].replace("µs", "us")
    return whole_us(EXACTLY.multiply(Decimal(match[1]), UNITS_US[unit]), field)


def whole_us(value: Decimal, field: str) -> int:
    """Return a number of microseconds as an integer; raise InvalidFieldError if not whole."""
    if value != value.to_integral_value():
        raise InvalidFieldError(
            field, "must be a whole number of microseconds", "round it to 1 us or coarser"
        )
    return int(value)


def format_duration(duration_us: int) -> str:
    """Write microseconds in the largest unit that leaves a whole number.

    >>> format_duration(2_000_000)
    '2s'
    """
    if duration_us == 0:
        return "0s"
    for unit in ("d", "h", "min", "s", "ms"):
        if duration_us % UNITS_US[unit] == 0:
            return f"{duration_us // UNITS_US[unit]}{unit}"
    return f"{duration_us}us"


def describe_limit(limit_us: int) -> str:
    """Write a limit in readable form; long limits are rounded down to years or days.

    >>> describe_limit(2**50)
    '35 years'
    """
    days = limit_us // UNITS_US["d"]
    if days >= 2 * _YEAR_DAYS:
        return f"{int(days / _YEAR_DAYS)} years"
    return f"{days} days" if days > 1 else format_duration(limit_us)


def describe_duration(duration_us: int) -> str:
    """Write microseconds in readable form, exactly, in the largest unit that keeps it short.

    >>> describe_duration(1_750_000)
    '1.75s'
    """
    for unit in ("d", "h", "min"):
        if abs(duration_us) >= UNITS_US[unit] and duration_us * 10 % UNITS_US[unit] == 0:
            break
    else:
        size = abs(duration_us)
        unit = (
            "s" if size >= UNITS_US["s"] or not size else "ms" if size >= UNITS_US["ms"] else "us"
        )
    number = (Decimal(duration_us) / UNITS_US[unit]).normalize()
    return f"{number:f}{unit}"
