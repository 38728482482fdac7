"""Hypothesis strategies for timing: thresholds, lengths and windows, extreme and close to ties."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from correlation.limits import DURATION_LIMIT_US, LENGTH_LIMIT_US
from correlation.timing.intervals.window import TimingWindow

PLACES = 10**10

thresholds = st.one_of(
    st.sampled_from([Fraction(n, 10) for n in range(1, 11)]),
    st.integers(1, PLACES).map(lambda n: Fraction(n, PLACES)),
    st.sampled_from([Fraction(1, PLACES), Fraction(PLACES - 1, PLACES)]),
)
small_lengths = st.integers(0, 12)
any_lengths = st.one_of(
    small_lengths,
    st.integers(0, LENGTH_LIMIT_US),
    st.sampled_from([1, LENGTH_LIMIT_US - 1, LENGTH_LIMIT_US]),
)


@st.composite
def windows(draw: st.DrawFn, limit: int = DURATION_LIMIT_US) -> TimingWindow:
    """Draw a window with ends, floors and ceilings within ±limit."""
    ends = st.integers(-limit, limit)
    lower, upper = sorted((draw(ends), draw(ends)))
    floor, ceiling = sorted((draw(ends), draw(ends)))
    threshold = draw(thresholds)
    shape = draw(st.sampled_from(["open", "cut", "deadline", "delay"]))
    if shape == "open":
        return TimingWindow(lower, upper, None, None, threshold)
    if shape == "cut":
        return TimingWindow(lower, upper, floor, ceiling, threshold)
    if shape == "deadline":
        return TimingWindow(None, upper, floor, None, threshold)
    return TimingWindow(lower, None, None, ceiling, threshold)


def judged(window: TimingWindow) -> tuple[int | None, int | None, int | None, int | None, Fraction]:
    """Return the window as the judges of tests/oracle take it."""
    return (
        window.lower_us,
        window.upper_us,
        window.floor_us,
        window.ceiling_us,
        window.threshold,
    )
