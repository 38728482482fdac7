"""Decision of combinations that have a probability, because instants are uncertain.

Problem. The search finds all combinations whose relations may hold. Each is a result with a
probability P. Find those with P of at least the threshold, and P.

Definitions. T_s is the time of the positive event u whose instants are uncertain, or without such
an event any time of the combination: all are exact then. Given T_s = t, a combination is a result
iff the relations among its positive events hold and no negated event stops it, and the negated
events are independent. P is the mean over T_s (correlation.event_query.absence).

Algorithm. For each combination, the events that may stop it are ranges of positions. Beside u,
relations to events with exact times become intervals of T_u at which the combination is not a
result (`stops`). The times at which an event with an uncertain instant stops the combination are a
window relative to T_s. Without u its ends are those of the combination. With u it is the same for
all combinations, unless relations to further events give it fixed ends (`boxes`).
`absence.decide_absences` decides.

One event, several aliases. An event may match several negated aliases. It has one instant, so it is
one candidate with the union of their windows. The event u itself may be a candidate of a negated
alias of its own stream: it stops the combination iff 0 is in the window, and T_u between the fixed
ends.

Proof: docs/proofs.md, P-QUERY-UNCERTAIN. Cost: as in `absence`; memory O(`CANDIDATES`) beside the
events of one combination.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.event_query.absence.barring import Barred
from correlation.event_query.absence.cuts import list_own_stops
from correlation.event_query.absence.deciding import DECIDED_BY, decide_absences
from correlation.event_query.absence.instants import (
    InstantTable,
    join_tables,
    make_table,
    take_instants,
)
from correlation.event_query.absence.position import Negated
from correlation.event_query.absence.windows import Windows
from correlation.event_query.evaluation.boxes import box_windows, list_boxes, relative_windows
from correlation.event_query.evaluation.compiled import CompiledQuery, Target
from correlation.event_query.evaluation.search import Located, Search
from correlation.event_query.evaluation.spans import list_spans
from correlation.event_query.evaluation.stops import list_gaps, list_stops
from correlation.event_query.evaluation.tables import Table

# Combinations are decided together as long as they have at most this number of candidates, each
# counted once for every clause of its alias.
CANDIDATES = 2**18
_POSITION = DECIDED_BY[0]
# Column of a time of all combinations without u: the end of their first event.
_FIRST_END = 1


@dataclass(frozen=True, slots=True)
class Probabilities:
    """Decides combinations of a query with uncertain instants.

    Parameters
    ----------
    query : CompiledQuery
        The query.
    search : Search
        Search among the events.
    threshold : Decimal
        Minimum probability of a result, above 0 and at most 1.
    counts : Counter of str
        Number of combinations decided in each way (`DECIDED_BY`), which the decisions increase.
    """

    query: CompiledQuery
    search: Search
    threshold: Decimal
    counts: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(DECIDED_BY, 0)))

    def decide(self, table: Table, stopped: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Mark the combinations with a probability below the threshold.

        Parameters
        ----------
        table : Table
            k combinations.
        stopped : ndarray of bool, shape (k,)
            Combinations that are stopped; further ones are marked.

        Returns
        -------
        ndarray of float64, shape (k,)
            P of the combinations that are not stopped, NaN of the others.
        """
        probability = np.full(len(table), np.nan)
        self.counts[_POSITION] += int(np.count_nonzero(stopped))
        rows = np.flatnonzero(~stopped)
        left = table.take(rows)
        gone = np.zeros(len(left), np.bool_)
        gaps = self._gaps(left, gone)
        located = list(self._locate(left))
        sizes = np.zeros(len(left), np.int64)
        for it in located:
            sizes += (it.end - it.begin + 1) * len(it.alias.spans or it.alias.boxes or ())
        for part in _split(sizes):
            few = _take(left, part)
            inside = slice(*np.searchsorted(gaps.owner, [part.start, part.stop]))
            barred = Barred(*(it[inside] for it in gaps))._replace(
                owner=gaps.owner[inside] - part.start
            )
            ways = [it.of(part) for it in located]
            probability[rows[part]] = self._decide_part(few, gone[part], ways, barred)
            stopped[rows[part]] |= gone[part]
        return probability

    def _gaps(self, table: Table, gone: NDArray[np.bool_]) -> Barred:
        """Return where the relations among positive events do not hold."""
        query = self.query
        if query.instant is None or query.domain is None:
            return Barred(*(np.zeros(0, np.int64),) * 3)
        return list_gaps(table.times, query.instant, query.domain, gone)

    def _locate(self, table: Table) -> Iterator[Located]:
        for _, alias in self.query.negated:
            if alias.has_chance:
                yield from self.search.locate(table, alias)

    def _decide_part(
        self, table: Table, gone: NDArray[np.bool_], located: Sequence[Located], gaps: Barred
    ) -> NDArray[np.float64]:
        """Mark the combinations of a part that are not results; return P of the others."""
        place = self.query.instant
        barred = [gaps]
        for it in located:
            alias = it.alias
            if not alias.uncertain and alias.spans is not None and place is not None:
                stops = alias.place, alias.spans
                rows = it.begin, it.end
                barred.append(list_stops(table.times, place, stops, it.view.groups, rows, gone))
        windows: dict[int, Windows] = {}
        negated: list[Negated] = []
        for it in located:
            if it.alias.uncertain:
                if id(it.alias) not in windows:
                    windows[id(it.alias)] = self._windows(table, it.alias)
                window = windows[id(it.alias)]
                negated += self._negated(table, it, window, gone, barred)
        decisions = decide_absences(
            self._positives(table),
            negated,
            self.threshold,
            Barred(*(np.concatenate(columns) for columns in zip(*barred, strict=True))),
        )
        ways = decisions.decided_by
        ways[gone] = DECIDED_BY.index(_POSITION)
        for way, count in zip(DECIDED_BY, np.bincount(ways, minlength=3).tolist(), strict=True):
            self.counts[way] += count
        gone |= ~decisions.reported
        return np.where(gone, np.nan, decisions.probability)

    def _windows(self, table: Table, alias: Target) -> Windows:
        """Return the window of T_r - T_s of each combination."""
        if alias.boxes is None:
            if alias.spans is None:
                raise TypeError("the alias has no intervals")
            spans = list_spans(table.times, alias.spans)
            return relative_windows(spans, table.times[:, _FIRST_END])
        if alias.boxes.fixed:
            return box_windows(list_boxes(table.times, alias.boxes))
        # All ends are relative to u, for all combinations.
        ends = list_boxes(table.times[:1], alias.boxes)[:, :, 0]
        return relative_windows(np.repeat(ends, len(table), axis=0), np.zeros(len(table), np.int64))

    def _negated(
        self,
        table: Table,
        located: Located,
        windows: Windows,
        gone: NDArray[np.bool_],
        barred: list[Barred],
    ) -> Iterator[Negated]:
        """Yield the candidates of a segment, without the events u themselves.

        These mark the combinations in `gone`, or with fixed ends append times of T_u to `barred`.
        """
        instants = located.view.instants(self.search.views, located.segment)
        begin, end = located.begin, located.end
        events = None
        streams = [alias.stream for _, alias in self.query.negated]
        if streams.count(located.alias.stream) > 1:
            # The event may match several aliases.
            events = self._first_number(located) + located.view.rows
        place = self.query.instant
        if place is not None and self.query.positive[place].stream == located.alias.stream:
            own = np.flatnonzero(table.segments[:, place] == located.number)
            # The position of each row; -1 of rows that are not candidates.
            positions = np.full(len(located.segment), -1, np.int64)
            positions[located.view.rows] = np.arange(len(located.view.rows))
            found = np.full(len(table), -1, np.int64)
            found[own] = positions[table.rows[own, place]]
            among = (found >= begin) & (found < end)
            if windows.cuts is None:
                gone |= among & _holds_zero(windows)
            else:
                first, last = 2 * place, 2 * place + 1
                exact = table.times[:, first] == table.times[:, last]
                barred.append(list_own_stops(windows, np.flatnonzero(among), exact))
            yield Negated(instants, np.where(among, found + 1, end), end, windows, events)
            end = np.where(among, found, end)
        yield Negated(instants, begin, end, windows, events)

    def _first_number(self, located: Located) -> int:
        """Return the number of the first event of a segment, among all segments of all streams."""
        names = sorted({alias.stream for _, alias in self.query.negated})
        before = 0
        for name in names:
            segments = [*self.search.buffered[name], *self.search.fresh[name]]
            if name == located.alias.stream:
                return before + sum(map(len, segments[: located.number]))
            before += sum(map(len, segments))
        raise ValueError(f"stream {located.alias.stream} is not a stream of a negated event")

    def _positives(self, table: Table) -> InstantTable:
        """Return the distribution of T_s of each combination."""
        place = self.query.instant
        if place is None:
            time = table.times[:, _FIRST_END]
            return make_table(time, time)
        stream = self.query.positive[place].stream
        segments = [*self.search.buffered[stream], *self.search.fresh[stream]]
        numbers = table.segments[:, place]
        order = np.argsort(numbers, kind="stable")
        parts = []
        for number in np.unique(numbers).tolist():
            rows = table.rows[numbers == number, place]
            parts.append(take_instants(self.search.views.instants(segments[number]), rows))
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return take_instants(join_tables(parts), back)


def _holds_zero(windows: Windows) -> NDArray[np.bool_]:
    """Return whether an event with the very time T_s is in the window."""
    inside = (windows.lo + windows.open_lo <= 0) & (windows.hi - windows.open_hi >= 0)
    return np.asarray(inside.any(axis=1), np.bool_)


def _split(sizes: Int64s) -> Iterator[slice]:
    """Yield parts of the combinations with at most `CANDIDATES` candidates, or of one."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, before + CANDIDATES, "right")), start + 1)
        yield slice(start, stop)
        start = stop


def _take(table: Table, part: slice) -> Table:
    return Table(*(getattr(table, name)[part] for name in Table.__slots__))
