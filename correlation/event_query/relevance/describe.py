"""Description of closure, progress and keep functions, in sentences and as plain data.

"Report has reached t" means that the progress of the stream is at least t: all Report events that
end at t or before have been read. By P-QUERY-PROGRESS a result with time T is final when each
stream S has reached T - lead(S). An event with time v and keep offset k is deleted when the
progress of the results is at least v - k, that is when each stream S has reached v - k - lead(S).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from itertools import combinations
from typing import Any

from correlation.event_query.query import Point
from correlation.event_query.relevance.analysis import Relevance
from correlation.event_query.relevance.closure import Closure, Distance
from correlation.event_query.relevance.closure_words import (
    clauses_of,
    describe_closures_in_words,
    groups_of,
    name_event,
)
from correlation.event_query.relevance.inputs import Input
from correlation.event_query.relevance.normal_form import Node
from correlation.event_query.relevance.shifts import (
    format_shift,
    join_words,
    round_shift,
    split_strict,
)
from correlation.event_query.relevance.unbounded import show_point
from correlation.resources.durations import UNITS_US

_MS = UNITS_US["ms"]


def describe_relevance(relevance: Relevance) -> dict[str, Any]:
    """Return the analysis of a query as a JSON-able dict.

    Parameters
    ----------
    relevance : Relevance
        The analysis.

    Returns
    -------
    dict
        `satisfiable`; `closure`: per group of events the relations of its first clauses, and the
        number of `further_clauses`; `progress` and `keep`: functions with numbers in µs, where None
        is infinite: the event never matters; `sentences`: the same in words.
    """
    return {
        "satisfiable": relevance.satisfiable,
        "closure": list(_describe_closures(relevance)),
        "progress": {
            "function": _progress_function(relevance),
            "leads_us": {it: _finite(by) for it, by in relevance.progress.leads.items()},
        },
        "keep": [
            {
                "alias": it.alias,
                "type": it.type,
                "stream": it.times.stream,
                "negated": it.negated,
                "function": _keep_function(relevance, it),
                "offset_us": _finite(_offset(relevance, it)),
            }
            for it in relevance.inputs
        ],
        "sentences": [*describe_closures_in_words(relevance), *describe_in_words(relevance)],
    }


def describe_in_words(relevance: Relevance) -> Iterator[str]:
    """Yield sentences: when a result is final, and how long each event is kept."""
    if not relevance.satisfiable:
        yield "No events can satisfy the relations: the query never has a result."
        return
    several = sum(not it.negated for it in relevance.inputs) > 1
    whose = "last end" if several and not relevance.is_stated else "end"
    yield f"A result is final when {_reached(relevance, 0, f'its {whose}')}."
    for it in relevance.inputs:
        offset = _offset(relevance, it)
        if offset == math.inf:
            role = "stop a combination" if it.negated else "be part of a result"
            yield f"{name_event(it)} is not kept, because it can never {role}."
        else:
            yield f"{name_event(it)} is kept until {_reached(relevance, offset, 'its end')}."


def _reached(relevance: Relevance, offset: Distance, moment: str) -> str:
    """Return the conditions under which the results' progress is at least `moment - offset`."""
    types = {it.times.stream: it.type for it in reversed(relevance.inputs)}
    # Names of the streams by their delays in ms, the longest delay first.
    delays: dict[int, list[str]] = {}
    for stream, by in relevance.progress.leads.items():
        if by < math.inf:
            delays.setdefault(-(int(offset + by) // _MS), []).append(types[stream])
    parts = [
        (join_words(names), f"{moment}{round_shift(by * _MS)}")
        for by, names in sorted(delays.items(), reverse=True)
    ]
    verb = "has" if " and " not in parts[0][0] else "have"
    first = f"{parts[0][0]} {verb} reached {parts[0][1]}"
    others = [f"{names} {reached}" for names, reached in parts[1:]]
    if not others:
        return first
    return ", and ".join([", ".join([first, *others[:-1]]), others[-1]])


def _offset(relevance: Relevance, it: Input) -> Distance:
    return relevance.keeps[it.alias].value({relevance.result: 0})


def _progress_function(relevance: Relevance) -> str:
    terms = [
        f"progress({stream}){format_shift(int(by))}"
        for stream, by in relevance.progress.leads.items()
        if by < math.inf
    ]
    value = terms[0] if len(terms) == 1 else f"min({', '.join(terms)})"
    return f"progress({relevance.result}) = {value if terms else 'infinite'}"


def _keep_function(relevance: Relevance, it: Input) -> str:
    offset = _offset(relevance, it)
    value = (
        "infinite"
        if offset == math.inf
        else f"progress({relevance.result}){format_shift(int(offset))}"
    )
    return f"keep({show_point(it.stamp)}) = {value}"


def _describe_closures(relevance: Relevance) -> Iterator[dict[str, Any]]:
    """Yield the relations among the positive events, then those with each negated event."""
    instants = {it.alias for it in relevance.inputs if it.is_instant}
    for it in groups_of(relevance):
        closures, further = clauses_of(relevance, it)
        yield {
            "negated": it.alias if it.negated else None,
            "clauses": [_relations(closure, instants) for closure in closures],
            "further_clauses": further,
        }


def _relations(closure: Closure, instants: Collection[str]) -> list[str]:
    """Return the finite bounds between points of different events; an instant has only its end."""
    found = []
    begins = {Point(alias, "begin") for alias in instants}
    for v, p in combinations([it for it in closure.points if it not in begins], 2):
        if v.alias == p.alias:
            continue
        up, down = closure.dist(v, p), closure.dist(p, v)
        if up == -down:
            found.append(f"{show_point(p)} = {show_point(v)}{format_shift(int(up))}")
        else:
            found += [_bound(p, v, up)] if up < math.inf else []
            found += [_bound(v, p, down)] if down < math.inf else []
    return found


def _bound(p: Node, v: Node, bound: Distance) -> str:
    """Return ``p <= v + bound``, or ``<`` if the bound is 1 µs below a whole millisecond."""
    shift_us, strict = split_strict(int(bound))
    return f"{show_point(p)} {'<' if strict else '<='} {show_point(v)}{format_shift(shift_us)}"


def _finite(value: Distance) -> int | None:
    return None if math.isinf(value) else int(value)
