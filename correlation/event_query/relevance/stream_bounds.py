"""Stream bound formulas and relevance formulas.

Definitions. A stream bound formula describes a finite prefix of a stream::

    H ::= ⊤ | bounded(p, b) | H ∧ H | H ∨ H

bounded(p, b): the times p of the prefix are at most the bound named b; p may be shifted by a
constant. The relevance formula of H is its negation, which selects the tuples after the prefix::

    ⊤ becomes ⊥,  bounded(p, b) becomes p > b,  ∧ becomes ∨,  ∨ becomes ∧

The results of a query with time ≤ b, H(t): the time of a result is a term t over the points of its
positive events::

    H(p + c) = bounded(p + c, b),  H(max(t, u)) = H(t) ∧ H(u),  H(min(t, u)) = H(t) ∨ H(u)

By default t is the maximum of the ends t_1 … t_n of the positive events, so H = bounded(t_1, b) ∧ …
∧ bounded(t_n, b), and its relevance formula is t_1 > b ∨ … ∨ t_n > b.

Reference. Novoseltsev 2013 (TSA): stream bound formulas, relevance formula.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from correlation.event_query.query import Extreme, Point, Shifted, Term
from correlation.event_query.relevance.normal_form import Node


@dataclass(frozen=True, slots=True)
class Top:
    """⊤: the whole stream."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """bounded(p + c, b): p plus a constant in µs is at most the bound named b."""

    point: Node
    bound: str
    shift_us: int = 0


@dataclass(frozen=True, slots=True)
class BoundAnd:
    """H_1 ∧ … ∧ H_k."""

    parts: tuple[StreamBound, ...]


@dataclass(frozen=True, slots=True)
class BoundOr:
    """H_1 ∨ … ∨ H_k."""

    parts: tuple[StreamBound, ...]


StreamBound = Top | Bounded | BoundAnd | BoundOr


@dataclass(frozen=True, slots=True)
class Bottom:
    """⊥: no tuple is relevant."""


@dataclass(frozen=True, slots=True)
class Above:
    """p + c > b."""

    point: Node
    bound: str
    shift_us: int = 0


@dataclass(frozen=True, slots=True)
class RelevanceAnd:
    """R_1 ∧ … ∧ R_k."""

    parts: tuple[RelevanceFormula, ...]


@dataclass(frozen=True, slots=True)
class RelevanceOr:
    """R_1 ∨ … ∨ R_k."""

    parts: tuple[RelevanceFormula, ...]


RelevanceFormula = Bottom | Above | RelevanceAnd | RelevanceOr


def relevance_formula(bound: StreamBound) -> RelevanceFormula:
    """Return the negation of a stream bound formula."""
    match bound:
        case Top():
            return Bottom()
        case Bounded(point, name, shift_us):
            return Above(point, name, shift_us)
        case BoundAnd(parts):
            return RelevanceOr(tuple(map(relevance_formula, parts)))
        case BoundOr(parts):
            return RelevanceAnd(tuple(map(relevance_formula, parts)))


def results_until(
    time: Term, bound: str, node: Callable[[Point], Node], shift_us: int = 0
) -> StreamBound:
    """Return the stream bound formula of the results whose time is at most a bound.

    Parameters
    ----------
    time : Term
        The time of a result.
    bound : str
        Name of the bound.
    node : callable
        Returns the point of the analysis for a point of the query.
    shift_us : int
        Added to the time, in µs.
    """
    match time:
        case Point():
            return Bounded(node(time), bound, shift_us)
        case Shifted(inner, offset_us):
            return results_until(inner, bound, node, shift_us + offset_us)
        case Extreme(kind, terms):
            parts = tuple(results_until(it, bound, node, shift_us) for it in terms)
            if len(parts) == 1:
                return parts[0]
            return BoundAnd(parts) if kind == "max" else BoundOr(parts)
