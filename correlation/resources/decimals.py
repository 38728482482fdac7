"""Decimals as a user wrote them, none of their digits lost."""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation

# Never rounds a product or a shift, whatever the digits and the exponent.
EXACTLY = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def read_decimal(value: object) -> Decimal | None:
    """Read a decimal exactly; a float counts as the shortest decimal that rounds to it.

    Returns
    -------
    Decimal or None
        None where the value is not a decimal. `Decimal` by itself would also read "0_7" as 7.
    """
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    text = str(value).strip()
    try:
        return Decimal(text) if _DECIMAL.fullmatch(text) else None
    except InvalidOperation:  # an exponent beyond all that Decimal can hold
        return None


def without_zeros(value: Decimal) -> Decimal:
    """Return the same number without trailing zeros, however many digits it has.

    `Decimal.normalize` alone rounds to 28 digits: 0.7 and a hair more would become 0.7.
    """
    return EXACTLY.normalize(value)
