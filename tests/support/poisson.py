"""Random event streams: Poisson processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from correlation.buffers.columns import BytesColumn, DictionaryColumn
from correlation.buffers.events import Events

if TYPE_CHECKING:
    from correlation.resources.streams import Stream

_SECOND_US = 1_000_000


def draw_poisson(
    stream: Stream, rate: float, seconds: int, rng: np.random.Generator, keys: float = 1
) -> Events:
    """Draw a Poisson process of `latest`, with uniform lengths or templates, and uniform keys."""
    count = int(rng.poisson(rate * seconds))
    latest = np.sort(rng.integers(0, seconds * _SECOND_US, count))
    shortest, longest = stream.min_uncertainty_us, stream.max_uncertainty_us
    if stream.mapping.spread_us is not None:
        shortest = longest = stream.mapping.spread_us
    lengths = rng.integers(shortest, longest, count, endpoint=True)
    drawn = [b"%d" % key for key in rng.integers(0, int(keys), count)]
    shape = None
    if stream.templates:
        chosen = rng.integers(0, len(stream.templates), count)
        histograms = [stream.templates[number].histogram for number in chosen.tolist()]
        lengths = np.array([it.length_us for it in histograms], np.int64)
        shape = DictionaryColumn.from_list([it.shape_bytes for it in histograms])
    # With a grid, all events are in one cell.
    drawn = [b""] * count if stream.partitioning.by == "grid" else drawn
    return Events(
        stream.name,
        BytesColumn.from_list(drawn),
        BytesColumn.from_list([b"%d" % number for number in range(count)]),
        latest - lengths,
        latest,
        np.zeros(count, np.int32),
        np.arange(count, dtype=np.int64),
        latest,
        shape=shape,
    )
