"""Negations pushed inwards, and the relations of each negated event.

Problem. A combination of positive events qualifies if it satisfies the relations among positive
events and if, for each negated alias r, no event satisfies all relations that mention r. These
relations are the parts of the top-level conjunction of the temporal formula:

- G+: the parts that mention positive aliases only;
- G_r: the parts that mention the negated alias r. A part that mentions two is refused.

The parts are taken after negations are pushed inwards, so ``not (x or y)`` has the parts ``not x``
and ``not y``, and before min and max terms are resolved, so ``max(r.rt.end, s.rt.end) <= t`` is one
part and mentions r.

Reference. Novoseltsev 2013 (TSA), definition of temporal relation formulas. Cost: O(size).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from correlation.errors import InvalidFieldError
from correlation.event_query.query import (
    And,
    Extreme,
    Formula,
    Not,
    Operator,
    Or,
    Point,
    Query,
    Relation,
    Shifted,
    Term,
)

_OPPOSITE: dict[Operator, Operator] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class SplitFormula:
    """The temporal formula by the negated aliases that its parts mention.

    Parameters
    ----------
    positive : And
        G+: the parts without negated aliases.
    negated : dict of alias to And
        G_r of each negated alias r; without parts it is true.
    """

    positive: And
    negated: dict[str, And]


def split_formula(query: Query) -> SplitFormula:
    """Return the relations among positive events and those of each negated alias.

    Parameters
    ----------
    query : Query
        The parsed query.

    Raises
    ------
    InvalidFieldError
        A relation or disjunction mentions two negated aliases.
    """
    names = [event.alias for event in query.negated]
    positive: list[Formula] = []
    negated: dict[str, list[Formula]] = {name: [] for name in names}
    for part in _conjuncts(push_negations(query.where)):
        mentioned = aliases_of(part)
        stopped = [name for name in names if name in mentioned]
        if len(stopped) > 1:
            raise InvalidFieldError(
                "where",
                f"a relation mentions the negated events {stopped[0]} and {stopped[1]}",
                "relate each negated event to positive events only",
            )
        (negated[stopped[0]] if stopped else positive).append(part)
    return SplitFormula(
        And(tuple(positive)), {name: And(tuple(parts)) for name, parts in negated.items()}
    )


def push_negations(formula: Formula, *, negate: bool = False) -> Formula:
    """Return an equivalent formula without `Not`, by the laws of De Morgan.

    Parameters
    ----------
    formula : Formula
        The formula.
    negate : bool
        Whether to return its negation.
    """
    match formula:
        case Not(part):
            return push_negations(part, negate=not negate)
        case And(parts):
            pushed = tuple(push_negations(part, negate=negate) for part in parts)
            return Or(pushed) if negate else And(pushed)
        case Or(parts):
            pushed = tuple(push_negations(part, negate=negate) for part in parts)
            return And(pushed) if negate else Or(pushed)
        case Relation(left, operator, right) if negate:
            if operator == "=":
                return Or((Relation(left, "<", right), Relation(left, ">", right)))
            return Relation(left, _OPPOSITE[operator], right)
    return formula


def aliases_of(item: Formula | Term) -> set[str]:
    """Return the aliases that a formula or a term mentions."""
    match item:
        case Point(alias, _):
            return {alias}
        case Shifted(inner, _) | Not(inner):
            return aliases_of(inner)
        case Extreme(_, parts) | And(parts) | Or(parts):
            return set().union(*map(aliases_of, parts))
        case Relation(left, _, right):
            return aliases_of(left) | aliases_of(right)


def _conjuncts(formula: Formula) -> Iterator[Formula]:
    if isinstance(formula, And):
        for part in formula.parts:
            yield from _conjuncts(part)
    else:
        yield formula
