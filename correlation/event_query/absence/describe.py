"""Description of a decision about absence, as plain data for `coincide explain`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from correlation.event_query.absence.exact import Candidate, absence_probability
from correlation.event_query.absence.windows import Box, Interval, Window
from correlation.resources.histogram import Histogram

# Fractions with a larger denominator are not shown: they are hard to read.
_READABLE_DENOMINATOR = 10_000


class NamedInstant(NamedTuple):
    """A negated event that may stop the positive event.

    Attributes
    ----------
    alias : str
        Negated alias of the query.
    id : str
        Id of the event.
    time : Histogram
        Its instant.
    same : bool
        Whether it is the positive event itself: it stops it iff 0 is in the window, and T_s between
        the fixed ends.
    identity : hashable or None
        Entries with an equal identity are one event; None: no other entry has the event.
    window : tuple of Interval and Box, or None
        Its window; None: that of its alias.
    """

    alias: str
    id: str
    time: Histogram
    same: bool = False
    identity: Hashable = None
    window: Window | None = None


def describe_absence(
    positive: Histogram,
    windows: Mapping[str, Window],
    candidates: Sequence[NamedInstant],
    threshold: Decimal | Fraction,
    barred: Sequence[Interval] = (),
) -> dict[str, Any]:
    """Return the decision about a positive event and the facts from which it follows.

    Parameters
    ----------
    positive : Histogram
        T_s.
    windows : mapping of str to tuple of Interval and Box
        The window of each negated alias.
    candidates : sequence of NamedInstant
        Events of the negated aliases; those outside their window are described too.
    threshold : Decimal or Fraction
        Minimum probability.
    barred : sequence of Interval
        Values of T_s at which a relation among the positive events does not hold.

    Returns
    -------
    dict
        JSON-able. `positive`: its instant; `windows`: per alias the intervals of T_r - T_s, where
        None is infinite, the first and last times at which an event may stop the positive event,
        and the intervals of T_r (`negated`) and T_s (`positive`) between fixed ends; `candidates`:
        their instants, P(in the window) and `place` (inside, outside or uncertain); `relations`:
        the probability that all relations among the positive events hold; `probability` of the
        result, correctly rounded, and `probability_exact` as a fraction if it is short;
        `threshold`; `reported`. Times in µs.
    """
    known = [_candidate(positive, it, windows[it.alias]) for it in candidates]
    barrier = _barrier(positive, barred)
    absent = absence_probability(positive, [*_distinct(candidates, known), barrier])
    return {
        "positive": _describe_instant(positive),
        "windows": {
            alias: [found for it in window if (found := _describe_interval(positive, it))]
            for alias, window in windows.items()
        },
        "candidates": [
            {
                "alias": named.alias,
                "id": named.id,
                **_describe_instant(named.time),
                **_describe_inside(1 - absence_probability(positive, [it])),
            }
            for named, it in zip(candidates, known, strict=True)
        ],
        **_describe_probability("relations", absence_probability(positive, [barrier])),
        **_describe_probability("probability", absent),
        "threshold": str(threshold),
        "reported": absent >= Fraction(threshold),
    }


def may_stop(positive: Histogram, named: NamedInstant) -> bool:
    """Return whether an event with a window stops the positive event with a chance above 0."""
    return absence_probability(positive, [_candidate(positive, named, ())]) < 1


def _candidate(positive: Histogram, named: NamedInstant, window: Window) -> Candidate:
    """Return an event with its window, or with that of its alias."""
    window = window if named.window is None else named.window
    if named.same:
        boxes = [_as_box(it) for it in window]
        return _barrier(
            positive, [it.negated.meet(it.positive) for it in boxes if it.difference.holds(0)]
        )
    return Candidate(named.time, window)


def _as_box(part: Interval | Box) -> Box:
    return part if isinstance(part, Box) else Box(part)


def _distinct(
    candidates: Sequence[NamedInstant], known: Sequence[Candidate]
) -> Iterable[Candidate]:
    """Return each event once, with the union of its windows."""
    found: dict[Hashable, Candidate] = {}
    for place, (named, it) in enumerate(zip(candidates, known, strict=True)):
        key = ("entry", place) if named.identity is None else ("event", named.identity)
        before = found[key].window if key in found else ()
        found[key] = Candidate(it.time, (*before, *it.window))
    return found.values()


def _barrier(positive: Histogram, barred: Sequence[Interval]) -> Candidate:
    """Return a candidate that stops the positive event iff T_s is in an interval."""
    time = positive.latest_us
    window = tuple(
        Interval(
            None if it.hi_us is None else time - it.hi_us,
            None if it.lo_us is None else time - it.lo_us,
            it.open_hi,
            it.open_lo,
        )
        for it in barred
    )
    return Candidate(Histogram.from_interval(time, time), window)


def _describe_instant(time: Histogram) -> dict[str, Any]:
    return {
        "earliest_us": time.earliest_us,
        "latest_us": time.latest_us,
        "buckets": time.to_buckets() if len(time.buckets) > 1 else None,
    }


def _describe_interval(positive: Histogram, part: Interval | Box) -> dict[str, Any]:
    """Return an interval of a window; {} if no event is in it at a time of the positive event."""
    difference, negated, positives = _as_box(part)
    times = Interval(positive.earliest_us, positive.latest_us).meet(positives)
    if times.lo_us is None or times.hi_us is None:
        raise TypeError("the instant of the positive event has a first and a last time")
    lo, hi = difference[:2]
    reach = Interval(
        None if lo is None else times.lo_us + lo, None if hi is None else times.hi_us + hi
    )
    first, last = reach.meet(negated)[:2]
    if times.lo_us > times.hi_us or (first is not None and last is not None and first > last):
        return {}
    return {
        **difference._asdict(),
        "first_us": first,
        "last_us": last,
        "negated": negated._asdict(),
        "positive": positives._asdict(),
    }


def _describe_inside(inside: Fraction) -> dict[str, Any]:
    place = "uncertain" if 0 < inside < 1 else "inside" if inside else "outside"
    return {**_describe_probability("in_window", inside), "place": place}


def _describe_probability(name: str, value: Fraction) -> dict[str, Any]:
    short = value.denominator <= _READABLE_DENOMINATOR
    return {name: float(value), f"{name}_exact": str(value) if short else None}
