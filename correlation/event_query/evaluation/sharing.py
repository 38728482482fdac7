"""Work of a block that event queries share: combinations, and the events that stop them.

Problem. Many queries on the same streams have equal positive parts and differ in their negated
events. Each publishes the results of its own range of times. Find their combinations once, and
search the events of equal negated parts once.

Algorithm. Before the first query of a block is evaluated, each query states its *wish*: its form
and the range (R, P] of the times that it decides (`search`). Wishes with equal positive parts are a
*family*. Wishes of a family whose ranges overlap are a *group*, with the hull of the ranges. If the
ranges are together `_GAIN` times as long as the hull, the combinations of the hull are found once
and sorted by time: those of a query are a slice. Negated parts that two queries of a group have in
common, or whose nearest events decide (`nearest`), are searched once for all combinations of the
group. Everything else is done by each query alone.

The events of a block do not change while it is evaluated, and a combination is in the range of a
query iff its time is. So the results are those of the queries alone (docs/proofs.md,
P-QUERY-SHARED). After a reset the queries work alone until all seals have ended (`release`).

Memory. At most `SHARED_ROWS` combinations at a time; those of a group are released with its last
query, all with the block.

Cost. One query over the hull, once; then O(k) per query with k combinations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.event_query.evaluation.clauses import NO_BOUND
from correlation.event_query.evaluation.compiled import CompiledQuery, Target
from correlation.event_query.evaluation.nearest import (
    Anchor,
    _first_event_kernel,
    _last_event_kernel,
)
from correlation.event_query.evaluation.search import Search
from correlation.event_query.evaluation.tables import Table

# Maximum number of shared combinations that exist at a time in a block.
SHARED_ROWS = 2**20
# Ranges that together are this many times as long as their hull are worth one search.
_GAIN = 1.5


@dataclass(frozen=True, slots=True)
class Stopper:
    """A negated alias in a form that is comparable between queries.

    Parameters
    ----------
    target : Target
        How its events are searched.
    anchor : Anchor or None
        The anchor, if the nearest event decides.
    content : str
        Equal for aliases that need the same search.
    """

    target: Target
    anchor: Anchor | None
    content: str


@dataclass(frozen=True, slots=True)
class Form:
    """A query in a form that is comparable between queries.

    Parameters
    ----------
    family : str
        Equal for queries with equal positive parts.
    stoppers : tuple of Stopper
        Its negated aliases.
    """

    family: str
    stoppers: tuple[Stopper, ...]

    @classmethod
    def of_query(cls, query: CompiledQuery, is_exact: Callable[[str], bool]) -> Form:
        """Return the form of a query.

        Parameters
        ----------
        query : CompiledQuery
            The query.
        is_exact : callable
            Returns whether the events of a stream are exact instants.
        """
        stoppers = []
        instants = [place for place, it in enumerate(query.positive) if is_exact(it.stream)]
        for _, target in query.negated:
            anchor = Anchor.of_target(target, instants) if is_exact(target.stream) else None
            searched: Hashable = (target.ranges, target.clauses) if anchor is None else ()
            of = (target.stream, target.key, target.shared, searched)
            content = repr((_content(of), None if anchor is None else anchor.content()))
            stoppers.append(Stopper(target, anchor, content))
        size = len(query.positive), len(query.variables)
        family = (query.keyed, size, query.routes, query.time)
        return cls(repr(_content(family)), tuple(stoppers))

    def contents(self) -> set[str]:
        """Return the contents of its negated aliases."""
        return {it.content for it in self.stoppers}


@dataclass(frozen=True, slots=True)
class Wish:
    """The combinations that a query decides in a block.

    Parameters
    ----------
    form : Form
        Its form.
    first, last : int
        Combinations with first < T <= last, in µs.
    """

    form: Form
    first: int
    last: int


class Sharing:
    """Shared work of the queries of a block.

    Parameters
    ----------
    wishes : iterable of Wish
        Wishes of all queries of the block.
    """

    def __init__(self, wishes: Iterable[Wish]) -> None:
        families: dict[str, list[Wish]] = {}
        for it in wishes:
            if it.first < it.last:
                families.setdefault(it.form.family, []).append(it)
        self._groups = {family: list(_group(found)) for family, found in families.items()}
        self._free = SHARED_ROWS

    def due(self, wish: Wish, search: Search) -> Table | None:
        """Return the due combinations that no event stops, without late ones, by their times.

        None: the query searches alone.

        Parameters
        ----------
        wish : Wish
            The wish that the query stated; each wish is granted once.
        search : Search
            Search of the query among the events of the block; its counts are increased.
        """
        groups = self._groups.get(wish.form.family, ())
        group = next((it for it in groups if it.first <= wish.first < it.last), None)
        if group is None or wish.first >= wish.last:
            return None
        if group.combinations is None:
            group.combinations = _search_all(group, search, self._free)
            if group.combinations is None:
                self._groups[wish.form.family].remove(group)
                return None
            self._free -= len(group.combinations)
        found = group.combinations.due(wish, search, group.demand)
        group.waiting -= 1
        if not group.waiting:
            self._free += len(group.combinations)
            self._groups[wish.form.family].remove(group)
        return found


class _Group:
    """Wishes with equal positive parts whose ranges overlap."""

    __slots__ = ("combinations", "demand", "first", "last", "waiting")

    def __init__(self, wishes: Sequence[Wish]) -> None:
        self.first = min(it.first for it in wishes)
        self.last = max(it.last for it in wishes)
        self.waiting = len(wishes)
        # Number of queries that need each search of negated events.
        self.demand = Counter(chain.from_iterable(it.form.contents() for it in wishes))
        self.combinations: _Combinations | None = None


class _Combinations:
    """Combinations of a group, the order of their times, and what stops them."""

    def __init__(self, table: Table, time: Int64s) -> None:
        self._table = table
        self._order = np.argsort(time)
        self._time = time[self._order]
        # In the order of the times.
        self._columns: dict[int, Int64s] = {}
        self._nearest: dict[str, Int64s] = {}
        self._stopped: dict[str, NDArray[np.bool_]] = {}

    def __len__(self) -> int:
        return len(self._time)

    def due(self, wish: Wish, search: Search, demand: Counter[str]) -> Table:
        """Return the combinations of a wish that no event stops."""
        low, high = np.searchsorted(self._time, [wish.first, wish.last], "right").tolist()
        part = slice(low, high)
        rows = self._order[part]
        search.counts.combinations += len(rows)
        if not len(rows):
            return self._table.take(rows)
        shared = [it for it in wish.form.stoppers if demand[it.content] > 1]
        if shared:
            stopped = reduce(np.logical_or, (self._marked(it, search, part) for it in shared))
            rows = rows[np.flatnonzero(~stopped)]
        table = self._table.take(rows)
        alone = [it.target for it in wish.form.stoppers if demand[it.content] == 1]
        if alone and len(rows):
            stopped = np.zeros(len(rows), np.bool_)
            for target in alone:
                search.mark_stopped(table, target, stopped)
            table = table.take(np.flatnonzero(~stopped))
        return table

    def _marked(self, stopper: Stopper, search: Search, part: slice) -> NDArray[np.bool_]:
        """Return whether an event of a negated alias stops each combination of a part."""
        if stopper.anchor is None:
            return self._all_stopped(stopper, search)[part]
        nearest = self._find_nearest(stopper, stopper.anchor, search)
        return stopper.anchor.stop(nearest[part], lambda place: self._column(place)[part])

    def _all_stopped(self, stopper: Stopper, search: Search) -> NDArray[np.bool_]:
        """Return whether an event of a negated alias stops each combination."""
        if stopper.content not in self._stopped:
            stopped = np.zeros(len(self), np.bool_)
            search.mark_stopped(self._table, stopper.target, stopped)
            self._stopped[stopper.content] = stopped[self._order]
        return self._stopped[stopper.content]

    def _find_nearest(self, stopper: Stopper, anchor: Anchor, search: Search) -> Int64s:
        """Return the time of the nearest event of a negated alias for each combination."""
        if stopper.content not in self._nearest:
            # In the order in which they were found, by segment and group: searches are faster.
            numbers = search.group_numbers(self._table, stopper.target)
            start = -NO_BOUND if anchor.is_first else NO_BOUND
            limits = anchor.limits(lambda place: self._table.times[:, place])
            if limits is None:
                limits = np.full(len(self), start, np.int64)
            found = np.full(len(self), -start, np.int64)
            kernel = _first_event_kernel if anchor.is_first else _last_event_kernel
            for view in search.views_of(stopper.target):
                search.counts.negated += kernel(
                    numbers, limits, view.groups, view.first, view.last, found
                )
            self._nearest[stopper.content] = found[self._order]
        return self._nearest[stopper.content]

    def _column(self, place: int) -> Int64s:
        """Return a column of the times."""
        if place not in self._columns:
            self._columns[place] = self._table.times[self._order, place]
        return self._columns[place]


def _group(wishes: Sequence[Wish]) -> Iterator[_Group]:
    """Yield the groups of a family that are worth one search."""
    found: list[list[Wish]] = []
    last = 0
    for it in sorted(wishes, key=lambda wish: wish.first):
        if found and it.first < last:
            found[-1].append(it)
            last = max(last, it.last)
        else:
            found.append([it])
            last = it.last
    for part in found:
        hull = max(it.last for it in part) - part[0].first
        if len(part) > 1 and sum(it.last - it.first for it in part) >= _GAIN * hull:
            yield _Group(part)


def _search_all(group: _Group, search: Search, free: int) -> _Combinations | None:
    """Return the combinations of a group; None if they are too many."""
    alone = Search(search.query, search.buffered, search.fresh, search.views)
    tables: list[Table] = []
    for table in alone.due(group.first, group.last):
        tables.append(table)
        free -= len(table)
        if free < 0:
            return None
    query = search.query
    empty = Table.empty(0, len(query.positive), len(query.variables) + query.keyed)
    table = Table.concat([empty, *tables])
    return _Combinations(table, query.time.of(table.times))


def _content(value: Any) -> Any:  # noqa: ANN401 - any part of a compiled query
    """Return a value whose representation is equal for equal parts of compiled queries."""
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if isinstance(value, tuple):
        return tuple(map(_content, value))
    if is_dataclass(value):
        return tuple(_content(getattr(value, it.name)) for it in fields(value))
    return value
