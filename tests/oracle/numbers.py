"""Judge of numbers in texts, over the rationals: what a decimal is in µs, rounded outwards."""

from __future__ import annotations

import math
from fractions import Fraction


def span_us(text: str, unit_us: Fraction) -> tuple[int, int]:
    """Return the whole µs at or before a decimal number of a unit, and those at or after it."""
    exact = Fraction(text) * unit_us
    return math.floor(exact), math.ceil(exact)
