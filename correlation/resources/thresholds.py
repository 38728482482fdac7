"""Confidence thresholds of conditions."""

from __future__ import annotations

from decimal import Decimal

from correlation.errors import InvalidFieldError
from correlation.limits import THRESHOLD_PLACES
from correlation.resources.decimals import read_decimal, without_zeros


def read_threshold(value: object) -> Decimal:
    """Read a confidence threshold exactly: 0 < ct <= 1, at most 10 decimals."""
    remedy = f"use a decimal over 0, at most 1, with at most {THRESHOLD_PLACES} places, such as 0.7"
    threshold = read_decimal(value)
    if threshold is None:
        raise InvalidFieldError("threshold", "must be a decimal", remedy)
    if not 0 < threshold <= 1:
        raise InvalidFieldError("threshold", f"is {str(value)[:40]}", remedy)
    threshold = without_zeros(threshold)
    if -int(threshold.as_tuple().exponent) > THRESHOLD_PLACES:
        raise InvalidFieldError(
            "threshold", f"{str(value)[:40]} has too many decimal places", remedy
        )
    return threshold
