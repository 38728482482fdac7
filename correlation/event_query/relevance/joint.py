"""Relations whose probability would need a joint integral over several uncertain instants.

Given the time of one uncertain positive event u, negated events are independent, and P is an
integral over one variable. This fails if a negated event r with an uncertain instant is also
related to other positive events: the times at which r stops the combination then depend on T_u and
on fixed times. So beside u, the relations of r must mention u and r only. Relations of u to events
with exact times, and of negated events with exact times, are not restricted.
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
