"""Relations of negated events with uncertain instants that are not evaluated.

Given the time T_u of one uncertain positive event u, negated events are independent, and P is an
integral over one variable. Beside u, the relations of a negated event r with an uncertain instant
must mention u and r only: then r stops the combination iff T_r - T_u is in a window that is the
same for all combinations. A relation of r to a positive event with an exact time needs no integral
over further variables. Given T_u, the times at which r stops the combination then have ends at
fixed times too, so P(r stops it) stays piecewise linear in T_u, with more breakpoints. The
evaluation (`absence`) has no such ends. Relations of u to events with exact times, and of negated
events with exact times, are not restricted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from correlation.event_query.query import Query
from correlation.event_query.relevance.split import aliases_of, split_formula


def joint_relations(query: Query, uncertain: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the relations that are not supported.

    Parameters
    ----------
    query : Query
        The parsed query.
    uncertain : collection of str
        Aliases whose instants are uncertain.

    Yields
    ------
    (str, str, str)
        The negated event, the uncertain positive event, and another positive event that a relation
        or a disjunction with the negated event mentions.

    Raises
    ------
    InvalidFieldError
        A relation mentions two negated events.
    """
    instants = [it.alias for it in query.positive if it.alias in uncertain]
    if not instants:
        return
    for alias, relations in split_formula(query).negated.items():
        if alias in uncertain:
            others = aliases_of(relations) - {alias, instants[0]}
            for other in sorted(others):
                yield alias, instants[0], other
