"""Disjunctive normal form of temporal formulas.

Problem. A formula without `Not` becomes an equivalent disjunction of clauses. A clause is a
conjunction of atoms ``p - q <= c`` over points p, q with a constant c in µs.

- Exact times are whole µs, so ``p - q < c`` is ``p - q <= c - 1``. If the instant of p or q is
  uncertain, times are real numbers: the atom is ``p - q <= c`` with the mark `open`. An equality is
  two atoms.
- min and max terms are resolved exactly, on both sides, nested and shifted, for any terms t::

      min(a, b) <= t  is  a <= t or b <= t        t <= min(a, b)  is  t <= a and t <= b
      max(a, b) <= t  is  a <= t and b <= t       t <= max(a, b)  is  t <= a or t <= b

- Of two atoms over the same p and q the smaller constant remains, of equal ones the open one. A
  clause with an atom ``p - p <= c``, c < 0, or with ``p - q <= c`` and ``q - p <= d``, c + d < 0,
  is omitted, and also one with c + d = 0 and one of both is open.

Algorithm. The ordered pairs (p, q) of a query are numbered, and a clause is a map from numbers to
constants while it is built: two clauses are joined by comparing integers. The parts of a
conjunction that have one clause are joined before the products of the others.

Reference. Novoseltsev 2013 (TSA): temporal relation formulas, dnf. The number of clauses may be
exponential in the size of the formula, so it is limited, and so is the work (`work`).
Cost: O(atoms) a join.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
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
from correlation.event_query.relevance.work import Work

# Maximum number of clauses.
CLAUSE_LIMIT = 256
# Steps of an atom that is resolved from a relation, or that is written into a clause and closed.
_STEPS_OF_ATOM = 40
# Steps of a join, and of an atom that is compared in it.
_STEPS_OF_JOIN, _STEPS_OF_BOUND = 10, 4


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


# Distinct atoms, sorted by their points.
Clause = tuple[Atom, ...]
# A clause that is being built: from the number of a pair (p, q) to 2 · constant - open, so that a
# smaller number is a tighter bound. If (p, q) has the number n, (q, p) has the number n ^ 1.
Bounds = dict[int, int]


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
        Maximum number of clauses, including intermediate results.

    Raises
    ------
    InvalidFieldError
        There are more clauses than the limit, or they take too much work.
    """
    forms = NormalForms(Work(), uncertain, limit)
    return forms.clauses(forms.of(formula))


class NormalForms:
    """Normal forms of the formulas of one query.

    Parameters
    ----------
    work : Work
        Counts the steps.
    uncertain : collection of str
        Aliases whose instants are uncertain.
    limit : int
        Maximum number of clauses of a formula, including intermediate results.
    """

    def __init__(
        self, work: Work, uncertain: Collection[str] = (), limit: int = CLAUSE_LIMIT
    ) -> None:
        self._work = work
        self._uncertain = frozenset(uncertain)
        self._limit = limit
        self._numbers: dict[tuple[Node, Node], int] = {}
        self._pairs: list[tuple[Node, Node]] = []

    def of(self, formula: Formula) -> list[Bounds]:
        """Return the clauses of a formula without `Not`, for `both` and `clauses`.

        Raises
        ------
        InvalidFieldError
            There are too many clauses, or they take too much work.
        """
        match formula:
            case And(parts):
                return self._conjunction(map(self.of, parts))
            case Or(parts):
                return self._disjunction(map(self.of, parts))
            case Relation():
                return self._resolve(formula)
        raise TypeError(f"expected a formula without Not; got {formula!r}")

    def both(self, first: list[Bounds], second: list[Bounds]) -> list[Bounds]:
        """Return the clauses of the conjunction of two formulas.

        Raises
        ------
        InvalidFieldError
            As `of`.
        """
        return self._conjunction([first, second])

    def clauses(self, found: Sequence[Bounds]) -> tuple[Clause, ...]:
        """Return clauses as atoms.

        Raises
        ------
        InvalidFieldError
            They take too much work.
        """
        self._work.spend(_STEPS_OF_ATOM * sum(map(len, found)))
        by_points = sorted(range(len(self._pairs)), key=lambda number: repr(self._pairs[number]))
        rank = {number: place for place, number in enumerate(by_points)}
        return tuple(
            tuple(
                Atom(*self._pairs[it], (bounds[it] + 1) // 2, bool(bounds[it] % 2))
                for it in sorted(bounds, key=rank.__getitem__)
            )
            for bounds in found
        )

    def _resolve(self, relation: Relation) -> list[Bounds]:
        left, right = relation.left, relation.right
        match relation.operator:
            case "<=":
                return self._at_most(left, right, 0)
            case "<":
                return self._at_most(left, right, 0, is_open=True)
            case ">=":
                return self._at_most(right, left, 0)
            case ">":
                return self._at_most(right, left, 0, is_open=True)
            case "=":
                return self.both(self._at_most(left, right, 0), self._at_most(right, left, 0))

    def _at_most(
        self, left: Term, right: Term, bound_us: int, *, is_open: bool = False
    ) -> list[Bounds]:
        """Return the clauses of ``left - right <= bound_us``, or < if open."""
        self._work.spend(_STEPS_OF_ATOM)
        while isinstance(left, Shifted):
            bound_us -= left.offset_us
            left = left.term
        while isinstance(right, Shifted):
            bound_us += right.offset_us
            right = right.term
        if isinstance(left, Extreme):
            parts = (self._at_most(it, right, bound_us, is_open=is_open) for it in left.terms)
            return (self._conjunction if left.kind == "max" else self._disjunction)(parts)
        if isinstance(right, Extreme):
            parts = (self._at_most(left, it, bound_us, is_open=is_open) for it in right.terms)
            return (self._conjunction if right.kind == "min" else self._disjunction)(parts)
        # Begin and end of an uncertain instant are the same time.
        if left == right or (left.alias == right.alias and left.alias in self._uncertain):
            return [{}] if bound_us >= is_open else []
        if is_open and not {left.alias, right.alias} & self._uncertain:
            bound_us, is_open = bound_us - 1, False
        return [{self._number(left, right): 2 * bound_us - is_open}]

    def _number(self, p: Node, q: Node) -> int:
        """Return the number of a pair of points."""
        if (p, q) not in self._numbers:
            for pair in ((p, q), (q, p)):
                self._numbers[pair] = len(self._pairs)
                self._pairs.append(pair)
        return self._numbers[p, q]

    def _disjunction(self, parts: Iterable[list[Bounds]]) -> list[Bounds]:
        found: dict[frozenset[tuple[int, int]], Bounds] = {}
        for part in parts:
            for bounds in part:
                self._work.spend(1 + len(bounds))
                found.setdefault(frozenset(bounds.items()), bounds)
            self._check_limit(len(found))
        return list(found.values())

    def _conjunction(self, parts: Iterable[list[Bounds]]) -> list[Bounds]:
        base: Bounds = {}
        choices = []
        for part in parts:
            if len(part) == 1:
                self._work.spend(1 + len(part[0]))
                if not _tighten(base, part[0]):
                    return []
            else:
                choices.append(part)
        found = [base]
        for part in choices:
            product: dict[frozenset[tuple[int, int]], Bounds] = {}
            for first in found:
                for second in part:
                    self._work.spend(_STEPS_OF_JOIN + len(first) + _STEPS_OF_BOUND * len(second))
                    joined = first.copy()
                    if _tighten(joined, second):
                        product[frozenset(joined.items())] = joined
                        self._check_limit(len(product))
            found = list(product.values())
        return found

    def _check_limit(self, found: int) -> None:
        if found > self._limit:
            raise InvalidFieldError(
                "where",
                f"has more than {self._limit} alternatives in disjunctive normal form",
                "use fewer disjunctions, negated equalities and min or max terms",
            )


def _tighten(bounds: Bounds, further: Bounds) -> bool:
    """Add the atoms of a clause to another; return whether no two of them contradict."""
    for number, bound in further.items():
        if bound < bounds.get(number, bound + 1):
            if bound + bounds.get(number ^ 1, -bound) < 0:
                return False
            bounds[number] = bound
    return True
