"""Event queries: the parsed form of a query's text.

A query detects combinations of positive events for which no negated event exists. Its temporal
formula relates the begins and ends of the events:

- temporal term: ``alias.rt.begin``, ``alias.rt.end``, ``t + c``, ``min(t, …)``, ``max(t, …)``;
- formula: ``t1 op t2`` with op in <, <=, >, >=, =, and conjunctions, disjunctions and negations.

The time of the result is a begin and an end: temporal terms over positive events.

Reference. Novoseltsev 2013 (TSA): temporal relation formulas and the running example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

BEGIN, END = "begin", "end"
Side = Literal["begin", "end"]
Operator = Literal["<", "<=", ">", ">=", "="]
Constant = str | int | bool | Decimal


@dataclass(frozen=True, slots=True)
class Point:
    """Begin or end of an event.

    Parameters
    ----------
    alias : str
        Alias of the event.
    side : {"begin", "end"}
        Which of both.
    """

    alias: str
    side: Side


@dataclass(frozen=True, slots=True)
class Shifted:
    """A term moved by a constant.

    Parameters
    ----------
    term : Term
        The term.
    offset_us : int
        Added to it, in µs; negative for ``t - c``.
    """

    term: Term
    offset_us: int


@dataclass(frozen=True, slots=True)
class Extreme:
    """Minimum or maximum of terms.

    Parameters
    ----------
    kind : {"min", "max"}
        Which of both.
    terms : tuple of Term
        At least one term.
    """

    kind: Literal["min", "max"]
    terms: tuple[Term, ...]


Term = Point | Shifted | Extreme


def value_at(
    term: Term,
    at: Callable[[Point], Any],
    smallest: Callable[[Iterable[Any]], Any] = min,
    largest: Callable[[Iterable[Any]], Any] = max,
) -> Any:  # noqa: ANN401 - numbers or arrays
    """Return the value of a term.

    Parameters
    ----------
    term : Term
        The term.
    at : callable
        Returns the value of a point: a number or an array. -inf and +inf are values.
    smallest, largest : callable
        Minimum and maximum of several values.
    """
    match term:
        case Point():
            return at(term)
        case Shifted(inner, offset_us):
            return value_at(inner, at, smallest, largest) + offset_us
        case Extreme(kind, terms):
            values = (value_at(it, at, smallest, largest) for it in terms)
            return (smallest if kind == "min" else largest)(values)


def map_points(term: Term, change: Callable[[Point], Term]) -> Term:
    """Return a term whose points are changed."""
    match term:
        case Point():
            return change(term)
        case Shifted(inner, offset_us):
            return Shifted(map_points(inner, change), offset_us)
        case Extreme(kind, terms):
            return Extreme(kind, tuple(map_points(it, change) for it in terms))


def points_of(term: Term) -> Iterable[Point]:
    """Yield the points of a term."""
    match term:
        case Point():
            yield term
        case Shifted(inner, _):
            yield from points_of(inner)
        case Extreme(_, terms):
            for it in terms:
                yield from points_of(it)


@dataclass(frozen=True, slots=True)
class Relation:
    """``left operator right``.

    Parameters
    ----------
    left, right : Term
        Temporal terms.
    operator : {"<", "<=", ">", ">=", "="}
        The comparison.
    """

    left: Term
    operator: Operator
    right: Term


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction; without parts it is true."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction; without parts it is false."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Negation."""

    part: Formula


Formula = Relation | And | Or | Not
TRUE = And(())
FALSE = Or(())


def relations_of(formula: Formula) -> Iterator[Relation]:
    """Yield the relations of a formula."""
    if isinstance(formula, Relation):
        yield formula
    else:
        for part in (formula.part,) if isinstance(formula, Not) else formula.parts:
            yield from relations_of(part)


def map_terms(formula: Formula, change: Callable[[Term], Term]) -> Formula:
    """Return a formula whose terms are changed."""
    match formula:
        case Relation(left, operator, right):
            return Relation(change(left), operator, change(right))
        case Not(part):
            return Not(map_terms(part, change))
        case And(parts):
            return And(tuple(map_terms(it, change) for it in parts))
        case Or(parts):
            return Or(tuple(map_terms(it, change) for it in parts))


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable: attributes with the same variable are equal."""

    name: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of an attribute with a constant.

    Parameters
    ----------
    operator : {"<", "<=", ">", ">=", "="}
        The comparison; ``{"x"}`` and ``{3}`` are ``=``.
    constant : str, int, bool or Decimal
        The constant.
    """

    operator: Operator
    constant: Constant


@dataclass(frozen=True, slots=True)
class AttributePattern:
    """Requirement of an attribute of an event.

    Parameters
    ----------
    name : str
        Name of the attribute.
    pattern : Variable or Comparison
        The value is bound to the variable, or compared.
    """

    name: str
    pattern: Variable | Comparison


@dataclass(frozen=True, slots=True)
class EventPattern:
    """A positive or negated event.

    Parameters
    ----------
    alias : str
        Name of the event in the query.
    type : str
        Event type, which names a stream.
    attributes : tuple of AttributePattern
        Patterns of its attributes; all must match.
    negated : bool
        Whether the query requires that no such event exists.
    """

    alias: str
    type: str
    attributes: tuple[AttributePattern, ...] = ()
    negated: bool = False


@dataclass(frozen=True, slots=True)
class OutputAttribute:
    """An attribute of the result: the value of a variable, or a constant."""

    name: str
    value: Variable | Constant


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text that a query was parsed from.

    Parameters
    ----------
    text : str
        The text.
    offsets : mapping of str to int
        Offsets of its parts by their paths in the JSON form: `where`, `events[0]`,
        `events[0].attributes[0]`, …
    """

    text: str
    offsets: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed event query.

    Parameters
    ----------
    type : str
        Type of the result.
    attributes : tuple of OutputAttribute
        Attributes of the result.
    events : tuple of EventPattern
        Positive and negated events, in the order of the text.
    where : Formula
        Temporal formula, without the time of the result; `TRUE` without WHERE.
    result_begin, result_end : Term or None
        Time of the result, over positive events; None: the minimum begin, and the maximum end of
        the positive events.
    source : SourceText or None
        Its text, for errors; None: it was read from its JSON form. Equal queries may differ in it.
    """

    type: str
    attributes: tuple[OutputAttribute, ...]
    events: tuple[EventPattern, ...]
    where: Formula = TRUE
    result_begin: Term | None = None
    result_end: Term | None = None
    source: SourceText | None = field(default=None, compare=False, repr=False)

    @property
    def positive(self) -> tuple[EventPattern, ...]:
        """The positive events."""
        return tuple(event for event in self.events if not event.negated)

    @property
    def negated(self) -> tuple[EventPattern, ...]:
        """The negated events."""
        return tuple(event for event in self.events if event.negated)

    @property
    def begin(self) -> Term:
        """Begin of the result."""
        return self.default_time("begin") if self.result_begin is None else self.result_begin

    @property
    def end(self) -> Term:
        """End of the result, by which results are released."""
        return self.default_time("end") if self.result_end is None else self.result_end

    def default_time(self, side: Side) -> Term:
        """Return the begin or the end of a result whose time is not stated."""
        points = tuple(Point(event.alias, side) for event in self.positive)
        kind: Literal["min", "max"] = "min" if side == BEGIN else "max"
        return points[0] if len(points) == 1 else Extreme(kind, points)
