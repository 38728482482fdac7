"""Exact decimals, with all digits that a user wrote."""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation

# Computes products and shifts without rounding, for any number of digits and any exponent.
EXACTLY = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def read_decimal(value: object) -> Decimal | None:
    """Read a decimal exactly; a float counts as the shortest decimal that rounds to it.

    Returns
    -------
    Decimal or None
        None if the value is not a decimal. `Decimal` alone would also read "0_7" as 7.
    """
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    text = str(value).strip()
    try:
        return Decimal(text) if _DECIMAL.fullmatch(text) else None
    except InvalidOperation:  # exponent out of the range of Decimal
        return None


def without_zeros(value: Decimal) -> Decimal:
    """Return the same number without trailing zeros.

    `Decimal.normalize` alone rounds to 28 digits: a number slightly above 0.7 would become 0.7.
    """
    return EXACTLY.normalize(value)
