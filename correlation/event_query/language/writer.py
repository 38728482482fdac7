"""Write a query as canonical text: the layout of the source, keywords in capitals as there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal

from correlation.errors import InvalidFieldError
from correlation.event_query.language.normal import normal_query
from correlation.event_query.language.result_times import formula_with_times
from correlation.event_query.query import (
    FALSE,
    TRUE,
    And,
    AttributePattern,
    Comparison,
    Constant,
    EventPattern,
    Extreme,
    Formula,
    Not,
    Or,
    Point,
    Query,
    Relation,
    Term,
    Variable,
)
from correlation.resources.durations import UNITS_US

_INDENT = " " * 6


def write_query(query: Query) -> str:
    """Return the canonical text of a query, without a line end.

    Parameters
    ----------
    query : Query
        A query whose names are valid.

    Raises
    ------
    InvalidFieldError
        The formula is the constant false, which has no text.
    """
    query = normal_query(query)
    output = [f"{it.name} {{{_write_value(it.value)}}}" for it in query.attributes]
    events = "\n   ".join(map(_write_event, query.events))
    lines = [f"DETECT {query.type}{_in_braces(output)}", f"ON {events}"]
    where = formula_with_times(query)
    if where == FALSE:
        raise InvalidFieldError("where", "is always false", "remove the query")
    if where != TRUE:
        parts = where.parts if isinstance(where, And) else (where,)
        shown = map(_write_part if len(parts) > 1 else write_formula, parts)
        lines.append("WHERE " + f",\n{_INDENT}".join(shown))
    return "\n".join([*lines, "END"])


def _write_event(event: EventPattern) -> str:
    head = "not event" if event.negated else "event"
    return f"{head} {event.alias}: {event.type} {write_attributes(event)}".rstrip()


def write_attributes(event: EventPattern) -> str:
    """Return the attribute patterns of an event in braces; empty without patterns."""
    return _in_braces([write_attribute(it) for it in event.attributes]).strip()


def write_attribute(attribute: AttributePattern) -> str:
    """Return the text of an attribute pattern, such as ``area {var X}``."""
    return f"{attribute.name} {{{_write_value(attribute.pattern)}}}"


def _in_braces(attributes: list[str]) -> str:
    return f" {{{', '.join(attributes)}}}" if attributes else ""


def _write_value(value: Variable | Comparison | Constant) -> str:
    if isinstance(value, Variable):
        return f"var {value.name}"
    if isinstance(value, Comparison):
        constant = _write_value(value.constant)
        return constant if value.operator == "=" else f"{value.operator} {constant}"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return json.dumps(value, ensure_ascii=False)


def write_formula(formula: Formula) -> str:
    """Return the text of a formula that is not a constant."""
    if isinstance(formula, Relation):
        return f"{write_term(formula.left)} {formula.operator} {write_term(formula.right)}"
    if isinstance(formula, Not):
        return f"not ({write_formula(formula.part)})"
    return (" and " if isinstance(formula, And) else " or ").join(map(_write_part, formula.parts))


def describe_time(query: Query) -> Iterator[str]:
    """Yield a sentence on the time of the result, if the query states it."""
    if query.result_begin is not None or query.result_end is not None:
        begin, end = write_term(query.begin), write_term(query.end)
        both = (
            f"begins and ends at {end}" if begin == end else f"begins at {begin} and ends at {end}"
        )
        yield f"A result {query.type} {both}."


def _write_part(formula: Formula) -> str:
    shown = write_formula(formula)
    return f"({shown})" if isinstance(formula, And | Or) else shown


def write_term(term: Term) -> str:
    """Return the text of a temporal term."""
    if isinstance(term, Point):
        return f"{term.alias}.rt.{term.side}"
    if isinstance(term, Extreme):
        return f"{term.kind}({', '.join(map(write_term, term.terms))})"
    sign = "-" if term.offset_us < 0 else "+"
    return f"{write_term(term.term)} {sign} {write_duration(abs(term.offset_us))}"


def write_duration(duration_us: int) -> str:
    """Write a duration of at least 0 in the largest unit of the language that keeps it whole.

    >>> write_duration(300_000_000), write_duration(1)
    ('5 min', '0.001 ms')
    """
    for unit in ("d", "h", "min", "s"):
        if duration_us % UNITS_US[unit] == 0:
            return f"{duration_us // UNITS_US[unit]} {unit}"
    number = Decimal(duration_us) / UNITS_US["ms"]
    return f"{number.normalize():f} ms"
