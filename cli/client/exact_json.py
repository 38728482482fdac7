"""JSON writer that keeps every digit of a number."""

from __future__ import annotations

import json
from decimal import Decimal


def write_json(value: object) -> str:
    """Write a document as JSON, each Decimal as a number with all of its digits.

    Parameters
    ----------
    value
        Dictionaries with string keys, lists, JSON scalars and finite decimals.
    """
    if isinstance(value, dict):
        parts = (f"{json.dumps(name)}: {write_json(inner)}" for name, inner in value.items())
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(write_json, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value)
