"""Oracle for decimal strings over the rationals: conversion to µs, rounded outwards."""

from __future__ import annotations

import math
from fractions import Fraction


def span_us(text: str, unit_us: Fraction) -> tuple[int, int]:
    """Return a decimal number of a unit in whole µs, rounded down and rounded up."""
    exact = Fraction(text) * unit_us
    return math.floor(exact), math.ceil(exact)
