"""Lazy correlation of events with histograms: `intervals.lazy`, then decide doubtful pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from correlation.timing.histograms.search import settle_pairs
from correlation.timing.intervals.lazy import correlate_block

if TYPE_CHECKING:
    from correlation.timing.histograms.search import Search
    from correlation.timing.intervals.pairs import Pairs


def correlate_lazy(search: Search) -> Pairs:
    """Find the satisfied pairs by the pieces of a block."""
    return settle_pairs(search, correlate_block(search))
