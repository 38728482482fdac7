"""Hypothesis strategies for the probability of absence: ties, gaps, points, infinite windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from correlation.buffers.columns import DictionaryColumn
from correlation.event_query.absence.exact import Candidate
from correlation.event_query.absence.instants import InstantTable, make_table
from correlation.event_query.absence.position import Negated
from correlation.event_query.absence.windows import (
    ALWAYS,
    INFINITE_US,
    Box,
    Cuts,
    Interval,
    Window,
    make_windows,
)
from correlation.limits import LENGTH_LIMIT_US, TIME_LIMIT_US
from correlation.resources.histogram import WHOLE_MASS, Bucket, Histogram
from tests.oracle import absence as oracle

# Into how many parts a mass of one is cut: coarse ones make ties and gaps.
_PARTS = (2, 4, 10, WHOLE_MASS)


@st.composite
def instants(draw: st.DrawFn, scale: int = 1, place: int = 0, most: int = 4) -> Histogram:
    """Draw an exact time, an interval or a histogram near `place`; edges are multiples of scale."""
    start = place + scale * draw(st.integers(-6, 6))
    kind = draw(st.sampled_from(("interval", "interval", "histogram", "interval", "exact")))
    if kind == "exact":
        return Histogram.from_interval(start, start)
    if kind == "interval":
        return Histogram.from_interval(start, start + scale * draw(st.integers(1, 8)))
    count = draw(st.integers(2, most))
    lengths = draw(st.lists(st.integers(1, 4), min_size=count, max_size=count))
    parts = draw(st.sampled_from(_PARTS))
    cuts = draw(st.lists(st.integers(0, parts), min_size=count - 1, max_size=count - 1))
    masses = [high - low for low, high in pairwise([0, *sorted(cuts), parts])]
    buckets = []
    for length, mass in zip(lengths, masses, strict=True):
        # The length of a bucket may also be 1 us.
        end = start + (1 if draw(st.integers(0, 5)) == 0 else scale * length)
        buckets.append(Bucket(start, end, mass * (WHOLE_MASS // parts)))
        start = end
    return Histogram(tuple(buckets))


@st.composite
def intervals(draw: st.DrawFn, scale: int = 1) -> Interval:
    """Draw an interval of a window; it may be one point, or infinite."""
    lo = draw(st.integers(-8, 8))
    hi = lo + draw(st.sampled_from((1, 2, 3, 4, 6, 8, 0)))
    bounded = draw(st.sampled_from((*["both"] * 9, *["lo"] * 3, *["hi"] * 3, "neither")))
    return Interval(
        lo * scale if bounded in {"both", "lo"} else None,
        hi * scale if bounded in {"both", "hi"} else None,
        draw(st.booleans()),
        draw(st.booleans()),
    )


def window_tuples(scale: int = 1) -> st.SearchStrategy[tuple[Interval, ...]]:
    """Return a strategy of windows of 0 to 3 intervals that may touch or overlap."""
    one = st.tuples(intervals(scale))
    return st.one_of(one, one, st.lists(intervals(scale), max_size=3).map(tuple))


@st.composite
def cases(
    draw: st.DrawFn, many: int = 4, *, fixed: bool = False
) -> tuple[Histogram, list[Candidate]]:
    """Draw a positive event and up to `many` candidates; few share edges at large scales.

    With `fixed` most windows have fixed ends, many of which are edges.
    """
    scale = draw(st.sampled_from((1, 1, 7, 10**6, LENGTH_LIMIT_US // 100)))
    limit = TIME_LIMIT_US - 80 * scale
    place = draw(st.sampled_from((0, 10**15, limit, -limit)))
    positive = draw(instants(scale, place))
    window: Window = draw(window_tuples(scale))
    candidates = []
    for _ in range(draw(st.sampled_from((*range(many + 1), *range(2, many + 1))))):
        window = draw(st.one_of(st.just(window), window_tuples(scale)))
        differences = [it.difference if isinstance(it, Box) else it for it in window]
        # Most candidates may be on either side of an end of their window.
        ends = [end for it in differences for end in it[:2] if end is not None]
        near = place + draw(st.sampled_from([0, *ends, *ends]))
        time = draw(instants(scale, near))
        if fixed:
            window = tuple(draw(parts(it, time, positive, scale)) for it in differences)
        candidates.append(Candidate(time, window))
    return positive, candidates


@st.composite
def parts(
    draw: st.DrawFn, difference: Interval, time: Histogram, positive: Histogram, scale: int
) -> Interval | Box:
    """Draw fixed ends of an interval: edges, or near them."""
    kinds = ("none", "negated", "negated", "negated", "positive", "both")
    kind = draw(st.sampled_from(kinds))
    if kind == "none":
        return difference
    return Box(
        difference,
        draw(fixed_ends(time, scale)) if kind != "positive" else ALWAYS,
        draw(fixed_ends(positive, scale)) if kind != "negated" else ALWAYS,
    )


@st.composite
def fixed_ends(draw: st.DrawFn, instant: Histogram, scale: int) -> Interval:
    """Draw fixed ends of an instant: one or both."""
    near = st.builds(
        int.__add__,
        st.sampled_from(instant.edges_us),
        st.sampled_from([0, 0, 0, 1, -1, scale, -scale, 2 * scale]),
    )
    lo, hi = draw(st.tuples(near, near))
    bounded = draw(st.sampled_from(["lo", "hi", "both", "both"]))
    # Both ends are rarely exchanged: an interval without times.
    if draw(st.integers(0, 9)):
        lo, hi = min(lo, hi), max(lo, hi)
    return Interval(
        lo if bounded != "hi" else None,
        hi if bounded != "lo" else None,
        draw(st.booleans()),
        draw(st.booleans()),
    )


thresholds = st.one_of(
    st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(1, 10**10), Fraction(3, 4)]),
    st.integers(1, 10**10).map(lambda part: Fraction(part, 10**10)),
)


def to_oracle(instant: Histogram) -> oracle.Instant:
    """Return an instant in the oracle's form."""
    return [(lo, hi, Fraction(mass, WHOLE_MASS)) for lo, hi, mass in instant.buckets]


def judge(positive: Histogram, candidates: list[Candidate]) -> Fraction:
    """Return the oracle's probability."""
    return oracle.probability(
        to_oracle(positive),
        to_candidates(candidates),
    )


def to_candidates(candidates: Iterable[Candidate]) -> list[oracle.Candidate]:
    """Return candidates in the oracle's form."""
    return [(to_oracle(it.time), list(map(_to_oracle_part, it.window))) for it in candidates]


def _to_oracle_part(part: Interval | Box) -> oracle.Interval | oracle.Box:
    if isinstance(part, Interval):
        return (*part,)
    difference, negated, positive = part
    return ((*difference,), (*negated,), (*positive,))


def make_instants(instants: Sequence[Histogram]) -> InstantTable:
    """Return a table of instants."""
    return make_table(
        [it.earliest_us for it in instants],
        [it.latest_us for it in instants],
        DictionaryColumn.from_list([it.shape_bytes for it in instants]),
    )


def make_negated(
    windows: Sequence[Window],
    ranges: Sequence[list[Histogram]],
    events: NDArray[np.int64] | None = None,
) -> Negated:
    """Return an entry in which positive event i has the window i and the range i of candidates."""
    width = max(map(len, windows), default=0)
    unused = Box(Interval(1, 0))
    boxes = [
        [it if isinstance(it, Box) else Box(it) for it in (*window, *[unused] * width)][:width]
        for window in windows
    ]
    ends = np.cumsum([0, *map(len, ranges)])
    with_cuts = any(isinstance(it, Box) for window in windows for it in window)

    def column(place: int, field: int, infinite: int = 0) -> NDArray[np.int64]:
        values = [
            [infinite if it[place][field] is None else it[place][field] for it in row]
            for row in boxes
        ]
        return np.array(values, np.int64).reshape(len(boxes), width)

    lo, hi = (column(0, field, sign * INFINITE_US) for field, sign in ((0, -1), (1, 1)))
    cuts = Cuts(
        np.stack(
            [
                column(place, field, sign * INFINITE_US)
                for place in (1, 2)
                for field, sign in ((0, -1), (1, 1))
            ],
            axis=2,
        ),
        np.stack([column(place, field) != 0 for place in (1, 2) for field in (2, 3)], axis=2),
    )
    return Negated(
        make_instants([it for part in ranges for it in part]),
        ends[:-1],
        ends[1:],
        make_windows(lo, hi, column(0, 2), column(0, 3), cuts if with_cuts else None),
        events,
    )


def make_columns(
    given: Sequence[tuple[Histogram, list[Candidate]]],
) -> tuple[InstantTable, list[Negated]]:
    """Return positive events and an entry for each place in the lists of candidates."""
    negated = []
    for place in range(max((len(candidates) for _, candidates in given), default=0)):
        parts = [candidates[place : place + 1] for _, candidates in given]
        negated.append(
            make_negated(
                [part[0].window if part else () for part in parts],
                [[it.time for it in part] for part in parts],
            )
        )
    return make_instants([positive for positive, _ in given]), negated
