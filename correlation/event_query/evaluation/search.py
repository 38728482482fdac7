"""Search for the combinations that a block completes, and for the events that stop them.

Definitions. A combination of time T is *due* in a block if no block before has decided it, and T is
at most the bound P of the published results after the block. Let R be the bound before. A
combination is due if

- R < T <= P. If T is the maximum of shifted ends, by default of the ends of all positive events,
  its *pivot* is the first alias of the maximum with a shifted end in (R, P]; those of the aliases
  before it are at most R, those of the aliases after it at most P. For any other T, the pivot is
  one alias of the query, whose range contains the events of all such combinations (`result_time`),
  and T is compared at the end; or
- T <= R and it has an event of the block (a late event): its pivot is the first alias with such an
  event; the aliases before it have buffered events.

Every due combination has one pivot, so it is found once.

Algorithm. The pivot's events are joined with those of the other aliases (`compiled.Route`), in
tables of at most `CAPACITY` combinations. Tables are produced one by one, depth first, so the
search needs memory for `CAPACITY` rows per alias, whatever the number of combinations. The results
of a block are kept until it ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.buffers.segment import Segment
from correlation.event_query.evaluation.clauses import NO_BOUND
from correlation.event_query.evaluation.compiled import CompiledQuery, Route, Target
from correlation.event_query.evaluation.kernels import (
    LOOKED_AT,
    ROW,
    _filter_kernel,
    _join_kernel,
    _locate_kernel,
    _stop_kernel,
)
from correlation.event_query.evaluation.tables import Piece, Table
from correlation.event_query.evaluation.values import read_only
from correlation.event_query.evaluation.views import View, Views
from correlation.limits import UNKNOWN_WATERMARK

# Maximum number of rows of a table.
CAPACITY = 2**15
# First and last time, in µs.
Bounds = tuple[int, int]


@dataclass(slots=True)
class Counts:
    """Numbers of combinations and of events of negated aliases that were compared."""

    combinations: int = 0
    negated: int = 0


class Located(NamedTuple):
    """Events of one segment that may stop k combinations.

    Attributes
    ----------
    alias : Target
        Their negated alias.
    number : int
        Number of the segment in the list of its stream.
    segment : Segment
        The segment.
    view : View
        Its view.
    begin, end : int64[k]
        Combination i has the positions begin[i] to end[i] - 1 of the view.
    """

    alias: Target
    number: int
    segment: Segment
    view: View
    begin: Int64s
    end: Int64s

    def of(self, rows: slice) -> Located:
        """Return the events of some combinations."""
        return self._replace(begin=self.begin[rows], end=self.end[rows])


@dataclass(frozen=True, slots=True)
class Search:
    """Search among the buffered events and those of a block.

    Parameters
    ----------
    query : CompiledQuery
        The query.
    buffered, fresh : mapping of stream to sequence of Segment
        Buffered segments of each stream, and at most one of the block.
    views : Views
        Views of the segments.
    counts : Counts
        Counts, which the search increases.
    """

    query: CompiledQuery
    buffered: Mapping[str, Sequence[Segment]]
    fresh: Mapping[str, Sequence[Segment]]
    views: Views
    counts: Counts = field(default_factory=Counts)

    def combinations(self, published: int, until: int) -> Iterator[Table]:
        """Yield the due combinations, including those that an event stops.

        Parameters
        ----------
        published : int
            R, in µs.
        until : int
            P, at least R, in µs.
        """
        yield from self.due(published, until)
        yield from self.late(published)

    def due(self, first: int, last: int) -> Iterator[Table]:
        """Yield the combinations of a time after `first`, and at most `last`, in µs."""
        if last <= first:
            return
        time = self.query.time
        pivots = time.pivots()
        for place in pivots if self.query.routes else ():
            route = self.query.routes[place]
            others = {
                it.place: (-NO_BOUND, time.until(it.place, first if it.place < place else last))
                if it.place in pivots
                else time.between(it.place, first, last)
                for it in route.joined
            }
            tables = self._follow(route, time.between(place, first, last), others, set())
            yield from self._within(tables, first, last)

    def late(self, published: int) -> Iterator[Table]:
        """Yield the combinations of a time of at most `published` that have an event of the block.

        Parameters
        ----------
        published : int
            R, in µs.
        """
        for place, route in enumerate(self.query.routes):
            if self.fresh[route.pivot.stream]:
                time = self.query.time
                old = {
                    it.place: (-NO_BOUND, time.until(it.place, published)) for it in route.joined
                }
                before = {it for it in old if it < place}
                pivot = -NO_BOUND, time.until(place, published)
                tables = self._follow(route, pivot, old, before, late=True)
                yield from self._within(tables, -NO_BOUND, published)

    def _within(self, tables: Iterator[Table], first: int, last: int) -> Iterator[Table]:
        """Yield the combinations with first < T <= last; those of a maximum of ends all are."""
        if self.query.time.shifts is not None:
            yield from tables
            return
        for table in tables:
            time = self.query.time.of(table.times)
            found = table.take(np.flatnonzero((time > first) & (time <= last)))
            if len(found):
                yield found

    def mark_stopped(self, table: Table, alias: Target, stopped: NDArray[np.bool_]) -> None:
        """Mark the combinations that an event of a negated alias stops."""
        numbers = self.group_numbers(table, alias)
        for view in self.views_of(alias):
            self.counts.negated += _stop_kernel(
                numbers,
                table.times,
                alias.place,
                view.groups,
                alias.ranges,
                alias.clauses,
                (view.first, view.last),
                stopped,
            )

    def group_numbers(self, table: Table, target: Target) -> Int64s:
        """Return the group of each combination in the views of an alias, int64[k]."""
        columns = [table.numbers[:, column] for column in target.shared]
        return read_only(self.views.interner.pack(columns, len(table)))

    def views_of(self, target: Target) -> Iterator[View]:
        """Yield the views of an alias that have candidates."""
        for _, segment in self._segments(target.stream):
            view = self.views.view(segment, target.key)
            if view is not None:
                yield view

    def locate(self, table: Table, alias: Target) -> Iterator[Located]:
        """Yield the events of a negated alias that may stop combinations, by segment."""
        numbers = self.group_numbers(table, alias)
        for number, segment in self._segments(alias.stream):
            view = self.views.view(segment, alias.key)
            if view is not None:
                begin, end = np.empty(len(table), np.int64), np.empty(len(table), np.int64)
                _locate_kernel(
                    numbers,
                    table.times,
                    view.groups,
                    alias.ranges,
                    (view.first, view.last),
                    begin,
                    end,
                )
                if (begin < end).any():
                    self.counts.negated += int((end - begin).sum())
                    yield Located(alias, number, segment, view, begin, end)

    def last_uncertain(self, stream: str) -> int:
        """Return the max `latest` of a stream's events that are not exact instants, in µs."""
        found = (self.views.last_uncertain(it) for _, it in self._segments(stream))
        return max(found, default=UNKNOWN_WATERMARK)

    def _segments(self, stream: str, *, fresh: bool = True) -> list[tuple[int, Segment]]:
        """Return the numbered segments of a stream; that of the block is the last one."""
        return list(enumerate([*self.buffered[stream], *(self.fresh[stream] if fresh else ())]))

    def _follow(
        self,
        route: Route,
        pivot: Bounds,
        others: Mapping[int, Bounds],
        buffered_only: set[int],
        *,
        late: bool = False,
    ) -> Iterator[Table]:
        """Yield the combinations of a route.

        Parameters
        ----------
        route : Route
            The pivot and the joins.
        pivot : (int, int)
            First and last time of the pivot's events.
        others : mapping of int to (int, int)
            First and last time of the events of the other aliases.
        buffered_only : set of int
            Aliases that take no event of the block.
        late : bool
            Whether the pivot takes only events of the block.
        """
        tables = self._begin(route.pivot, pivot, late=late)
        for target in route.joined:
            segments = self._segments(target.stream, fresh=target.place not in buffered_only)
            tables = self._join(tables, target, segments, others[target.place])
        return tables

    def _begin(self, pivot: Target, bounds: Bounds, *, late: bool) -> Iterator[Table]:
        """Yield tables of the pivot's events."""
        buffered = len(self.buffered[pivot.stream])
        pieces: list[Piece] = []
        size = 0
        for number, segment in self._segments(pivot.stream):
            if late and number < buffered:
                continue
            view = _meet(self.views, segment, pivot, bounds)
            if view is None:
                continue
            positions = view.between(*bounds, again=number < buffered)
            for start in range(0, len(positions), CAPACITY):
                part = positions[start : start + CAPACITY]
                if size + len(part) > CAPACITY:
                    yield from self._make(pivot, pieces, size)
                    pieces, size = [], 0
                pieces.append(Piece(number, segment, view, part))
                size += len(part)
        yield from self._make(pivot, pieces, size)

    def _make(self, pivot: Target, pieces: Sequence[Piece], size: int) -> Iterator[Table]:
        """Yield a table of the pivot's events that satisfy the relations of the pivot alone."""
        if not size:
            return
        query = self.query
        self.counts.combinations += size
        table = Table.empty(size, len(query.positive), len(query.variables) + query.keyed)
        table.set_events(pivot.place, pieces, self.views, pivot.new, key=query.keyed)
        if not pivot.clauses.always_hold:
            holds = np.zeros(size, np.bool_)
            _filter_kernel(table.times, pivot.clauses, holds)
            table = table.take(np.flatnonzero(holds))
        if len(table):
            yield table

    def _join(
        self,
        tables: Iterator[Table],
        target: Target,
        segments: Sequence[tuple[int, Segment]],
        bounds: Bounds,
    ) -> Iterator[Table]:
        """Yield the combinations of tables with the events of one more alias."""
        found = np.empty((CAPACITY, 2), np.int64)
        for table in tables:
            numbers = self.group_numbers(table, target)
            pieces: list[Piece] = []
            filled = 0
            for number, segment in segments:
                view = _meet(self.views, segment, target, bounds)
                if view is None:
                    continue
                at = np.array([0, -1, 0], np.int64)
                while at[ROW] < len(table):
                    start = filled
                    filled = _join_kernel(
                        numbers,
                        table.times,
                        target.place,
                        view.groups,
                        target.ranges,
                        target.clauses,
                        (max(bounds[0], view.first), min(bounds[1], view.last)),
                        at,
                        found,
                        filled,
                    )
                    pieces.append(Piece(number, segment, view, found[start:filled, 1].copy()))
                    if filled == CAPACITY:
                        yield self._extend(table, target, pieces, found[:filled, 0])
                        pieces, filled = [], 0
                self.counts.combinations += int(at[LOOKED_AT])
            if filled:
                yield self._extend(table, target, pieces, found[:filled, 0])

    def _extend(self, table: Table, target: Target, pieces: Sequence[Piece], rows: Int64s) -> Table:
        extended = table.take(rows)
        extended.set_events(target.place, pieces, self.views, target.new, key=False)
        return extended


def _meet(views: Views, segment: Segment, target: Target, bounds: Bounds) -> View | None:
    """Return the view of a segment, or None if it has no candidate in a range of times."""
    if segment.min_latest > bounds[1] or segment.max_latest < bounds[0]:
        return None
    view = views.view(segment, target.key)
    if view is None or view.first > bounds[1] or view.last < bounds[0]:
        return None
    return view
