"""Disjunctive normal form of temporal formulas.

Problem. A formula without `Not` becomes an equivalent disjunction of clauses. A clause is a
conjunction of atoms ``p - q <= c`` over points p, q with a constant c in µs.

- Times are whole µs, so ``p - q < c`` is ``p - q <= c - 1``. An equality is two atoms.
- min and max terms are resolved exactly, on both sides, nested and shifted, for any terms t::

      min(a, b) <= t  is  a <= t or b <= t        t <= min(a, b)  is  t <= a and t <= b
      max(a, b) <= t  is  a <= t and b <= t       t <= max(a, b)  is  t <= a or t <= b

- Of two atoms over the same p and q the smaller constant remains. A clause with an atom
  ``p - p <= c``, c < 0, or with ``p - q <= c`` and ``q - p <= d``, c + d < 0, is omitted.

Reference. Novoseltsev 2013 (TSA): temporal relation formulas, dnf. The number of clauses may be
exponential in the size of the formula, so it is limited.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from correlation.errors import InvalidFieldError
from correlation.event_query.query import (
    And,
    Extreme,
    Formula,
    Or,
    Point,
    Relation,
    Shifted,
    Term,
)

# Maximum number of clauses. The closure of a clause with 16 points takes about 1 ms.
CLAUSE_LIMIT = 256


class Latest(NamedTuple):
    """Last possible time of an event whose instant is uncertain; progress is measured by it."""

    alias: str


Node = Point | Latest


class Atom(NamedTuple):
    """``p - q <= bound_us``."""

    p: Node
    q: Node
    bound_us: int


Clause = frozenset[Atom]
TRUE_CLAUSE: Clause = frozenset()


def disjunctive_normal_form(formula: Formula, limit: int = CLAUSE_LIMIT) -> tuple[Clause, ...]:
    """Return the clauses of a formula without `Not`; without clauses it is false.

    Parameters
    ----------
    formula : Formula
        Result of `split.push_negations`.
    limit : int
        Maximum number of clauses, also of intermediate results.

    Raises
    ------
    InvalidFieldError
        There are more clauses than the limit.
    """
    match formula:
        case And(parts):
            return _conjunction((disjunctive_normal_form(part, limit) for part in parts), limit)
        case Or(parts):
            return _disjunction((disjunctive_normal_form(part, limit) for part in parts), limit)
        case Relation():
            return _resolve(formula, limit)
    raise TypeError(f"expected a formula without Not; got {formula!r}")


def _resolve(relation: Relation, limit: int) -> tuple[Clause, ...]:
    left, right = relation.left, relation.right
    match relation.operator:
        case "<=":
            return _at_most(left, right, 0, limit)
        case "<":
            return _at_most(left, right, -1, limit)
        case ">=":
            return _at_most(right, left, 0, limit)
        case ">":
            return _at_most(right, left, -1, limit)
        case "=":
            both = (_at_most(left, right, 0, limit), _at_most(right, left, 0, limit))
            return _conjunction(both, limit)


def _at_most(left: Term, right: Term, bound_us: int, limit: int) -> tuple[Clause, ...]:
    """Return the clauses of ``left - right <= bound_us``."""
    while isinstance(left, Shifted):
        bound_us -= left.offset_us
        left = left.term
    while isinstance(right, Shifted):
        bound_us += right.offset_us
        right = right.term
    if isinstance(left, Extreme):
        parts = (_at_most(term, right, bound_us, limit) for term in left.terms)
        return (_conjunction if left.kind == "max" else _disjunction)(parts, limit)
    if isinstance(right, Extreme):
        parts = (_at_most(left, term, bound_us, limit) for term in right.terms)
        return (_conjunction if right.kind == "min" else _disjunction)(parts, limit)
    if left == right:
        return (TRUE_CLAUSE,) if bound_us >= 0 else ()
    return (frozenset({Atom(left, right, bound_us)}),)


def _disjunction(parts: Iterable[tuple[Clause, ...]], limit: int) -> tuple[Clause, ...]:
    # A dict used as an ordered set.
    clauses: dict[Clause, None] = {}
    for part in parts:
        clauses |= dict.fromkeys(part)
        _check_limit(len(clauses), limit)
    return tuple(clauses)


def _conjunction(parts: Iterable[tuple[Clause, ...]], limit: int) -> tuple[Clause, ...]:
    clauses: dict[Clause, None] = {TRUE_CLAUSE: None}
    for part in parts:
        product: dict[Clause, None] = {}
        for first in clauses:
            for second in part:
                joined = _join(first, second)
                if joined is not None:
                    product[joined] = None
                    _check_limit(len(product), limit)
        clauses = product
    return tuple(clauses)


def _join(first: Clause, second: Clause) -> Clause | None:
    """Return the conjunction of two clauses, or None if two of its atoms contradict."""
    bounds: dict[tuple[Node, Node], int] = {}
    for p, q, bound_us in [*first, *second]:
        bounds[p, q] = min(bound_us, bounds.get((p, q), bound_us))
    if any(bound_us + bounds.get((q, p), -bound_us) < 0 for (p, q), bound_us in bounds.items()):
        return None
    return frozenset(Atom(p, q, bound_us) for (p, q), bound_us in bounds.items())


def _check_limit(found: int, limit: int) -> None:
    if found > limit:
        raise InvalidFieldError(
            "where",
            f"has more than {limit} alternatives in disjunctive normal form",
            "use fewer disjunctions, negated equalities and min or max terms",
        )
