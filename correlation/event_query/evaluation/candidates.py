"""Candidates: the events of a segment that match the attribute patterns of an alias.

An attribute is buffered as a column of its distinct values, in canonical JSON. A comparison is
decided once per distinct value: exactly, numbers as decimals; equal values are found by their
bytes. A missing attribute matches no pattern. If a variable names several attributes of an event,
their values must be equal.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from correlation.event_query.comparing import nearest_float, satisfies
from correlation.event_query.query import Comparison, Constant, EventPattern, Variable
from correlation.resources.attributes import encode_value

_INT64 = 2**63


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

    @property
    def is_equality(self) -> bool:
        """Whether the attribute is compared for equality."""
        return self.comparison.operator == "="


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


def decode_exactly(values: Sequence[bytes]) -> list[Constant]:
    """Return values in canonical JSON as Python values; fractions are exact decimals."""
    decoded: list[Constant] = json.loads(b"[%b]" % b",".join(values), parse_float=Decimal)
    return decoded


def compare_values(decoded: Sequence[Constant], comparison: Comparison) -> NDArray[np.bool_]:
    """Mark the values that satisfy a comparison.

    Parameters
    ----------
    decoded : sequence
        Output of `decode_exactly`.
    comparison : Comparison
        The comparison. Values of another type than its constant do not satisfy it.
    """
    return np.fromiter((satisfies(it, comparison) for it in decoded), np.bool_, len(decoded))


def equal_encodings(constant: Constant) -> list[bytes]:
    """Return the canonical JSON of all values that are equal to a constant.

    An integer and a number may have different digits: 10**22 is also 1e+22.
    """
    if isinstance(constant, bool | str):
        return [encode_value(constant)]
    number = Decimal(constant)
    found = []
    # Integers fit int64; the conversion of larger exponents would take long.
    if -_INT64 <= number < _INT64 and number == int(number):
        found.append(encode_value(int(number)))
    # The digits of a float determine it, so only the nearest float can be equal.
    nearest = nearest_float(number)
    if math.isfinite(nearest) and Decimal(repr(nearest)) == number:
        found.append(encode_value(nearest))
    return found
