"""Disjunctive normal form of temporal formulas.

Problem. A formula without `Not` becomes an equivalent disjunction of clauses. A clause is a
conjunction of atoms ``p - q <= c`` over points p, q with a constant c in µs.

- Exact times are whole µs, so ``p - q < c`` is ``p - q <= c - 1``. An equality is two atoms.
- An uncertain instant is a real number. If p or q is one, ``p - q < c`` is ``p - q <= c`` with the
  mark `open`. Its begin and its end are equal, so a relation of both is true or false.
- min and max terms are resolved exactly, on both sides, nested and shifted, for any terms t::

      min(a, b) <= t  is  a <= t or b <= t        t <= min(a, b)  is  t <= a and t <= b
      max(a, b) <= t  is  a <= t and b <= t       t <= max(a, b)  is  t <= a or t <= b

- Of two atoms over the same p and q the smaller constant remains, of equal ones the open one. A
  clause with an atom ``p - p <= c``, c < 0, or with ``p - q <= c`` and ``q - p <= d``, c + d < 0,
  is omitted; also if c + d = 0 and one of both is open.

Reference. Novoseltsev 2013 (TSA): temporal relation formulas, dnf. The number of clauses may be
exponential in the size of the formula, so it is limited.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
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
    """``p - q <= bound_us``, or ``p - q < bound_us`` if open."""

    p: Node
    q: Node
    bound_us: int
    open: bool = False


Clause = frozenset[Atom]
TRUE_CLAUSE: Clause = frozenset()


class _Rules(NamedTuple):
    """Maximum number of clauses, and the aliases whose instants are uncertain."""

    limit: int
    uncertain: Collection[str]


def disjunctive_normal_form(
    formula: Formula, uncertain: Collection[str] = (), limit: int = CLAUSE_LIMIT
) -> tuple[Clause, ...]:
    """Return the clauses of a formula without `Not`; without clauses it is false.

    Parameters
    ----------
    formula : Formula
        Result of `split.push_negations`.
    uncertain : collection of str
        Aliases whose instants are uncertain.
    limit : int
        Maximum number of clauses, also of intermediate results.

    Raises
    ------
    InvalidFieldError
        There are more clauses than the limit.
    """
    return _clauses(formula, _Rules(limit, uncertain))


def _clauses(formula: Formula, rules: _Rules) -> tuple[Clause, ...]:
    match formula:
        case And(parts):
            return _conjunction((_clauses(part, rules) for part in parts), rules.limit)
        case Or(parts):
            return _disjunction((_clauses(part, rules) for part in parts), rules.limit)
        case Relation():
            return _resolve(formula, rules)
    raise TypeError(f"expected a formula without Not; got {formula!r}")


def _resolve(relation: Relation, rules: _Rules) -> tuple[Clause, ...]:
    left, right = relation.left, relation.right
    match relation.operator:
        case "<=":
            return _at_most(left, right, (0, False), rules)
        case "<":
            return _at_most(left, right, (0, True), rules)
        case ">=":
            return _at_most(right, left, (0, False), rules)
        case ">":
            return _at_most(right, left, (0, True), rules)
        case "=":
            both = (_at_most(*pair, (0, False), rules) for pair in ((left, right), (right, left)))
            return _conjunction(both, rules.limit)


def _at_most(left: Term, right: Term, bound: tuple[int, bool], rules: _Rules) -> tuple[Clause, ...]:
    """Return the clauses of ``left - right <= bound_us``, or < if the bound is open."""
    bound_us, is_open = bound
    while isinstance(left, Shifted):
        bound_us -= left.offset_us
        left = left.term
    while isinstance(right, Shifted):
        bound_us += right.offset_us
        right = right.term
    bound = bound_us, is_open
    if isinstance(left, Extreme):
        parts = (_at_most(term, right, bound, rules) for term in left.terms)
        return (_conjunction if left.kind == "max" else _disjunction)(parts, rules.limit)
    if isinstance(right, Extreme):
        parts = (_at_most(left, term, bound, rules) for term in right.terms)
        return (_conjunction if right.kind == "min" else _disjunction)(parts, rules.limit)
    if left == right or (left.alias == right.alias and left.alias in rules.uncertain):
        return (TRUE_CLAUSE,) if bound_us >= is_open else ()
    if is_open and not {left.alias, right.alias} & {*rules.uncertain}:
        bound_us, is_open = bound_us - 1, False
    return (frozenset({Atom(left, right, bound_us, is_open)}),)


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
    # (constant, closed): an open bound is smaller than a closed one.
    bounds: dict[tuple[Node, Node], tuple[int, bool]] = {}
    for p, q, bound_us, is_open in [*first, *second]:
        bound = bound_us, not is_open
        bounds[p, q] = min(bound, bounds.get((p, q), bound))
    for (p, q), (bound_us, is_closed) in bounds.items():
        back_us, back_closed = bounds.get((q, p), (1 - bound_us, True))
        if bound_us + back_us < (not (is_closed and back_closed)):
            return None
    return frozenset(Atom(p, q, by, not closed) for (p, q), (by, closed) in bounds.items())


def _check_limit(found: int, limit: int) -> None:
    if found > limit:
        raise InvalidFieldError(
            "where",
            f"has more than {limit} alternatives in disjunctive normal form",
            "use fewer disjunctions, negated equalities and min or max terms",
        )
