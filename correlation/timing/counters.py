"""Counters of timing conditions: their help strings, and their part of the report of a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from correlation.reporting import Ratio, ReplaySummary
from correlation.timing.intervals.pairs import DECIDED_BY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from correlation.reporting import CounterOf
    from correlation.timing.conditions import TimingCondition

METRICS = {
    "pairs_total": "Pairs found, by method of decision.",
    "probe_region_events_total": "Events found in a probe region.",
    "lookup_hits_total": "Events in probe regions decided by the look-up tables.",
    "pair_evaluations_total": "Events in probe regions decided one by one.",
    "searches_total": "Searches of a block's events in a segment, by algorithm.",
    "limited_blocks_total": "Blocks with more pairs than max_pairs.",
    "factored_records_total": "Factored records written: tables of targets and base events.",
}


HIT_RATIO = Ratio(
    "lookup_hits_total",
    "probe_region_events_total",
    "Share of the events in probe regions decided by the look-up tables.",
)
RATIOS = {"lookup_hit_ratio": HIT_RATIO}


def _summarise(count: CounterOf) -> dict[str, Any]:
    probed, hits = count(HIT_RATIO.denominator), count(HIT_RATIO.numerator)
    return {
        "decided_by": {way: count("pairs_total", decided_by=way) for way in DECIDED_BY},
        "hit_ratio": round(hits / probed, 6) if probed else None,
        "evaluations": count("pair_evaluations_total"),
    }


def _show_hit_ratio(facts: Mapping[str, Any]) -> str:
    ratio = facts["hit_ratio"]
    return "no probing" if ratio is None else f"{ratio:.3f}"


SUMMARY = ReplaySummary("pairs", _summarise, {"hit ratio": _show_hit_ratio})


def find_missing(condition: TimingCondition, count: CounterOf) -> str | None:
    """Return how many blocks had pairs that are not reported; None if there were none."""
    limited = count("limited_blocks_total")
    if condition.max_pairs is None or limited == 0:
        return None
    blocks = "1 block has" if limited == 1 else f"{limited} blocks have"
    return (
        f"{blocks} had more pairs than max_pairs since the condition was registered; the pairs "
        "above the limit are not reported; coincide_limited_blocks_total shows whether there are "
        "new ones"
    )
