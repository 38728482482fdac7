"""Histogram events for the tests, as columns and in the oracle's form."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import DictionaryColumn
from correlation.resources.histogram import WHOLE_MASS, Bucket, Histogram
from correlation.timing.histograms.classes import HistogramSide, make_side
from tests.oracle import histograms as oracle


class Kept:
    """A cache of s-windows in memory."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def get(self, name: str) -> bytes | None:
        return self.blobs.get(name)

    def put(self, name: str, blob: bytes) -> None:
        self.blobs[name] = blob


def told(histogram: Histogram) -> oracle.Histogram:
    """Return a histogram in the oracle's form."""
    return [(lo, hi, Fraction(mass, WHOLE_MASS)) for lo, hi, mass in histogram.buckets]


def side_of_events(events: Sequence[Histogram]) -> HistogramSide:
    """Build a side of events, sorted by latest."""
    times = np.array([(it.earliest_us, it.latest_us) for it in events], np.int64).reshape(-1, 2)
    shapes = [it.shape_bytes for it in events]
    column = DictionaryColumn.from_list(shapes) if any(shapes) else None
    return make_side(times[:, 0], times[:, 1], column)


def draw_histogram(
    rng: np.random.Generator, lengths: Sequence[int], parts: int = 10, scale: int = 1
) -> Histogram:
    """Draw a shape of 1 to 4 buckets; its length is one of `lengths`, times the scale.

    Masses are multiples of 1 / parts, so gaps and ties are common.
    """
    length = int(rng.choice(np.array(lengths)))
    count = min(int(rng.integers(1, 5)), max(length, 1))
    if count == 1:
        return Histogram.from_interval(-length * scale, 0)
    cuts = np.sort(rng.choice(np.arange(1, length), count - 1, replace=False)).tolist()
    edges = [-length, *(cut - length for cut in cuts), 0]
    masses = rng.multinomial(parts, [1 / count] * count)
    # Both ends belong to the support.
    masses[0] += masses[0] == 0
    masses[-1] += parts - masses.sum()
    if masses[-1] <= 0:
        return Histogram.from_interval(-length * scale, 0)
    whole = WHOLE_MASS // parts
    return Histogram(
        tuple(
            Bucket(lo * scale, hi * scale, int(mass) * whole)
            for lo, hi, mass in zip(edges, edges[1:], masses.tolist(), strict=False)
        )
    )


def draw_events(
    rng: np.random.Generator, shapes: Sequence[Histogram], size: int, span: int, step: int = 1
) -> list[Histogram]:
    """Draw sorted events of these shapes, with latest times on a grid within ±span steps."""
    latest = np.sort(rng.integers(-span, span + 1, size)) * step
    chosen = rng.integers(0, len(shapes), size).tolist()
    return [shapes[k].moved(t) for k, t in zip(chosen, latest.tolist(), strict=True)]


def one_group(base: Sequence[Histogram], target: Sequence[Histogram]) -> NDArray[np.int64]:
    """Build one group of all events of both sides."""
    return np.array([[0, len(base), 0, len(target)]], np.int64)
