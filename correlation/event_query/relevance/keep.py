"""Keep functions: from the bound of the results to the keep value of an input.

Problem. Results up to the bound b have been published. Find a value, as late as possible, such
that input events whose time v is at most this value contribute to no later result.

Definition. For a relevance formula R, a clause C and a time v of the input::

    f(p > b, C, v)         = +inf              if dist_C(v, p) = -inf  (C is contradictory)
                           = -inf              if dist_C(v, p) = +inf
                           = b - dist_C(v, p)  otherwise
    f(R_1 ∧ … ∧ R_k, C, v) = min of f(R_i, C, v)
    f(R, v)                = min of f(R, C, v) over the clauses C

The source has no rule for R_1 ∨ … ∨ R_k. The minimum is used: any part may be the one that holds.
For ∧ the maximum would be safe as well. ⊥ has +inf: no tuple is relevant (docs/proofs.md,
P-QUERY-KEEP).

Reference. Novoseltsev 2013 (TSA): keep functions. Cost: O(atoms · clauses) after the closures.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from correlation.event_query.relevance.closure import Closure, Distance
from correlation.event_query.relevance.normal_form import Node
from correlation.event_query.relevance.stream_bounds import (
    Above,
    Bottom,
    RelevanceFormula,
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

    @property
    def finite(self) -> bool:
        """Whether events are deleted at some time: no offset is -inf."""
        return -math.inf not in self.offsets.values()

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
    offsets: dict[str, Distance] = {}
    for atom in _atoms(formula):
        for closure in closures:
            offset = -closure.dist(v, atom.point)
            offsets[atom.bound] = min(offset, offsets.get(atom.bound, math.inf))
    return KeepFunction(offsets)


def _atoms(formula: RelevanceFormula) -> Iterable[Above]:
    """Yield the atoms; ∧ and ∨ both take the minimum over their parts."""
    match formula:
        case Bottom():
            pass
        case Above():
            yield formula
        case _:
            for part in formula.parts:
                yield from _atoms(part)
