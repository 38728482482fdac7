"""Limit of the work that the analysis of one query takes.

Problem. A query of a few thousand characters may have 256 clauses of hundreds of atoms over 16
events, and a request waits for its analysis. The analysis therefore counts its steps, and a query
that needs more than a limit is refused. The count depends on the query only, so that a query is
accepted or refused alike on all machines.

A step is one number that is compared or copied. The costs of larger operations are constants that
were measured against a step.
"""

from __future__ import annotations

from correlation.errors import InvalidFieldError

# The analysis of a query that needs all steps takes about one second.
STEP_LIMIT = 12_000_000


class Work:
    """Steps that an analysis has taken.

    Parameters
    ----------
    limit : int
        Maximum number of steps.

    Attributes
    ----------
    steps : int
        Number of steps.
    """

    def __init__(self, limit: int = STEP_LIMIT) -> None:
        self._limit = limit
        self.steps = 0

    def spend(self, steps: int) -> None:
        """Count steps before they are taken.

        Raises
        ------
        InvalidFieldError
            The limit is exceeded.
        """
        self.steps += steps
        if self.steps > self._limit:
            raise InvalidFieldError(
                "where",
                "takes too long to analyse: it has too many relations, alternatives and events",
                "use fewer relations, disjunctions, negated equalities and min or max terms",
            )
