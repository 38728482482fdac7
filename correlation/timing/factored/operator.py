"""Operator that evaluates one timing condition and returns its pairs in factored records.

The searches are those of `timing.operator`; certain pairs are not written one by one. If a stream
was declared again, its buffer may still hold events with histograms. Their pairs are written one by
one: consumers accept both forms (factored.expanding).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from correlation.operators import Evaluation, join_evaluations
from correlation.timing.factored.batch import FactoredBatch
from correlation.timing.factored.ranges import max_in_ranges
from correlation.timing.factored.search import correlate_spans
from correlation.timing.intervals.pairs import DECIDED_BY, Side
from correlation.timing.operator import TimingOperator

if TYPE_CHECKING:
    from correlation.buffers.columns import Int64s
    from correlation.operators import View
    from correlation.timing.operator import Search


class _Found(NamedTuple):
    batch: FactoredBatch
    record_timestamp_us: Int64s


class FactoredOperator(TimingOperator):
    """Operator of a timing condition with factored output; it keeps no state.

    Parameters
    ----------
    condition, streams
        As in `TimingOperator`. Events with histograms from before a change of the stream may still
        be buffered: their pairs are written one by one.
    """

    def evaluate(self, view: View) -> Evaluation:
        """See `Operator.evaluate`."""
        found = []
        counts: Counter[tuple[str, str, str]] = Counter()
        with_histograms = []
        for search in self._searches(view):
            if search.base.shape is not None or search.target.shape is not None:
                with_histograms.append(search)
                continue
            batch = self._factor(search)
            self._count(batch, counts)
            if len(batch.spans.base):
                found.append(_Found(batch, self._base_timestamps_us(view, batch)))
        name = {"condition": self._condition.name}
        none = np.zeros(0, np.int64)
        factored = Evaluation(
            results=[batch for batch, _ in found],
            alarms=sum(int(batch.spans.pairs.sum()) for batch, _ in found),
            counts=[
                (metric, name | ({label: value} if label else {}), count)
                for (metric, label, value), count in counts.items()
            ],
            ready_us=np.concatenate([none, *(it.batch.base_ready_us() for it in found)]),
            record_timestamp_us=np.concatenate([none, *(it.record_timestamp_us for it in found)]),
        )
        return join_evaluations([self._find_pairs(view, with_histograms), factored])

    def _factor(self, search: Search) -> FactoredBatch:
        base, target, groups, base_is_a, _ = search
        window = self._condition.window if base_is_a else self._condition.window.mirrored()
        spans = correlate_spans(
            Side(base.earliest, base.latest),
            Side(target.earliest, target.latest),
            groups,
            window,
            target_lengths=(target.min_uncertainty, target.max_uncertainty),
        )
        return FactoredBatch(
            self._condition, self._keyed, base, target, base_is_a, spans, self._attributes
        )

    def _count(self, batch: FactoredBatch, counts: Counter[tuple[str, str, str]]) -> None:
        spans = batch.spans
        for way, pairs in zip(DECIDED_BY, spans.decided.tolist(), strict=True):
            counts["pairs_total", "decided_by", way] += pairs
        for metric, count in zip(
            ("probe_region_events_total", "lookup_hits_total", "pair_evaluations_total"),
            spans.counts,
            strict=True,
        ):
            counts[metric, "", ""] += count
        counts["searches_total", "algorithm", self._algorithm] += 1
        for sort, records in batch.count_records().items():
            counts["factored_records_total", "record", sort] += records

    def _base_timestamps_us(self, view: View, batch: FactoredBatch) -> Int64s:
        """Return Kafka's timestamp of the latest record of each base event's pairs."""
        condition, spans = self._condition, batch.spans
        names = (condition.a, condition.b) if batch.base_is_a else (condition.b, condition.a)
        stamps = view.record_timestamp_us[names[0]][spans.base]
        if batch.target is not view.fresh.get(names[1]):
            return stamps
        return np.maximum(stamps, max_in_ranges(view.record_timestamp_us[names[1]], spans.reach()))
