"""Filters over attributes, value by value: the meaning, in exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any


def matches(document: dict[str, Any], attributes: dict[str, Any], types: dict[str, str]) -> bool:
    """Return whether an event with these attributes matches a filter."""
    return all(
        attributes.get(name) is not None and _fulfils(attributes[name], wanted, types[name])
        for name, wanted in document.items()
    )


def _fulfils(value: Any, wanted: Any, kind: str) -> bool:  # noqa: ANN401 - any JSON value
    if not isinstance(wanted, dict):
        return any(_same(value, it, kind) for it in _listed(wanted))
    if any(_same(value, it, kind) for it in _listed(wanted.get("not", []))):
        return False
    low, high = wanted.get("min"), wanted.get("max")
    return (low is None or _ordered(low, value, kind)) and (
        high is None or _ordered(value, high, kind)
    )


def _listed(wanted: Any) -> list[Any]:  # noqa: ANN401 - any JSON value
    return wanted if isinstance(wanted, list) else [wanted]


def _exact(value: Any, kind: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value that Python orders and compares as the type does."""
    if kind == "string":
        return [ord(letter) for letter in value]
    return Fraction(float(value)) if kind == "number" else Fraction(value)


def _same(one: Any, other: Any, kind: str) -> bool:  # noqa: ANN401 - any JSON value
    return bool(_exact(one, kind) == _exact(other, kind))


def _ordered(low: Any, high: Any, kind: str) -> bool:  # noqa: ANN401 - any JSON value
    return bool(_exact(low, kind) <= _exact(high, kind))
