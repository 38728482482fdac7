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
from correlation.event_query.relevance.inputs import Input
from correlation.event_query.relevance.normal_form import Node
from correlation.event_query.relevance.unbounded import show_point
from correlation.resources.durations import UNITS_US

# Maximum number of clauses that are described; each group of events has at least one.
_CLAUSES = 12
_UNITS = ("d", "h", "min", "s", "ms")
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
        "sentences": list(describe_in_words(relevance)),
    }


def describe_in_words(relevance: Relevance) -> Iterator[str]:
    """Yield sentences: when a result is final, and how long each event is kept."""
    if not relevance.satisfiable:
        yield "No events can satisfy the relations: the query never has a result."
        return
    whose = "end" if sum(not it.negated for it in relevance.inputs) == 1 else "last end"
    yield f"A result is final when {_reached(relevance, 0, f'its {whose}')}."
    for it in relevance.inputs:
        offset = _offset(relevance, it)
        if offset == math.inf:
            role = "stop a combination" if it.negated else "be part of a result"
            yield f"{_an(it)} is not kept, because it can never {role}."
        else:
            yield f"{_an(it)} is kept until {_reached(relevance, offset, 'its end')}."


def format_shift(shift_us: int) -> str:
    """Return a shift such as " + 5 min" or " - 5 min - 1 us"; "" for 0."""
    rest = 0
    if shift_us % _MS in {1, _MS - 1}:
        rest = 1 if shift_us % _MS == 1 else -1
    return _signed(shift_us - rest) + _signed(rest)


def _signed(shift_us: int) -> str:
    if shift_us == 0:
        return ""
    unit = next((it for it in _UNITS if shift_us % UNITS_US[it] == 0), "us")
    return f" {'+' if shift_us > 0 else '-'} {abs(shift_us) // UNITS_US[unit]} {unit}"


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


def join_words(names: list[str]) -> str:
    """Return names in a sentence: "a", "a and b", or "a, b and c"; "" without names."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def round_shift(shift_us: int) -> str:
    """Return a shift in words, rounded up to 1 ms, such as " + 1 min 32.5 s"; "" for 0.

    The bounds of strict relations differ from those of the text by 1 µs, which is noise to readers.
    """
    rest_ms = -(-shift_us // _MS)
    sign = "-" if rest_ms < 0 else "+"
    rest_ms = abs(rest_ms)
    parts = []
    for unit in ("d", "h", "min"):
        count, rest_ms = divmod(rest_ms, UNITS_US[unit] // _MS)
        parts += [f"{count} {unit}"] if count else []
    seconds, rest_ms = divmod(rest_ms, 1000)
    if seconds or rest_ms:
        fraction = f".{rest_ms:03}".rstrip("0") if rest_ms else ""
        parts.append(f"{rest_ms} ms" if not seconds and not parts else f"{seconds}{fraction} s")
    return f" {sign} {' '.join(parts)}" if parts else ""


def _an(it: Input) -> str:
    article = "An" if it.type[:1] in "AEIOUaeiou" else "A"
    return f"{article} {it.type} event {it.alias}"


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
    first = next(it for it in relevance.inputs if not it.negated)
    instants = {it.alias for it in relevance.inputs if it.is_instant}
    groups = [first, *(it for it in relevance.inputs if it.negated)]
    shown = max(1, _CLAUSES // len(groups))
    for it in groups:
        closures = [closure for closure in it.closures if not closure.contradictory]
        yield {
            "negated": it.alias if it.negated else None,
            "clauses": [_relations(closure, instants) for closure in closures[:shown]],
            "further_clauses": max(0, len(closures) - shown),
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
    strict = int(bound) % _MS == _MS - 1
    return (
        f"{show_point(p)} {'<' if strict else '<='} "
        f"{show_point(v)}{format_shift(int(bound) + strict)}"
    )


def _finite(value: Distance) -> int | None:
    return None if math.isinf(value) else int(value)
