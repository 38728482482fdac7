"""Sentences on the closure of a query: when events match, one sentence per group and alternative.

A group is the positive events, or one negated event with the positive ones. The sentences name the
begins and ends of the text; an instant has only its end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

from correlation.event_query.query import Point
from correlation.event_query.relevance.analysis import Relevance
from correlation.event_query.relevance.closure import Closure, Distance
from correlation.event_query.relevance.inputs import Input
from correlation.event_query.relevance.shifts import format_shift, join_words, split_strict

# Maximum number of clauses that are described; each group of events has at least one.
CLAUSES = 12


def name_event(it: Input) -> str:
    """Return an event at the begin of a sentence, such as "A Smoke event s"."""
    article = "An" if it.type[:1] in "AEIOUaeiou" else "A"
    return f"{article} {it.type} event {it.alias}"


def groups_of(relevance: Relevance) -> list[Input]:
    """Return the first positive event for all positive events, and each negated event."""
    first = next(it for it in relevance.inputs if not it.negated)
    return [first, *(it for it in relevance.inputs if it.negated)]


def clauses_of(relevance: Relevance, it: Input) -> tuple[list[Closure], int]:
    """Return the closures of a group that are described, and the number of further closures."""
    closures = [closure for closure in it.closures if not closure.contradictory]
    shown = max(1, CLAUSES // len(groups_of(relevance)))
    return closures[:shown], max(0, len(closures) - shown)


def describe_closures_in_words(relevance: Relevance) -> Iterator[str]:
    """Yield the sentences of the positive events, then those of each negated event."""
    instants = {it.alias for it in relevance.inputs if it.is_instant}
    for it in groups_of(relevance):
        closures, further = clauses_of(relevance, it)
        # The clauses of a negated event also have the alternatives among the positive events.
        found = dict.fromkeys(_phrases(closure, it, instants) for closure in closures)
        for number, phrases in enumerate(found):
            if phrases:
                yield f"{_begin(it, first=number == 0)} {join_words(list(phrases))}."
        if further:
            group = f"negated event {it.alias}" if it.negated else "positive events"
            yield f"Further alternatives of the {group}: {further}."


def _begin(it: Input, *, first: bool) -> str:
    if not it.negated:
        return "In a result," if first else "Or, in a result,"
    return f"{name_event(it)} {'' if first else 'also '}stops a combination if"


def _phrases(closure: Closure, it: Input, instants: set[str]) -> tuple[str, ...]:
    """Return the finite bounds between two events; those of a negated event mention it."""
    points = [
        point
        for point in closure.points
        if isinstance(point, Point) and not (point.side == "begin" and point.alias in instants)
    ]
    found: list[str] = []
    for v, p in combinations(points, 2):
        if v.alias == p.alias or (it.negated and it.alias not in {v.alias, p.alias}):
            continue
        up, down = closure.dist(v, p), closure.dist(p, v)
        places = [_exactly(int(up))] if up == -down else [*_at_least(down), *_at_most(up)]
        if places:
            # A second place refers to the same point: "after the end of s and before it".
            other = f"the {v.side} of {v.alias}"
            shown = " and ".join(
                f"{place} {'it' if n else other}" for n, place in enumerate(places)
            )
            found.append(f"the {p.side} of {p.alias} is {shown}")
    return tuple(found)


def _exactly(shift_us: int) -> str:
    if shift_us == 0:
        return "at"
    return f"exactly {_amount(shift_us)} {'after' if shift_us > 0 else 'before'}"


def _at_most(up: Distance) -> Iterator[str]:
    """Yield the place of p in ``p <= v + up``, if it is bounded."""
    if up < math.inf:
        shift_us, strict = split_strict(int(up))
        if shift_us == 0:
            yield "before" if strict else "at or before"
        elif shift_us > 0:
            yield f"{'less than' if strict else 'at most'} {_amount(shift_us)} after"
        else:
            yield f"{'more than' if strict else 'at least'} {_amount(shift_us)} before"


def _at_least(down: Distance) -> Iterator[str]:
    """Yield the place of p in ``v <= p + down``, if it is bounded."""
    if down < math.inf:
        shift_us, strict = split_strict(int(down))
        if shift_us == 0:
            yield "after" if strict else "at or after"
        elif shift_us > 0:
            yield f"{'less than' if strict else 'at most'} {_amount(shift_us)} before"
        else:
            yield f"{'more than' if strict else 'at least'} {_amount(shift_us)} after"


def _amount(shift_us: int) -> str:
    return format_shift(abs(shift_us)).removeprefix(" + ")
