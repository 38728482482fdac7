"""Functions of PTJ that the correlation does not use: P(X_i ≥ X_j) and the satisfaction time."""

from __future__ import annotations

from fractions import Fraction

from correlation.resources.histogram import Histogram
from correlation.timing.histograms.exact import Steps, count_greater, to_steps
from correlation.timing.histograms.s_windows import _find_quantile

_STIME_PLACES = 10


def ge(h_i: Histogram, h_j: Histogram) -> Fraction:
    """Compute P(X_i ≥ X_j) (PTJ Definition 2)."""
    i, j = to_steps(h_i), to_steps(h_j)
    return 1 - Fraction(count_greater(j, i, 0), 2 * i.whole * j.whole)


def stime(h_i: Histogram, h_j: Histogram, delta: Fraction) -> Fraction:
    """Compute the satisfaction time (PTJ Definition 8), 0 < δ ≤ 1.

    Returns
    -------
    Fraction
        The maximum t with P(X_i + max(h_j) - t ≥ X_j) ≥ δ, in microseconds, rounded down to ten
        decimals. It is the only t with P = δ unless P equals δ over an interval.
    """
    # t - max(h_i) is the right end of the s-window of T_j - T_i ≤ 0, here in units of 10**-10 us.
    unit = 10**_STIME_PLACES
    i, j = (_stretch(to_steps(h.shape()), unit) for h in (h_i, h_j))
    return h_i.latest_us - Fraction(_find_quantile(j, i, delta), unit)


def _stretch(steps: Steps, factor: int) -> Steps:
    """Return the distribution of the time multiplied by `factor`."""
    edges = tuple(edge * factor for edge in steps.edges)
    return Steps(edges, steps.changes, steps.whole if steps.is_point else steps.whole * factor)
