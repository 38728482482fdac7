"""Decimals as a user wrote them, none of their digits lost."""

from __future__ import annotations

from decimal import Context, Decimal


def without_zeros(value: Decimal) -> Decimal:
    """Return the same number without trailing zeros, however many digits it has.

    `Decimal.normalize` alone rounds to 28 digits: 0.7 and a hair more would become 0.7.
    """
    return value.normalize(Context(prec=max(len(value.as_tuple().digits), 1)))
