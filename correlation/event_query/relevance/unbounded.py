"""Refusal of queries that need unbounded memory, with the relations that would mend them.

A query is refused if

- the keep function of an input is -inf: for some clause and some time t_i of the result,
  dist(v, t_i) = +inf, so the event may be part of a result, or stop one, at any later time;
- the lead of an input is -inf: for some clause dist(t_i, v) = +inf for all i, so an event at any
  later time may still make or stop the result, and no result ever becomes final;
- the time of the result is the begin of an event whose length is not bounded: the event may come at
  any time after it.

dist(v, p) is finite iff p can be reached from v in the constraint graph. A relation ``p <= v + C``
adds the edge v -> p, whatever C is. The weakest relations are searched: with `begin` on
the left side if the length of the event is bounded, and as few as possible. Relations found for
positive events are assumed when negated events are checked, since all of them hold together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from correlation.errors import FieldErrors, InvalidFieldError
from correlation.event_query.query import Extreme, Point, Shifted, Term
from correlation.event_query.relevance.closure import Closure
from correlation.event_query.relevance.inputs import Input
from correlation.event_query.relevance.normal_form import Node

_KEPT = "would be kept forever"
_OPEN = "may come at any time after the result, which is never final"
_LONG = "may end at any time after its begin, the time of the result, which is never final"


class UnboundedQueryError(InvalidFieldError):
    """A query would need unbounded memory, or its results would never be final.

    Parameters
    ----------
    place : int
        Place of the input among the events of the query.
    alias, stream : str
        The input.
    problem : str
        Why the input is not bounded.
    missing : sequence of (Point, Point)
        Missing relations ``p <= v + C``, as (p, v).
    hint : str
        Further remedy, or "".
    """

    def __init__(
        self,
        place: int,
        alias: str,
        stream: str,
        problem: str,
        missing: Sequence[tuple[Point, Point]],
        hint: str,
    ) -> None:
        relations = " and ".join(f"`{show_point(p)} <= {show_point(v)} + C`" for p, v in missing)
        super().__init__(
            f"events[{place}]",
            f"event {alias} of stream {stream} {problem}",
            f"add {relations} with a constant C{hint}",
        )
        self.alias = alias
        self.stream = stream
        self.missing = tuple(missing)


def show_point(point: Node) -> str:
    """Return a point as in the text of a query; `Latest` is written `alias.latest`."""
    return f"{point.alias}.rt.{point.side}" if isinstance(point, Point) else f"{point.alias}.latest"


def refuse_unbounded(inputs: Sequence[Input], time: Term) -> None:
    """Check that all leads and keep functions are finite.

    Parameters
    ----------
    inputs : sequence of Input
        All events of the query.
    time : Term
        Time of the result.

    Raises
    ------
    InvalidFieldError
        One `UnboundedQueryError` per input that is not bounded, or several together.
    """
    errors = FieldErrors()
    for error in _check_inputs(inputs, time):
        with errors:
            raise error
    errors.raise_all()


def _check_inputs(inputs: Sequence[Input], time: Term) -> Iterator[UnboundedQueryError]:
    """Yield the errors of the positive events, then those of each negated event."""
    places = {it.alias: place for place, it in enumerate(inputs)}
    positive = [it for it in inputs if not it.negated]
    added: list[tuple[Point, Point]] = []
    missing: dict[str, list[tuple[Point, Point]]] = {it.alias: [] for it in positive}
    for paths in _paths(positive[0], added):
        for v, p in _connect(paths, positive):
            missing[v.alias].append((_weakest_point(paths, p), Point(v.alias, "end")))
            _add(paths, missing[v.alias][-1], added)
    long = _lengths(positive, time, added)
    for it in positive:
        yield from _error(places[it.alias], it, positive, missing[it.alias], _KEPT)
        lengths = [long[it.alias]] if it.alias in long else []
        yield from _error(places[it.alias], it, positive, lengths, _LONG)
    for it in inputs:
        if not it.negated:
            continue
        kept: list[tuple[Point, Point]] = []
        open_ended: list[tuple[Point, Point]] = []
        for paths in _paths(it, added):
            if not all(paths.reaches(it.stamp, to.stamp) for to in positive):
                kept.append((_weakest_point(paths, positive[0]), Point(it.alias, "end")))
                _add(paths, kept[-1], added)
            if not any(paths.reaches(to.stamp, it.stamp) for to in positive):
                # The first positive event that the relations mention.
                to = next((to for to in positive if paths.mentions(it, to)), positive[0])
                open_ended.append((_weakest_point(paths, it), Point(to.alias, "end")))
                _add(paths, open_ended[-1], added)
        yield from _error(places[it.alias], it, positive, kept, _KEPT)
        yield from _error(places[it.alias], it, positive, open_ended, _OPEN)


def _lengths(
    positive: Sequence[Input], time: Term, added: list[tuple[Point, Point]]
) -> dict[str, tuple[Point, Point]]:
    """Return the missing bounds of lengths, by alias; all ends are in a finite distance."""
    found: dict[str, tuple[Point, Point]] = {}
    inputs = {it.alias: it for it in positive}
    for paths in _paths(positive[0], added):
        for begin in _unbounded_begins(paths, time, inputs):
            found[begin.alias] = Point(begin.alias, "end"), begin
            _add(paths, found[begin.alias], added)
    return found


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


def _error(
    place: int,
    it: Input,
    positive: Sequence[Input],
    missing: Sequence[tuple[Point, Point]],
    problem: str,
) -> Iterator[UnboundedQueryError]:
    if missing:
        hint = _hint(it, positive, missing)
        yield UnboundedQueryError(place, it.alias, it.times.stream, problem, missing, hint)


class _Paths:
    """Points that reach each other in the constraint graph of a clause, with added relations.

    Parameters
    ----------
    closure : Closure
        Closure of the clause.
    """

    def __init__(self, closure: Closure) -> None:
        self._closure = closure
        self._rows = {point: row for row, point in enumerate(closure.points)}
        # A bit for each point that is reached.
        self._reached = [
            sum(1 << row for row, bound in enumerate(bounds) if bound < math.inf)
            for bounds in closure.rows()
        ]

    def reaches(self, v: Node, p: Node) -> bool:
        """Return whether p is reached from v."""
        return bool(self._reached[self._rows[v]] >> self._rows[p] & 1)

    def mentions(self, it: Input, to: Input) -> bool:
        """Return whether the clause bounds the time of an event by that of another."""
        return self._closure.dist(it.stamp, to.stamp) < math.inf

    def add(self, p: Point, v: Point) -> None:
        """Add a relation ``p <= v + C``; points of other clauses are ignored."""
        if p in self._rows and v in self._rows and not self.reaches(v, p):
            source, more = self._rows[v], self._reached[self._rows[p]]
            self._reached = [it | more if it >> source & 1 else it for it in self._reached]


def _paths(it: Input, added: Sequence[tuple[Point, Point]]) -> Iterator[_Paths]:
    """Yield the paths of each clause of an event, with the relations added so far."""
    for closure in it.closures:
        if not closure.contradictory:
            paths = _Paths(closure)
            for p, v in added:
                paths.add(p, v)
            yield paths


def _add(paths: _Paths, relation: tuple[Point, Point], added: list[tuple[Point, Point]]) -> None:
    paths.add(*relation)
    added.append(relation)


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


def _hint(it: Input, positive: Sequence[Input], missing: Sequence[tuple[Point, Point]]) -> str:
    """Return the further remedy if an end is not bounded although its begin is."""
    by_alias = {event.alias: event for event in [*positive, it]}
    for p, v in missing:
        begin = Point(p.alias, "begin")
        bounded = all(c.dist(v, begin) < math.inf for c in it.closures if not c.contradictory)
        if p.side == "end" and bounded:
            return f", or declare the max_length of stream {by_alias[p.alias].times.stream}"
    return ""
