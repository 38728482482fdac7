"""Hypothesis strategies for the probability of absence: ties, gaps, points, infinite windows."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from hypothesis import strategies as st

from correlation.event_query.absence.exact import Candidate
from correlation.event_query.absence.windows import Interval
from correlation.limits import LENGTH_LIMIT_US, TIME_LIMIT_US
from correlation.resources.histogram import WHOLE_MASS, Bucket, Histogram
from tests.oracle import absence as oracle

# Into how many parts a mass of one is cut: coarse ones make ties and gaps.
_PARTS = (2, 4, 10, WHOLE_MASS)


@st.composite
def instants(draw: st.DrawFn, scale: int = 1, place: int = 0, most: int = 4) -> Histogram:
    """Draw an exact time, an interval or a histogram near `place`; edges are multiples of scale."""
    start = place + scale * draw(st.integers(-6, 6))
    kind = draw(st.sampled_from(("exact", "interval", "interval", "histogram")))
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
    hi = lo + draw(st.integers(0, 8))
    bounded = draw(st.sampled_from(("both", "both", "both", "lo", "hi", "neither")))
    return Interval(
        lo * scale if bounded in {"both", "lo"} else None,
        hi * scale if bounded in {"both", "hi"} else None,
        draw(st.booleans()),
        draw(st.booleans()),
    )


def window_tuples(scale: int = 1) -> st.SearchStrategy[tuple[Interval, ...]]:
    """Return a strategy of windows of 0 to 3 intervals that may touch or overlap."""
    return st.lists(intervals(scale), max_size=3).map(tuple)


@st.composite
def cases(draw: st.DrawFn, many: int = 4) -> tuple[Histogram, list[Candidate]]:
    """Draw a positive event and up to `many` candidates; few share edges at large scales."""
    scale = draw(st.sampled_from((1, 1, 7, 10**6, LENGTH_LIMIT_US // 100)))
    limit = TIME_LIMIT_US - 60 * scale
    place = draw(st.sampled_from((0, 10**15, limit, -limit)))
    positive = draw(instants(scale, place))
    window = draw(window_tuples(scale))
    candidates = []
    for _ in range(draw(st.integers(0, many))):
        window = draw(st.one_of(st.just(window), window_tuples(scale)))
        candidates.append(Candidate(draw(instants(scale, place)), window))
    return positive, candidates


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
        [(to_oracle(it.time), [tuple(i) for i in it.window]) for it in candidates],
    )
