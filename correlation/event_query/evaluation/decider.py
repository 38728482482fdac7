"""Decision of due combinations: whether a negated event stops them, and with which probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.event_query.evaluation.compiled import CompiledQuery
from correlation.event_query.evaluation.probable import Probabilities
from correlation.event_query.evaluation.search import Search
from correlation.event_query.evaluation.tables import Table


class Decided(NamedTuple):
    """Combinations that are results.

    Attributes
    ----------
    table : Table
        k combinations.
    probability : ndarray of float64, shape (k,), or None
        P of each, if the query has a threshold.
    """

    table: Table
    probability: NDArray[np.float64] | None = None

    def take(self, rows: Int64s) -> Decided:
        """Return the combinations of some rows."""
        chosen = None if self.probability is None else self.probability[rows]
        return Decided(self.table.take(rows), chosen)

    @classmethod
    def concat(cls, parts: Sequence[Decided]) -> Decided:
        """Concatenate parts of one query, at least one."""
        columns = [it.probability for it in parts if it.probability is not None]
        joined = np.concatenate(columns) if columns else None
        return cls(Table.concat([it.table for it in parts]), joined)


@dataclass(slots=True)
class Decider:
    """Decides due combinations.

    Parameters
    ----------
    query : CompiledQuery
        The query.
    search : Search
        Search among the events.
    progress : int
        B, in µs.
    complete_above : int
        The events that may stop a result of a later time are all in the search.
    probabilities : Probabilities or None
        Decides combinations with a probability; None if the query has no threshold.
    unknown : int
        Number of combinations that no event stops, as far as is known.
    """

    query: CompiledQuery
    search: Search
    progress: int
    complete_above: int
    probabilities: Probabilities | None = None
    unknown: int = 0

    @classmethod
    def of(
        cls,
        query: CompiledQuery,
        search: Search,
        bounds: tuple[int, int],
        threshold: Decimal | None,
    ) -> Decider:
        """Build the decider of a block; `bounds` are progress and complete_above."""
        found = None if threshold is None else Probabilities(query, search, threshold)
        return cls(query, search, *bounds, found)

    def undecided_before(self, table: Table, seals: Sequence[Int64s | None]) -> Table:
        """Return the combinations that were not decided before a reset."""
        found = [
            column[table.segments[:, place]]
            for place, column in enumerate(seals)
            if column is not None
        ]
        if not found:
            return table
        return table.take(np.flatnonzero(self.query.time.of(table.times) > np.min(found, axis=0)))

    def results(self, table: Table) -> Decided:
        """Return the combinations that are results."""
        if not len(table) or not (self.query.negated or self.probabilities):
            return Decided(table)
        stopped = np.zeros(len(table), np.bool_)
        for _, target in self.query.negated:
            if not target.has_chance:
                self.search.mark_stopped(table, target, stopped)
        probability = None
        if self.probabilities is not None:
            probability = self.probabilities.decide(table, stopped)
        return self.known(Decided(table, probability).take(np.flatnonzero(~stopped)))

    def known(self, found: Decided) -> Decided:
        """Return those of which all events that may stop them are known.

        Parameters
        ----------
        found : Decided
            Combinations that no event stops, as far as is known.
        """
        if not self.query.negated or not len(found.table):
            return found
        time = self.query.time.of(found.table.times)
        known = np.flatnonzero((time <= self.progress) & (time > self.complete_above))
        self.unknown += len(time) - len(known)
        return found if len(known) == len(time) else found.take(known)
