"""Relations that are missing in a query that needs unbounded memory: as few as suffice.

Definition. A relation ``p <= v + C`` adds the edge v -> p to the constraint graph of each clause
that has both points. A query is bounded iff in each clause

- the ends of all positive events reach each other,
- no begin makes the time of a result arbitrarily early: it reaches its end,
- the end of a negated event reaches that of each positive event, and is reached from one.

Algorithm. Clauses are visited in turn, and the relations found in one are assumed in the next. A
relation of a later clause may mend an earlier one as well. Therefore each relation is then left out
if all clauses are bounded without it: further relations never make a query unbounded, so none of
those that remain can be left out. The relations of a negated event do not matter to other events;
those of positive events are assumed when negated ones are checked, since all of them hold together.

Cost. Clauses whose points reach each other alike are visited once. O(m c (m k + n²)) sets of points
for m relations, c clauses, k points and n positive events.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal, NamedTuple

from correlation.event_query.query import Extreme, Point, Shifted, Term
from correlation.event_query.relevance.closure import Closure
from correlation.event_query.relevance.inputs import Input
from correlation.event_query.relevance.normal_form import Node

# An event would be kept forever; it may come at any time after the result; or its begin is the time
# of the result, and its length is not bounded.
Problem = Literal["kept", "open", "long"]


class Missing(NamedTuple):
    """A missing relation ``p <= v + C``, and the event that is not bounded without it."""

    alias: str
    problem: Problem
    p: Point
    v: Point


def missing_of_positive(positive: Sequence[Input], time: Term) -> list[Missing]:
    """Find the relations that positive events miss.

    Parameters
    ----------
    positive : sequence of Input
        The positive events.
    time : Term
        Time of the result.
    """
    inputs = {it.alias: it for it in positive}

    def connect(paths: _Paths) -> Iterator[Missing]:
        for v, p in _connect(paths, positive):
            yield Missing(v.alias, "kept", _weakest_point(paths, p), Point(v.alias, "end"))

    def limit_lengths(paths: _Paths) -> Iterator[Missing]:
        for begin in dict.fromkeys(_unbounded_begins(paths, time, inputs)):
            yield Missing(begin.alias, "long", Point(begin.alias, "end"), begin)

    return _search(positive[0], (connect, limit_lengths), ())


def missing_of_negated(
    it: Input, positive: Sequence[Input], assumed: Sequence[Missing]
) -> list[Missing]:
    """Find the relations that a negated event misses.

    Parameters
    ----------
    it : Input
        The negated event.
    positive : sequence of Input
        The positive events.
    assumed : sequence of Missing
        Relations that the positive events miss.
    """

    def bound(paths: _Paths) -> Iterator[Missing]:
        if not all(_reach(paths, it, to) for to in positive):
            p = _weakest_point(paths, positive[0])
            yield Missing(it.alias, "kept", p, Point(it.alias, "end"))
        if not any(_reach(paths, to, it) for to in positive):
            # The first positive event that the relations mention.
            to = next((to for to in positive if paths.mentions(it, to)), positive[0])
            yield Missing(it.alias, "open", _weakest_point(paths, it), Point(to.alias, "end"))

    return _search(it, (bound,), assumed)


class _Paths:
    """Points that reach each other in the constraint graph of a clause, with added relations.

    Parameters
    ----------
    rows : mapping of Node to int
        Number of each point.
    given : tuple of int
        Points that each point reaches by the clause, a bit for each of them.
    added : iterable of Missing
        Added relations; those with points of other clauses are ignored.
    """

    def __init__(
        self, rows: Mapping[Node, int], given: tuple[int, ...], added: Sequence[Missing]
    ) -> None:
        self._rows = rows
        self._given = given
        self._reached = list(given)
        for it in added:
            self.add(it)

    def reaches(self, v: Node, p: Node) -> bool:
        """Return whether p is reached from v."""
        return bool(self._reached[self._rows[v]] >> self._rows[p] & 1)

    def mentions(self, it: Input, to: Input) -> bool:
        """Return whether the clause bounds the time of an event by that of another."""
        return bool(self._given[self._rows[it.stamp]] >> self._rows[to.stamp] & 1)

    def add(self, it: Missing) -> None:
        """Add a relation; points of other clauses are ignored."""
        if it.p in self._rows and it.v in self._rows and not self.reaches(it.v, it.p):
            source, more = self._rows[it.v], self._reached[self._rows[it.p]]
            self._reached = [it | more if it >> source & 1 else it for it in self._reached]


# Yields the relations that the paths of a clause miss; each is added before the next is asked for.
_Rule = Callable[[_Paths], Iterator[Missing]]


def _search(it: Input, rules: Sequence[_Rule], assumed: Sequence[Missing]) -> list[Missing]:
    """Return relations that an event misses, none of which can be left out."""
    graphs = _graphs(it)
    found: list[Missing] = []
    for rule in rules:
        for rows, given in graphs:
            paths = _Paths(rows, given, (*assumed, *found))
            for one in rule(paths):
                paths.add(one)
                found.append(one)

    def is_bounded(by: Sequence[Missing]) -> bool:
        return not any(
            next(rule(_Paths(*graph, (*assumed, *by))), None) for graph in graphs for rule in rules
        )

    for one in tuple(found):
        rest = [other for other in found if other != one]
        if is_bounded(rest):
            found = rest
    return found


def _graphs(it: Input) -> list[tuple[dict[Node, int], tuple[int, ...]]]:
    """Return the points of each clause of an event and the points that they reach, once each."""
    found: dict[tuple[tuple[Node, ...], tuple[int, ...]], None] = {}
    for closure in it.closures:
        if not closure.contradictory:
            found[closure.points, _reached(closure)] = None
    return [({point: n for n, point in enumerate(points)}, given) for points, given in found]


def _reached(closure: Closure) -> tuple[int, ...]:
    """Return the points that each point reaches, a bit for each of them."""
    return tuple(
        sum(1 << row for row, bound in enumerate(bounds) if bound < math.inf)
        for bounds in closure.rows()
    )


def _unbounded_begins(paths: _Paths, time: Term, inputs: Mapping[str, Input]) -> list[Point]:
    """Return begins of events without max length that make a time arbitrarily early."""
    match time:
        case Shifted(inner, _):
            return _unbounded_begins(paths, inner, inputs)
        case Extreme(kind, terms):
            found = [_unbounded_begins(paths, it, inputs) for it in terms]
            # A maximum is as late as one of its terms.
            return min(found, key=len) if kind == "max" else list(chain.from_iterable(found))
    it = inputs[time.alias]
    is_bounded = it.times.uncertain or paths.reaches(time, it.stamp)
    return [] if is_bounded else [time]


def _connect(paths: _Paths, positive: Sequence[Input]) -> list[tuple[Input, Input]]:
    """Return as few pairs (v, p) as possible such that edges v -> p connect all events."""
    # The first event of each component.
    first: list[Input] = []
    for it in positive:
        if not any(_reach(paths, it, to) and _reach(paths, to, it) for to in first):
            first.append(it)
    if len(first) == 1:
        return []
    sources = [to for to in first if not any(_reach(paths, it, to) for it in first if it != to)]
    sinks = [it for it in first if not any(_reach(paths, it, to) for to in first if it != to)]
    heads: list[Input] = []
    tails: list[Input] = []
    for head in sources:
        tail = next((it for it in sinks if it not in tails and _reach(paths, head, it)), None)
        if tail is not None:
            heads.append(head)
            tails.append(tail)
    pairs = list(zip(tails, [*heads[1:], heads[0]], strict=True))
    sources = [it for it in sources if it not in heads]
    sinks = [it for it in sinks if it not in tails]
    # A source reaches a tail, a sink is reached from a head: the others are joined in pairs, and
    # those that remain to the cycle.
    for place in range(max(len(sources), len(sinks))):
        v = sinks[place] if place < len(sinks) else tails[0]
        p = sources[place] if place < len(sources) else heads[0]
        pairs.append((v, p))
    return pairs


def _reach(paths: _Paths, it: Input, to: Input) -> bool:
    return paths.reaches(it.stamp, to.stamp)


def _weakest_point(paths: _Paths, it: Input) -> Point:
    """Return `begin` if a bound of it bounds the end, otherwise `end`."""
    begin = Point(it.alias, "begin")
    return begin if paths.reaches(begin, it.stamp) else Point(it.alias, "end")
