"""Progress of the results, derived from the progress of the input streams.

Problem. The progress P(S) of a stream S is a time such that every future event of S has a time
v > P(S) (`rt.end`, or `Latest`). Find the largest B such that no future event makes or stops a
result with time ≤ B: then these results are final.

Definition. The time T of a result is a term over the points p of its positive events, by default
max(t_1, …, t_n). For an alias x with the time v and the clauses C under which an event x matters
(G+ for a positive alias, G+ ∧ G_x for a negated one)::

    lead(x) = min over C of the value of T for p = -dist_C(p, v)
    B       = min over x of P(stream of x) + lead(x)

lead(x) is the minimum of T - v over all times that satisfy a clause, because T does not decrease if
a point increases (docs/proofs.md, P-QUERY-PROGRESS). By default it is min over C of max over i of
-dist_C(t_i, v). It is +inf if event x never matters, and -inf if T may be any time before v. In the
source's example lead(s) = 0 and lead(r) = -5 min:
UB(Alarm) = min(UB(Smoke), UB(Report) - 5 min). With Alarm.rt.end = s.rt.end + 5 min it is
min(UB(Smoke) + 5 min, UB(Report)).

Reference. Novoseltsev 2013 (TSA): determining upper bounds; the general formula is ours.
Cost: O(n · clauses) after the closures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from correlation.event_query.query import Point, Term, value_at
from correlation.event_query.relevance.closure import Closure, Distance
from correlation.event_query.relevance.normal_form import Node


@dataclass(frozen=True, slots=True)
class ProgressFunction:
    """B = min(P(stream) + lead).

    Parameters
    ----------
    leads : mapping of stream to int, +inf or -inf
        Minimum lead of the aliases of each stream, in µs.
    """

    leads: Mapping[str, Distance]

    @classmethod
    def of_aliases(cls, leads: Iterable[tuple[str, Distance]]) -> ProgressFunction:
        """Return the function of (stream, lead) of all aliases."""
        found: dict[str, Distance] = {}
        for stream, by in leads:
            found[stream] = min(by, found.get(stream, math.inf))
        return cls(found)

    def value(self, progress: Mapping[str, Distance]) -> Distance:
        """Return the progress of the results, in µs; +inf if no event can make or stop one.

        Parameters
        ----------
        progress : mapping of stream to int
            Progress of the input streams, in µs. A watermark W of the engine (future events have
            `latest` >= W) is the progress W - 1.
        """
        return min((progress[stream] + by for stream, by in self.leads.items()), default=math.inf)


def lead(
    closures: Sequence[Closure], time: Term, v: Node, node: Callable[[Point], Node]
) -> Distance:
    """Return the lead of an event: the minimum of T - v.

    Parameters
    ----------
    closures : sequence of Closure
        Closures of all clauses under which an event with the time v matters.
    time : Term
        T.
    v : Node
        Time of the event.
    node : callable
        Returns the point of the analysis for a point of the query.

    Returns
    -------
    int, +inf or -inf
        In µs; +inf if the event never matters, -inf if T may be any time before v.
    """

    def lowest(closure: Closure) -> Distance:
        found: Distance = value_at(time, lambda point: -closure.dist(node(point), v))
        return found

    return min(map(lowest, closures), default=math.inf)
