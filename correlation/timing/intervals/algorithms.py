"""The correlation algorithms by the names a condition uses."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from correlation.timing.intervals.eager import correlate_eager
from correlation.timing.intervals.indexed import correlate_indexed
from correlation.timing.intervals.lazy import correlate_lazy
from correlation.timing.intervals.lazy_lookup import correlate_lazy_lookup
from correlation.timing.intervals.pairs import Pairs, ProbeCounts, Side
from correlation.timing.intervals.simple import correlate_simple
from correlation.timing.intervals.ssort import correlate_ssort

if TYPE_CHECKING:
    from collections.abc import Mapping

    from correlation.timing.intervals.pairs import Correlate

__all__ = ["ALGORITHMS", "Pairs", "ProbeCounts", "Side"]


ALGORITHMS: Mapping[str, Correlate] = MappingProxyType(
    {
        "simple": correlate_simple,
        "ssort": correlate_ssort,
        "eager": correlate_eager,
        "lazy": correlate_lazy,
        "lazy_lookup": correlate_lazy_lookup,
        "indexed": correlate_indexed,
    }
)
