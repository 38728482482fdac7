"""Stream bound formulas and relevance formulas.

Definitions. A stream bound formula describes a finite prefix of a stream::

    H ::= ⊤ | bounded(p, b) | H ∧ H | H ∨ H

bounded(p, b): the times p of the prefix are at most the bound named b. The relevance formula of H
is its negation, which selects the tuples after the prefix::

    ⊤ becomes ⊥,  bounded(p, b) becomes p > b,  ∧ becomes ∨,  ∨ becomes ∧

The results of a query with time ≤ b: the time of a result is the maximum of the times t_1 … t_n of
its positive events, so H = bounded(t_1, b) ∧ … ∧ bounded(t_n, b), and its relevance formula is
t_1 > b ∨ … ∨ t_n > b.

Reference. Novoseltsev 2013 (TSA): stream bound formulas, relevance formula.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from correlation.event_query.relevance.normal_form import Node


@dataclass(frozen=True, slots=True)
class Top:
    """⊤: the whole stream."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """bounded(p, b): p is at most the bound named b."""

    point: Node
    bound: str


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
    """p > b."""

    point: Node
    bound: str


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
        case Bounded(point, name):
            return Above(point, name)
        case BoundAnd(parts):
            return RelevanceOr(tuple(map(relevance_formula, parts)))
        case BoundOr(parts):
            return RelevanceAnd(tuple(map(relevance_formula, parts)))


def results_until(times: Iterable[Node], bound: str) -> StreamBound:
    """Return the stream bound formula of the results whose time is at most a bound.

    Parameters
    ----------
    times : iterable of Node
        The time of a result is the maximum of these points.
    bound : str
        Name of the bound.
    """
    parts = tuple(Bounded(point, bound) for point in times)
    return parts[0] if len(parts) == 1 else BoundAnd(parts)
