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
the left side if the length of the event is bounded, and none without which the query is bounded
(`missing`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from correlation.errors import FieldErrors, InvalidFieldError
from correlation.event_query.query import Point, Term
from correlation.event_query.relevance.inputs import Input
from correlation.event_query.relevance.missing import (
    Missing,
    Problem,
    missing_of_negated,
    missing_of_positive,
)
from correlation.event_query.relevance.normal_form import Node

_PROBLEMS: dict[Problem, str] = {
    "kept": "would be kept forever",
    "open": "may come at any time after the result, which is never final",
    "long": "may end at any time after its begin, the time of the result, which is never final",
}


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
    positive = [it for it in inputs if not it.negated]
    assumed = missing_of_positive(positive, time)
    yield from _errors(inputs, assumed)
    for it in inputs:
        if it.negated:
            yield from _errors(inputs, missing_of_negated(it, positive, assumed))


def _errors(inputs: Sequence[Input], missing: Sequence[Missing]) -> Iterator[UnboundedQueryError]:
    """Yield an error per input and problem."""
    for place, it in enumerate(inputs):
        for problem, shown in _PROBLEMS.items():
            found = [
                (one.p, one.v) for one in missing if (one.alias, one.problem) == (it.alias, problem)
            ]
            if found:
                hint = _hint(it, inputs, found)
                yield UnboundedQueryError(place, it.alias, it.times.stream, shown, found, hint)


def _hint(it: Input, inputs: Sequence[Input], missing: Sequence[tuple[Point, Point]]) -> str:
    """Return the further remedy if an end is not bounded although its begin is."""
    by_alias = {event.alias: event for event in inputs}
    for p, v in missing:
        begin = Point(p.alias, "begin")
        bounded = all(c.dist(v, begin) < math.inf for c in it.closures if not c.contradictory)
        if p.side == "end" and bounded:
            return f", or declare the max_length of stream {by_alias[p.alias].times.stream}"
    return ""
