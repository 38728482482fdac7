"""Totals and gauges of the results that are merged from the shares of all slots.

A slot does not know the merged results, so it cannot count them. They are counted where they are
merged. The totals are stored with the mark of the batch that they contain, so restarts and repeated
batches neither lose nor double counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from correlation.engine.totals import Totals
from correlation.shares import Merged

VERSION = 1


class MergedTotals:
    """Totals, gauges and times of the last results, by condition."""

    def __init__(self) -> None:
        self._totals = Totals()
        self._gauges: dict[str, Mapping[str, float]] = {}
        self._last_alarm_at_us: dict[str, int] = {}

    def __contains__(self, condition: str) -> bool:
        """Return whether results of a condition were counted."""
        return condition in self._gauges

    def count(self, merged: Iterable[Merged], now_us: int) -> None:
        """Count the merged shares of a batch.

        Parameters
        ----------
        merged : iterable of Merged
            Merged shares, in order.
        now_us : int
            Time at which the correlation completed, in µs since 1970.
        """
        for name, evaluation, is_live in merged:
            if evaluation is None:
                self._totals.forget("condition", name)
                self._gauges.pop(name, None)
                self._last_alarm_at_us.pop(name, None)
                continue
            self._totals.count_evaluation(name, evaluation, now_us, is_live=is_live)
            self._gauges[name] = evaluation.gauges
            if len(evaluation.ready_us):
                self._last_alarm_at_us[name] = now_us

    def dump(self) -> dict[str, Any]:
        """Return everything as a JSON-able dict."""
        return {
            "totals": self._totals.dump(),
            "gauges": {name: dict(found) for name, found in self._gauges.items()},
            "last_alarm_at": dict(self._last_alarm_at_us),
        }

    @classmethod
    def from_dump(cls, dumped: Mapping[str, Any]) -> MergedTotals:
        """Read the output of `dump`."""
        found = cls()
        found._totals.load(dumped["totals"])
        found._gauges = dict(dumped["gauges"])
        found._last_alarm_at_us = dict(dumped["last_alarm_at"])
        return found

    def to_record(self, now_us: int) -> dict[str, Any]:
        """Return the record for the metrics topic."""
        totals = self._totals.to_record()
        return {
            "v": VERSION,
            "at": now_us,
            "counters": totals["counters"],
            "histograms": totals["histograms"],
            "gauges": [
                [gauge, {"condition": name}, value]
                for name, found in self._gauges.items()
                for gauge, value in found.items()
            ],
            "last_alarm_at": dict(self._last_alarm_at_us),
        }
