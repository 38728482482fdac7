"""Random templates and max-sorted streams, as in PTJ Example 5."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from correlation.resources.histogram import WHOLE_MASS, Bucket, Histogram
from correlation.timing.intervals.window import TimingWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MIN_UNCERTAINTY_US, MAX_UNCERTAINTY_US = 200_000, 1_000_000
MIN_BUCKETS, MAX_BUCKETS = 2, 10
DELAY_US = 100_000
RATE = 100
# Example 5, and the query of section 3.
WINDOWS_MS = (1_500, 2_000)


class Stream(NamedTuple):
    """Events by ascending latest time.

    Attributes
    ----------
    latest : ndarray of int64, shape (n,)
        Microseconds.
    shape : ndarray of int64, shape (n,)
        Position of the event's template.
    """

    latest: NDArray[np.int64]
    shape: NDArray[np.int64]


def mutual(deadline_ms: int, threshold: str) -> TimingWindow:
    """Return |T_A - T_B| ≤ d with a threshold δ."""
    return TimingWindow(-deadline_ms * 1000, deadline_ms * 1000, None, None, Fraction(threshold))


def draw_templates(count: int, rng: np.random.Generator) -> list[Histogram]:
    """Draw histograms of random lengths, buckets and masses, all ending at 0."""
    return [_draw_template(rng) for _ in range(count)]


def _draw_template(rng: np.random.Generator) -> Histogram:
    buckets = int(rng.integers(MIN_BUCKETS, MAX_BUCKETS + 1))
    length = int(rng.integers(MIN_UNCERTAINTY_US, MAX_UNCERTAINTY_US + 1))
    inner = np.sort(rng.choice(np.arange(1, length), buckets - 1, replace=False))
    edges = [-length, *(inner - length).tolist(), 0]
    parts = np.sort(rng.integers(1, WHOLE_MASS, buckets - 1))
    masses = np.diff(parts, prepend=0, append=WHOLE_MASS).tolist()
    return Histogram(
        tuple(
            Bucket(lo, hi, mass) for lo, hi, mass in zip(edges[:-1], edges[1:], masses, strict=True)
        )
    )


def draw_stream(
    events: int, templates: Sequence[Histogram], rng: np.random.Generator, rate: int = RATE
) -> Stream:
    """Draw events at a rate, each with any of the templates."""
    span_us = events * 1_000_000 // rate
    return Stream(
        np.sort(rng.integers(0, span_us, events)), rng.integers(0, len(templates), events)
    )
