"""Progress of the results, derived from the progress of the input streams.

Problem. The progress P(S) of a stream S is a time such that every future event of S has a time
v > P(S) (`rt.end`, or `Latest`). Find the largest B such that no future event makes or stops a
result with time ≤ B: then these results are final.

Definition. The time of a result is T = max(t_1, …, t_n). For an alias x with the time v and the
clauses C under which an event x matters (G+ for a positive alias, G+ ∧ G_x for a negated one)::

    lead(x) = min over C of max over i of -dist_C(t_i, v)
    B       = min over x of P(stream of x) + lead(x)

lead(x) is the minimum of T - v over all times that satisfy a clause (docs/proofs.md,
P-QUERY-PROGRESS). It is +inf if event x never matters, and -inf if T may be any time before v. In
the source's example lead(s) = 0 and lead(r) = -5 min:
UB(Alarm) = min(UB(Smoke), UB(Report) - 5 min).

Reference. Novoseltsev 2013 (TSA): determining upper bounds; the general formula is ours.
Cost: O(n · clauses) after the closures.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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


def lead(closures: Sequence[Closure], times: Sequence[Node], v: Node) -> Distance:
    """Return the lead of an event: the minimum of T - v, where T is the maximum of `times`.

    Parameters
    ----------
    closures : sequence of Closure
        Closures of all clauses under which an event with the time v matters.
    times : sequence of Node
        t_1, …, t_n.
    v : Node
        Time of the event.

    Returns
    -------
    int, +inf or -inf
        In µs; +inf if the event never matters, -inf if T may be any time before v.
    """
    return min((max(-closure.dist(t, v) for t in times) for closure in closures), default=math.inf)
