"""Hypothesis strategies for histograms: few and many buckets, gaps, points, extreme times."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from hypothesis import strategies as st

from correlation.limits import DURATION_LIMIT_US, LENGTH_LIMIT_US, TIME_LIMIT_US
from correlation.resources.histogram import WHOLE_MASS, Bucket, Histogram
from correlation.timing.intervals.window import TimingWindow
from tests.oracle import histograms as oracle
from tests.unit.correlation.timing.strategies import thresholds, windows

# Into how many parts a mass of one is cut: coarse ones make ties and gaps.
_PARTS = (2, 4, 10, 20, 1000, WHOLE_MASS)


@st.composite
def histograms(draw: st.DrawFn, longest: int = 12, most: int = 4, places: int = 20) -> Histogram:
    """Draw a histogram of up to `most` buckets that is up to `longest` long, within ±places."""
    place = draw(st.integers(-places, places))
    if draw(st.integers(0, 7)) == 0:
        return Histogram.from_interval(place, place)
    count = draw(st.integers(1, most))
    lengths = draw(
        st.lists(st.integers(1, max(longest // count, 1)), min_size=count, max_size=count)
    )
    parts = draw(st.sampled_from(_PARTS))
    cuts = draw(st.lists(st.integers(0, parts), min_size=count - 1, max_size=count - 1))
    masses = [high - low for low, high in pairwise([0, *sorted(cuts), parts])]
    buckets = []
    for length, mass in zip(lengths, masses, strict=True):
        buckets.append(Bucket(place, place + length, mass * (WHOLE_MASS // parts)))
        place += length
    return Histogram(tuple(buckets))


# Up to the limits of length, anywhere in time.
large_histograms = st.one_of(
    histograms(places=TIME_LIMIT_US - LENGTH_LIMIT_US),
    histograms(longest=LENGTH_LIMIT_US, most=6, places=TIME_LIMIT_US - LENGTH_LIMIT_US),
    histograms(longest=10**6, most=12, places=TIME_LIMIT_US - LENGTH_LIMIT_US),
)


@st.composite
def cut_pairs(draw: st.DrawFn) -> tuple[Histogram, Histogram, int, TimingWindow]:
    """Draw A, B, an s at which an end of a window lies within their difference, and the window."""
    a, b, window = draw(large_histograms), draw(large_histograms), draw(windows())
    end = window.lower_us if draw(st.booleans()) else window.upper_us
    s = (end or 0) - a.length_us + int(draw(st.fractions(0, 1)) * (a.length_us + b.length_us))
    return a, b, s, window


@st.composite
def wide_windows(draw: st.DrawFn, spread: int) -> TimingWindow:
    """Draw a window that is wide for two lengths of this sum, often only just."""
    lower = draw(st.integers(-(10**6), 10**6))
    upper = lower + spread + draw(st.one_of(st.just(0), st.integers(0, 10**6)))
    shape = draw(st.sampled_from(["open", "deadline", "delay"]))
    if shape == "open":
        return TimingWindow(lower, upper, None, None, draw(thresholds))
    if shape == "deadline":
        return TimingWindow(None, upper, -DURATION_LIMIT_US, None, draw(thresholds))
    return TimingWindow(lower, None, None, DURATION_LIMIT_US, draw(thresholds))


def told(histogram: Histogram) -> oracle.Histogram:
    """Return the histogram as the judge takes it."""
    return [(lo, hi, Fraction(mass, WHOLE_MASS)) for lo, hi, mass in histogram.buckets]


def described(*buckets: tuple[int, int, str]) -> Histogram:
    """Return the histogram of (lo, hi, p)."""
    return Histogram.from_buckets([{"lo": lo, "hi": hi, "p": p} for lo, hi, p in buckets])
