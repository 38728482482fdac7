"""Candidates: the events of a segment that match the attribute patterns of an alias.

An attribute is buffered as a column of its distinct values, in canonical JSON. A comparison is
decided once per distinct value: exactly, numbers as decimals. A missing attribute matches no
pattern. If a variable names several attributes of an event, their values must be equal.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from correlation.event_query.query import Comparison, Constant, EventPattern, Operator, Variable

_COMPARE: dict[Operator, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}


@dataclass(frozen=True, slots=True)
class Required:
    """A comparison that an attribute must satisfy.

    Parameters
    ----------
    attribute : str
        Name of the attribute.
    comparison : Comparison
        The comparison.
    type : str
        Type of the constant; in Python ``True == 1``, but they are different constants.
    """

    attribute: str
    comparison: Comparison
    type: str


@dataclass(frozen=True, slots=True)
class Candidates:
    """Conditions on the attributes of an event that takes an alias.

    Parameters
    ----------
    required : tuple of Required
        Comparisons, all of which must hold.
    equal : tuple of tuples of str
        For each variable the attributes that must be present and equal.
    """

    required: tuple[Required, ...] = ()
    equal: tuple[tuple[str, ...], ...] = ()


def read_candidates(event: EventPattern) -> tuple[Candidates, dict[str, str]]:
    """Return the conditions of an event pattern, and an attribute of each of its variables."""
    required = []
    named: dict[str, dict[str, None]] = {}
    for it in event.attributes:
        if isinstance(it.pattern, Variable):
            named.setdefault(it.pattern.name, {})[it.name] = None
        else:
            kind = type(it.pattern.constant).__name__
            required.append(Required(it.name, it.pattern, kind))
    equal = tuple(tuple(names) for names in named.values())
    variables = {name: attributes[0] for name, attributes in zip(named, equal, strict=True)}
    return Candidates(tuple(required), equal), variables


def compare_values(values: Sequence[bytes], comparison: Comparison) -> NDArray[np.bool_]:
    """Mark the values that satisfy a comparison.

    Parameters
    ----------
    values : sequence of bytes
        Values in canonical JSON.
    comparison : Comparison
        The comparison. Values of another type than its constant do not satisfy it.
    """
    compare, constant = _COMPARE[comparison.operator], comparison.constant
    decoded = json.loads(b"[%b]" % b",".join(values), parse_float=Decimal)
    kind = _kind(constant)
    found = (_kind(value) is kind and compare(value, constant) for value in decoded)
    return np.fromiter(found, np.bool_, len(values))


def _kind(value: Constant) -> type:
    """Return str, bool, or int for all numbers."""
    if isinstance(value, bool | str):
        return type(value)
    return int
