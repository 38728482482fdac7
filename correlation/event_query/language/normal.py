"""Normal form of a query, which text and JSON preserve.

- Conjunctions and disjunctions have at least two parts, none of their own kind; the constants
  `TRUE` and `FALSE` are not parts.
- A shifted term is not shifted again, and not shifted by 0.
- A time of the result that is the default is not stated.
- Whole numbers are `int`; a `Decimal` has no trailing zeros.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from correlation.event_query.query import (
    FALSE,
    TRUE,
    And,
    Comparison,
    Constant,
    Extreme,
    Formula,
    Not,
    Or,
    Point,
    Query,
    Relation,
    Shifted,
    Side,
    Term,
    Variable,
    points_of,
)
from correlation.resources.decimals import without_zeros


def conjunction(parts: Iterable[Formula]) -> Formula:
    """Return the conjunction of formulas in normal form."""
    flat: list[Formula] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, And) else [part])
    if FALSE in flat:
        return FALSE
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def disjunction(parts: Iterable[Formula]) -> Formula:
    """Return the disjunction of formulas in normal form."""
    flat: list[Formula] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Or) else [part])
    if TRUE in flat:
        return TRUE
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def negation(part: Formula) -> Formula:
    """Return the negation of a formula in normal form."""
    if part == TRUE:
        return FALSE
    return TRUE if part == FALSE else Not(part)


def shifted(term: Term, offset_us: int) -> Term:
    """Return a term in normal form plus a constant."""
    if isinstance(term, Shifted):
        offset_us += term.offset_us
        term = term.term
    return Shifted(term, offset_us) if offset_us else term


def normal_constant(value: Constant) -> Constant:
    """Return a constant in normal form."""
    if not isinstance(value, Decimal):
        return value
    short = without_zeros(value)
    return int(short) if short == short.to_integral_value() else short


def digits_of(value: Decimal) -> int:
    """Return the number of digits of a finite number that is written without an exponent."""
    short = without_zeros(value)
    return max(short.adjusted() + 1, 1) + max(-int(short.as_tuple().exponent), 0)


def normal_query(query: Query) -> Query:
    """Return the query with the same meaning in normal form."""
    return replace(
        query,
        attributes=tuple(
            it if isinstance(it.value, Variable) else replace(it, value=normal_constant(it.value))
            for it in query.attributes
        ),
        events=tuple(
            replace(
                event,
                attributes=tuple(
                    replace(it, pattern=_normal_pattern(it.pattern)) for it in event.attributes
                ),
            )
            for event in query.events
        ),
        where=_normal_formula(query.where),
        result_begin=_normal_time(query, "begin", query.result_begin),
        result_end=_normal_time(query, "end", query.result_end),
    )


def is_default_time(query: Query, side: Side, term: Term) -> bool:
    """Return whether a term is the time that a result has if it is not stated."""
    kind = "max" if side == "end" else "min"
    terms = term.terms if isinstance(term, Extreme) and term.kind == kind else (term,)
    return all(isinstance(it, Point) for it in terms) and set(terms) == set(
        points_of(query.default_time(side))
    )


def _normal_time(query: Query, side: Side, term: Term | None) -> Term | None:
    if term is None or is_default_time(query, side, term):
        return None
    return _normal_term(term)


def _normal_pattern(pattern: Variable | Comparison) -> Variable | Comparison:
    if isinstance(pattern, Variable):
        return pattern
    return replace(pattern, constant=normal_constant(pattern.constant))


def _normal_formula(formula: Formula) -> Formula:
    if isinstance(formula, And):
        return conjunction(map(_normal_formula, formula.parts))
    if isinstance(formula, Or):
        return disjunction(map(_normal_formula, formula.parts))
    if isinstance(formula, Not):
        return negation(_normal_formula(formula.part))
    return Relation(_normal_term(formula.left), formula.operator, _normal_term(formula.right))


def _normal_term(term: Term) -> Term:
    if isinstance(term, Point):
        return term
    if isinstance(term, Extreme):
        return Extreme(term.kind, tuple(map(_normal_term, term.terms)))
    return shifted(_normal_term(term.term), term.offset_us)
