"""Cumulative counters and histograms of a slot, kept in its state.

Restarts and replays neither lose nor double them, for they are part of what is replayed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from correlation.columns import Int64s

# Upper ends of the histogram buckets, in seconds: 1 ms to 1 h in steps of 2 to 2.5.
BUCKETS_SECONDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 1.5, 2.5, 5.0, 10.0, 25.0, 60.0, 300.0, 900.0, 3600.0),
)
_ENDS_US = np.array([round(end * 1e6) for end in BUCKETS_SECONDS], np.int64)
_Labels = tuple[tuple[str, str], ...]


class Totals:
    """Counters and histograms by name and labels."""

    def __init__(self) -> None:
        self._counters: dict[tuple[str, _Labels], int] = {}
        self._histograms: dict[tuple[str, _Labels], list[int]] = {}

    def count(self, name: str, labels: Mapping[str, str], increase: int) -> None:
        """Add to a counter."""
        key = (name, tuple(sorted(labels.items())))
        self._counters[key] = self._counters.get(key, 0) + increase

    def observe(self, name: str, labels: Mapping[str, str], durations_us: Int64s) -> None:
        """Add durations (in µs) to a histogram; negative ones count as zero."""
        if len(durations_us) == 0:
            return
        clipped = np.maximum(durations_us, 0)
        places = np.searchsorted(_ENDS_US, clipped)
        counts = np.bincount(places, minlength=len(_ENDS_US) + 1).tolist()
        key = (name, tuple(sorted(labels.items())))
        # One count per bucket, the last one beyond all ends; then the sum in µs.
        totals = self._histograms.setdefault(key, [0] * (len(_ENDS_US) + 2))
        for i, increase in enumerate([*counts, int(clipped.sum())]):
            totals[i] += increase

    def forget(self, label: str, value: str) -> None:
        """Remove what carries a label of something that is gone."""
        for found in (self._counters, self._histograms):
            for key in [key for key in found if (label, value) in key[1]]:
                del found[key]

    def dump(self) -> dict[str, Any]:
        """Give the totals as a JSON-able dict."""
        return {
            "counters": [
                [name, dict(labels), value] for (name, labels), value in self._counters.items()
            ],
            "histograms": [
                [name, dict(labels), totals] for (name, labels), totals in self._histograms.items()
            ],
        }

    def load(self, dumped: Mapping[str, Any]) -> None:
        """Take back what `dump` gave."""
        for name, labels, value in dumped["counters"]:
            self._counters[name, tuple(sorted(labels.items()))] = value
        for name, labels, totals in dumped["histograms"]:
            self._histograms[name, tuple(sorted(labels.items()))] = totals

    def to_record(self) -> dict[str, Any]:
        """Give the totals as they stand in the slot's record: buckets cumulative, seconds."""
        histograms = []
        for (name, labels), totals in self._histograms.items():
            running = np.cumsum(totals[:-1]).tolist()
            buckets = [[end, running[i]] for i, end in enumerate((*BUCKETS_SECONDS, "+Inf"))]
            histograms.append([name, dict(labels), {"buckets": buckets, "sum": totals[-1] / 1e6}])
        return {"counters": self.dump()["counters"], "histograms": histograms}
