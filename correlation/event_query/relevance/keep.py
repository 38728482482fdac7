"""Keep functions: from the bound of the results to the keep value of an input.

Problem. Results up to the bound b have been published. Find a value, as late as possible, such
that input events whose time v is at most this value contribute to no later result.

Definition. For a relevance formula R, a clause C and a time v of the input::

    f(p + c > b, C, v)     = +inf                  if dist_C(v, p) = -inf  (C is contradictory)
                           = -inf                  if dist_C(v, p) = +inf
                           = b - c - dist_C(v, p)  otherwise
    f(R_1 ∧ … ∧ R_k, C, v) = max of f(R_i, C, v)   if all have one bound, otherwise min
    f(R_1 ∨ … ∨ R_k, C, v) = min of f(R_i, C, v)
    f(R, v)                = min of f(R, C, v) over the clauses C

The source has the minimum for ∧, and no rule for ∨. Of a disjunction any part may be the one that
holds, which takes the minimum. Of a conjunction all parts hold, so the maximum is safe, and it is
attained (docs/proofs.md, P-QUERY-KEEP). ⊥ has +inf: no tuple is relevant.

Reference. Novoseltsev 2013 (TSA): keep functions. Cost: O(atoms · clauses) after the closures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from correlation.event_query.relevance.closure import Closure, Distance
from correlation.event_query.relevance.normal_form import Node
from correlation.event_query.relevance.stream_bounds import (
    Above,
    Bottom,
    RelevanceAnd,
    RelevanceFormula,
    RelevanceOr,
)


@dataclass(frozen=True, slots=True)
class KeepFunction:
    """f(b_1, b_2, …) = min(b_i + offset_i).

    Parameters
    ----------
    offsets : mapping of bound to int, +inf or -inf
        Offset of each bound, in µs; without bounds the value is +inf.
    """

    offsets: Mapping[str, Distance]

    def value(self, bounds: Mapping[str, Distance]) -> Distance:
        """Return the keep value: events whose time is at most this are not needed, in µs."""
        return min((bounds[it] + by for it, by in self.offsets.items()), default=math.inf)


def keep_function(formula: RelevanceFormula, closures: Sequence[Closure], v: Node) -> KeepFunction:
    """Return the keep function of a time of an input.

    Parameters
    ----------
    formula : RelevanceFormula
        Relevance formula of the results.
    closures : sequence of Closure
        Closures of all clauses under which an input event matters.
    v : Node
        Time of the input event.
    """
    return KeepFunction(_merged(min, (_offsets(formula, closure, v) for closure in closures)))


def _offsets(formula: RelevanceFormula, closure: Closure, v: Node) -> dict[str, Distance]:
    """Return the offset of each bound for one clause."""
    match formula:
        case Bottom():
            return {}
        case Above(point, bound, shift_us):
            return {bound: -closure.dist(v, point) - shift_us}
        case RelevanceAnd(parts) | RelevanceOr(parts):
            found = [_offsets(part, closure, v) for part in parts]
            if isinstance(formula, RelevanceAnd) and not all(found):
                return {}
            several = len(set().union(*found)) > 1
            return _merged(min if isinstance(formula, RelevanceOr) or several else max, found)


def _merged(
    choose: Callable[[Distance, Distance], Distance], parts: Iterable[dict[str, Distance]]
) -> dict[str, Distance]:
    found: dict[str, Distance] = {}
    for part in parts:
        for bound, offset in part.items():
            found[bound] = choose(found[bound], offset) if bound in found else offset
    return found
