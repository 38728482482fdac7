"""Refusal of queries that need unbounded memory, with the relations that would mend them.

A query is refused if

- the keep function of an input is -inf: for some clause and some time t_i of the result,
  dist(v, t_i) = +inf, so the event may be part of a result, or stop one, at any later time;
- the lead of an input is -inf: for some clause dist(t_i, v) = +inf for all i, so an event at any
  later time may still make or stop the result, and no result ever becomes final.

dist(v, p) is finite iff p can be reached from v in the constraint graph. A relation ``p <= v + C``
adds the edge v -> p, whatever C is. Per input the weakest relations are searched: with `begin` on
the left side if the length of the event is bounded, and as few as possible. Relations found for
positive events are assumed when negated events are checked, since all of them hold together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from correlation.errors import FieldErrors, InvalidFieldError
from correlation.event_query.query import Point
from correlation.event_query.relevance.closure import Closure
from correlation.event_query.relevance.inputs import Input
from correlation.event_query.relevance.normal_form import Atom, Node

# Any constant keeps the same points reachable; this one contradicts no other relation.
_LARGE_US = 2**80


class UnboundedQueryError(InvalidFieldError):
    """A query would need unbounded memory, or its results would never be final.

    Parameters
    ----------
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
        alias: str,
        stream: str,
        problem: str,
        missing: Sequence[tuple[Point, Point]],
        hint: str,
    ) -> None:
        relations = " and ".join(f"`{show_point(p)} <= {show_point(v)} + C`" for p, v in missing)
        super().__init__(
            "where",
            f"event {alias} of stream {stream} {problem}",
            f"add {relations} with a constant C{hint}",
        )
        self.alias = alias
        self.stream = stream
        self.missing = tuple(missing)


def show_point(point: Node) -> str:
    """Return a point as in the text of a query; `Latest` is written `alias.latest`."""
    return f"{point.alias}.rt.{point.side}" if isinstance(point, Point) else f"{point.alias}.latest"


def refuse_unbounded(inputs: Sequence[Input]) -> None:
    """Check that all leads and keep functions are finite.

    Parameters
    ----------
    inputs : sequence of Input
        All events of the query.

    Raises
    ------
    InvalidFieldError
        One `UnboundedQueryError` per input that is not bounded, or several together.
    """
    positive = [it for it in inputs if not it.negated]
    errors = FieldErrors()
    added: list[Atom] = []
    for it in [*positive, *(it for it in inputs if it.negated)]:
        for error in _check_input(it, positive, added):
            with errors:
                raise error
    errors.raise_all()


def _check_input(
    it: Input, positive: Sequence[Input], added: list[Atom]
) -> Iterator[UnboundedQueryError]:
    """Yield the errors of an input; append the relations that mend them to `added`."""
    for missing_of, problem in (
        (_missing_for_keep, "would be kept forever"),
        (_missing_for_lead, "may come at any time after the result, which is never final"),
    ):
        missing: list[tuple[Point, Point]] = []
        for closure in it.closures:
            if closure.contradictory:
                continue
            known = set(closure.points)
            mended = closure.extended(a for a in added if a.p in known and a.q in known)
            found = missing_of(mended, it, positive)
            missing += found
            added += [Atom(p, v, _LARGE_US) for p, v in found]
        if missing:
            yield UnboundedQueryError(
                it.alias, it.times.stream, problem, missing, _hint(it, positive, missing)
            )


def _missing_for_keep(
    closure: Closure, it: Input, positive: Sequence[Input]
) -> list[tuple[Point, Point]]:
    """Return relations that bound all times of the result by the end of the event."""
    found: list[tuple[Point, Point]] = []
    open_times = [to for to in positive if math.isinf(closure.dist(it.stamp, to.stamp))]
    while open_times:
        # The point from which most of the open times are reached; the first of equals.
        points = [_weakest_point(closure, to) for to in open_times]
        p = max(points, key=lambda p: sum(_reaches(closure, p, to.stamp) for to in open_times))
        found.append((p, Point(it.alias, "end")))
        open_times = [to for to in open_times if not _reaches(closure, p, to.stamp)]
    return found


def _missing_for_lead(
    closure: Closure, it: Input, positive: Sequence[Input]
) -> list[tuple[Point, Point]]:
    """Return a relation that bounds the end of the event by a time of the result."""
    if any(_reaches(closure, to.stamp, it.stamp) for to in positive):
        return []
    # The positive event that the relations mention, if any: it is bounded by this event.
    to = next((to for to in positive if _reaches(closure, it.stamp, to.stamp)), positive[0])
    return [(_weakest_point(closure, it), Point(to.alias, "end"))]


def _weakest_point(closure: Closure, it: Input) -> Point:
    """Return `begin` if a bound of it bounds the end, otherwise `end`."""
    begin = Point(it.alias, "begin")
    return begin if _reaches(closure, begin, it.stamp) else Point(it.alias, "end")


def _reaches(closure: Closure, v: Node, p: Node) -> bool:
    return closure.dist(v, p) < math.inf


def _hint(it: Input, positive: Sequence[Input], missing: Sequence[tuple[Point, Point]]) -> str:
    """Return the further remedy if an end is not bounded although its begin is."""
    by_alias = {event.alias: event for event in [*positive, it]}
    for p, v in missing:
        begin = Point(p.alias, "begin")
        bounded = all(_reaches(c, v, begin) for c in it.closures if not c.contradictory)
        if p.side == "end" and bounded:
            return f", or declare the max_length of stream {by_alias[p.alias].times.stream}"
    return ""
