"""Cumulative counters and histograms of a slot.

They are part of the slot's state, so restarts and replays neither lose nor double counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.buffers.events import Events
from correlation.engine.contract import BUCKETS_SECONDS, ContractFacts, count_buckets, declaration
from correlation.operators import Evaluation
from correlation.resources.streams import Stream

_Labels = tuple[tuple[str, str], ...]


class Totals:
    """Counters and histograms by name and labels."""

    def __init__(self) -> None:
        self._counters: dict[tuple[str, _Labels], int] = {}
        self._histograms: dict[tuple[str, _Labels], list[int]] = {}
        self._contracts: dict[str, ContractFacts] = {}

    def count(self, name: str, labels: Mapping[str, str], increase: int) -> None:
        """Add to a counter."""
        key = (name, tuple(sorted(labels.items())))
        self._counters[key] = self._counters.get(key, 0) + increase

    def observe(
        self,
        name: str,
        labels: Mapping[str, str],
        durations_us: Int64s,
        counts: Int64s | None = None,
    ) -> None:
        """Add durations (in µs) to a histogram; negative durations count as zero.

        `counts` is how often each duration occurs; None: once.
        """
        if len(durations_us) == 0:
            return
        buckets = count_buckets(durations_us, counts).tolist()
        positive = np.maximum(durations_us, 0)
        total_us = int((positive if counts is None else positive * counts).sum())
        key = (name, tuple(sorted(labels.items())))
        # One count per bucket, the last above all bounds; then the sum in µs.
        totals = self._histograms.setdefault(key, [0] * (len(buckets) + 1))
        for i, increase in enumerate([*buckets, total_us]):
            totals[i] += increase

    def count_evaluation(
        self, condition: str, evaluation: Evaluation, now_us: int, *, is_live: bool
    ) -> None:
        """Count the results of a condition.

        Parameters
        ----------
        condition : str
            Name of the condition.
        evaluation : Evaluation
            Its results.
        now_us : int
            Time at which the correlation completed, in µs since 1970.
        is_live : bool
            Whether all streams of the condition follow the wall clock.
        """
        labels = {"condition": condition}
        self.count("alarms_total", labels, evaluation.alarms)
        for name, count_labels, increase in evaluation.counts:
            self.count(name, count_labels, increase)
        if not evaluation.alarms:
            return
        if is_live:
            waited = now_us - evaluation.ready_us
            self.observe("response_time_seconds", labels, waited, evaluation.ready_counts)
        waited = now_us - evaluation.record_timestamp_us
        self.observe("pipeline_latency_seconds", labels, waited, evaluation.record_counts)

    def count_events(
        self, stream: Stream, events: Events, home: NDArray[np.bool_], late: NDArray[np.bool_]
    ) -> None:
        """Count events of a stream.

        Parameters
        ----------
        stream : Stream
            The declared stream.
        events : Events
            n copies of events.
        home, late : bool[n]
            Masks of the home copies, one per event, which are counted, and of the late copies.
        """
        if not home.any():
            return
        labels = {"stream": stream.name}
        late_count = int((late & home).sum())
        self.count("events_consumed_total", labels, int(home.sum()))
        self.count("events_late_total", labels, late_count)
        lengths, delays = (events.latest - events.earliest)[home], None
        self.observe("interval_length_seconds", labels, lengths)
        if stream.clock == "live":
            delays = (events.record_timestamp_us - events.latest)[home]
            self.observe("transmission_delay_seconds", labels, delays)
        facts = ContractFacts.of_events(stream, lengths, delays, late_count)
        self.add_facts(stream.name, facts)

    def count_records(
        self,
        streams: Mapping[str, Stream],
        rejected: Mapping[tuple[str, str], int],
        filtered: Mapping[str, int],
    ) -> None:
        """Count the records of a block that are not events, as in `Block`.

        Parameters
        ----------
        streams : mapping of name to Stream
            The streams in force.
        rejected, filtered
            Numbers of records by stream and reason, and by stream.
        """
        for (name, reason), count in rejected.items():
            self.count("events_rejected_total", {"stream": name, "reason": reason}, count)
            if name in streams:
                declared = declaration(streams[name])
                self.add_facts(name, ContractFacts(declared, rejected={reason: count}))
        for name, count in filtered.items():
            self.count("events_filtered_total", {"stream": name}, count)

    def add_facts(self, stream: str, facts: ContractFacts) -> None:
        """Add facts of a stream; facts of another declaration are replaced."""
        known = self._contracts.get(stream)
        same = known is not None and known.declared == facts.declared
        self._contracts[stream] = known.merged(facts) if known is not None and same else facts

    def keep_facts(self, streams: Mapping[str, Stream]) -> None:
        """Drop the facts of streams that were removed or whose declaration changed."""
        self._contracts = {
            name: facts
            for name, facts in self._contracts.items()
            if name in streams and facts.declared == declaration(streams[name])
        }

    def forget(self, label: str, value: str) -> None:
        """Remove the counters and histograms that have a label with this value."""
        for found in (self._counters, self._histograms):
            for key in [key for key in found if (label, value) in key[1]]:
                del found[key]

    def dump(self) -> dict[str, Any]:
        """Return the totals as a JSON-able dict."""
        return {
            "contracts": {name: facts.to_record() for name, facts in self._contracts.items()},
            "counters": [
                [name, dict(labels), value] for (name, labels), value in self._counters.items()
            ],
            "histograms": [
                [name, dict(labels), totals] for (name, labels), totals in self._histograms.items()
            ],
        }

    def load(self, dumped: Mapping[str, Any]) -> None:
        """Restore the output of `dump`."""
        for name, facts in dumped["contracts"].items():
            self._contracts[name] = ContractFacts.from_record(facts)
        for name, labels, value in dumped["counters"]:
            self._counters[name, tuple(sorted(labels.items()))] = value
        for name, labels, totals in dumped["histograms"]:
            self._histograms[name, tuple(sorted(labels.items()))] = totals

    def add(self, dumped: Mapping[str, Any]) -> None:
        """Add the output of `dump` of another slot."""
        for name, facts in dumped["contracts"].items():
            self.add_facts(name, ContractFacts.from_record(facts))
        for name, labels, value in dumped["counters"]:
            self.count(name, labels, value)
        for name, labels, totals in dumped["histograms"]:
            key = (name, tuple(sorted(labels.items())))
            before = self._histograms.get(key, [0] * len(totals))
            self._histograms[key] = [*map(sum, zip(before, totals, strict=True))]

    def to_record(self) -> dict[str, Any]:
        """Return the totals for the slot's record: cumulative buckets, in seconds."""
        histograms = []
        for (name, labels), totals in self._histograms.items():
            running = np.cumsum(totals[:-1]).tolist()
            buckets = [[end, running[i]] for i, end in enumerate((*BUCKETS_SECONDS, "+Inf"))]
            histograms.append([name, dict(labels), {"buckets": buckets, "sum": totals[-1] / 1e6}])
        dumped = self.dump()
        return {
            "counters": dumped["counters"],
            "histograms": histograms,
            "contracts": dumped["contracts"],
        }
