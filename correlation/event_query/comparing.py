"""Comparisons of attributes with constants: one definition for the operator and for explanations.

Definitions. Strings are ordered by code point. Numbers are compared exactly; a float has the value
of its shortest digits, as in the JSON in which it is buffered. Values of another type than the
constant satisfy no comparison; in Python ``True == 1``, but they have different types here.

An attribute of type number is a float64, so a constant that it is compared with is rounded to
float64 first, as in filters (`correlation.resources.filters`). Integers are not rounded.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from correlation.event_query.query import (
    AttributePattern,
    Comparison,
    Constant,
    EventPattern,
    Operator,
    Query,
)
from correlation.resources.attributes import AttributeValue
from correlation.resources.streams import Stream

COMPARE: Mapping[Operator, Callable[[Any, Any], bool]] = MappingProxyType(
    {
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "=": operator.eq,
    }
)
# Decimal's minus would round it to fewer digits.
_MIN_FLOAT, _MAX_FLOAT = Decimal(-sys.float_info.max), Decimal(sys.float_info.max)


def satisfies(value: AttributeValue | Decimal | None, comparison: Comparison) -> bool:
    """Return whether a value satisfies a comparison; a missing value satisfies none.

    Parameters
    ----------
    value : str, int, float, bool, Decimal or None
        Value of an attribute.
    comparison : Comparison
        The comparison, rounded by `round_constants`.
    """
    constant = comparison.constant
    if value is None or _kind(value) is not _kind(constant):
        return False
    exact = Decimal(repr(value)) if isinstance(value, float) else value
    return COMPARE[comparison.operator](exact, constant)


def round_constants(query: Query, streams: Mapping[str, Stream]) -> Query:
    """Round the constants that attributes of type number are compared with to float64.

    Parameters
    ----------
    query : Query
        The query as written.
    streams : mapping of alias to Stream
        The stream of each event, which declares the types of its attributes.

    Returns
    -------
    Query
        The query with rounded constants. Constants of its result are not rounded.
    """
    events = tuple(_round_event(event, streams[event.alias]) for event in query.events)
    return replace(query, events=events)


def nearest_float(number: int | Decimal) -> float:
    """Return the nearest float64, or infinity if the number exceeds all of them."""
    exact = Decimal(number)
    if _MIN_FLOAT <= exact <= _MAX_FLOAT:
        return float(exact)
    return math.copysign(math.inf, exact)


def _round_event(event: EventPattern, stream: Stream) -> EventPattern:
    numbers = {it.name for it in stream.attributes if it.type == "number"}
    patterns = tuple(_round_pattern(it) if it.name in numbers else it for it in event.attributes)
    return replace(event, attributes=patterns)


def _round_pattern(pattern: AttributePattern) -> AttributePattern:
    comparison = pattern.pattern
    if not isinstance(comparison, Comparison) or isinstance(comparison.constant, bool | str):
        return pattern
    nearest = nearest_float(comparison.constant)
    if math.isinf(nearest):
        # All values are on one side of the constant, which stays as it is.
        return pattern
    return replace(pattern, pattern=replace(comparison, constant=Decimal(repr(nearest))))


def _kind(value: Constant | float) -> type:
    """Return str, bool, or int for all numbers."""
    if isinstance(value, bool | str):
        return type(value)
    return int
