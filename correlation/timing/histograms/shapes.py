"""Histograms as arrays for the kernels.

Definitions. A *shape* is a histogram as offsets from its latest time: two timestamps of equal shape
differ only in their latest times.

Cost. O(n) for n buckets in total.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from correlation.resources.histogram import Bucket, Histogram
from correlation.timing.histograms.exact import Steps, scale_steps
from correlation.timing.intervals.arguments import as_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Shapes(NamedTuple):
    """The shapes of k histograms with n buckets in total.

    Attributes
    ----------
    starts : ndarray of int64, shape (k + 1,)
        Shape i has the masses starts[i] to starts[i + 1].
    edges : ndarray of int64, shape (n + k,)
        Offsets from the latest time, microseconds, ascending to 0 within a shape. Shape i has the
        edges starts[i] + i to starts[i + 1] + i, inclusive.
    masses : ndarray of int64, shape (n,)
        Masses in units of 10**-10; they sum to 10**10 in every shape.
    """

    starts: NDArray[np.int64]
    edges: NDArray[np.int64]
    masses: NDArray[np.int64]

    def to_steps(self, i: int) -> Steps:
        """Return shape i as steps, for exact decisions."""
        return scale_steps(*(column.tolist() for column in self.at(i)))

    def histogram(self, i: int) -> Histogram:
        """Return shape i as a histogram that ends at 0."""
        edges, masses = (column.tolist() for column in self.at(i))
        return Histogram(
            tuple(
                Bucket(lo, hi, mass) for (lo, hi), mass in zip(pairwise(edges), masses, strict=True)
            )
        )

    def at(self, i: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the edges and the masses of shape i."""
        first, last = int(self.starts[i]), int(self.starts[i + 1])
        return self.edges[first + i : last + i + 1], self.masses[first:last]

    def key(self, i: int) -> bytes:
        """Return a unique key of shape i: its edges, then its masses."""
        return b"".join(column.tobytes() for column in self.at(i))


def pack_shapes(histograms: Sequence[Histogram]) -> Shapes:
    """Return the shapes of histograms as arrays.

    Parameters
    ----------
    histograms : sequence of k Histogram
        The histograms; their positions in time are ignored.

    Returns
    -------
    Shapes
        The shapes, in the same order.
    """
    sizes = [len(histogram.masses) for histogram in histograms]
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    edges = [edge - histogram.latest_us for histogram in histograms for edge in histogram.edges_us]
    masses = [mass for histogram in histograms for mass in histogram.masses]
    return Shapes(as_column(starts), as_column(edges), as_column(masses))
