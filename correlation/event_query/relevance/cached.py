"""Cache of relevance analyses, and of refusals.

The analysis of many clauses takes up to a second. Checks, plans, explanations and the operator of
each slot ask for the same analysis again. The cache is limited by the number of distances in the
closures, because one analysis may have a million of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from correlation.errors import FieldErrors, InvalidFieldError
from correlation.event_query.query import Query
from correlation.event_query.relevance.analysis import Relevance, analyse_relevance
from correlation.event_query.relevance.closure import StreamTimes

# Maximum number of distances of all kept analyses together; they take about 50 MB.
DISTANCE_LIMIT = 1_000_000
# Maximum number of kept analyses; most of them are small.
ANALYSIS_LIMIT = 256

# Field, problem and remedy of each problem of a refused query. The errors themselves would keep the
# values of the functions that raised them.
_Refusal = tuple[tuple[str, str, str], ...]
_Key = tuple[Query, tuple[tuple[str, StreamTimes], ...]]


class RelevanceCache:
    """Analyses that were used last.

    Parameters
    ----------
    distances : int
        Maximum number of distances of all analyses together; a larger analysis is not kept.
    """

    def __init__(self, distances: int = DISTANCE_LIMIT) -> None:
        self._limit = distances
        # The least recently used first. Every operation on it is atomic.
        self._found: dict[_Key, Relevance | _Refusal] = {}

    def analyse(self, query: Query, types: Mapping[str, StreamTimes]) -> Relevance:
        """Return the analysis of a query, as `analyse_relevance`.

        Raises
        ------
        InvalidFieldError
            As `analyse_relevance`; the problems are `InvalidFieldError`.
        """
        key = query, tuple(types.items())
        found = self._found.pop(key, None)
        if found is None:
            found = _analyse(query, types)
        self._found[key] = found
        self._drop_oldest()
        if isinstance(found, Relevance):
            return found
        errors = FieldErrors()
        for field, problem, remedy in found:
            errors.refuse(field, problem, remedy, when=True)
        errors.raise_all()
        raise AssertionError("a refusal has a problem")

    def distances(self) -> int:
        """Return the number of distances of all kept analyses."""
        return sum(map(_distances_of, list(self._found.values())))

    def _drop_oldest(self) -> None:
        total = self.distances()
        keys = list(self._found)
        kept = len(keys)
        for key in keys:
            if total <= self._limit and kept <= ANALYSIS_LIMIT:
                break
            dropped = self._found.pop(key, ())
            total -= _distances_of(dropped)
            kept -= 1


def _analyse(query: Query, types: Mapping[str, StreamTimes]) -> Relevance | _Refusal:
    try:
        return analyse_relevance(query, types)
    except InvalidFieldError as error:
        return tuple((it.field, it.problem, it.remedy) for it in error.problems)


def _distances_of(found: Relevance | _Refusal) -> int:
    # Positive events share their closures.
    if not isinstance(found, Relevance):
        return 0
    shared = next(it for it in found.inputs if not it.negated)
    groups = [shared, *(it for it in found.inputs if it.negated)]
    return sum(len(closure.points) ** 2 for it in groups for closure in it.closures)


# Analyses of all conditions of the process.
RELEVANCES = RelevanceCache()
