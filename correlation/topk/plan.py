"""Cost estimate and evaluation plan of a top-k condition, for display."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from correlation.condition_kind import Load
from correlation.resources.durations import format_duration
from correlation.resources.streams import Stream
from correlation.topk.condition import TopKCondition

_NO_DELAY = (
    "With max_delay 0 a set takes effect when each partition has reached a later time: until then "
    "another set of the same time may arrive."
)
_MERGED = "Each cell of the grid has a list; the lists of all cells are merged after each batch."


def derive_costs(
    condition: TopKCondition, streams: Mapping[str, Stream], load: Load
) -> dict[str, Any]:
    """Compute the expected costs of a condition before it is registered.

    Parameters
    ----------
    condition : TopKCondition
        The condition.
    streams : mapping of name to Stream
        Its streams.
    load : Load
        Events per second of the streams, as far as known.

    Returns
    -------
    dict
        buffer_horizon_us: how long after its time a set is kept while all streams keep their
        max_delay. worst_case_alarm_latency_us: time from the time of a set until it takes effect,
        if each partition reaches a later time immediately; another set of its time may come before.
        If the rates of all streams are known: expected_buffered_events, which counts every copy in
        a grid, and max_stock_pairs, the maximum number of pairs that are in the lists or may be
        later.
    """
    latency = max(streams[name].watermark_delay_us for name in condition.streams)
    horizon = condition.window_us + latency
    derived: dict[str, Any] = {
        "buffer_horizon_us": dict.fromkeys(condition.streams, horizon),
        "worst_case_alarm_latency_us": latency,
    }
    if all(name in load.rates for name in condition.streams):
        events = {
            name: load.rates[name] * streams[name].partitioning.groups * horizon / 1e6
            for name in condition.streams
        }
        derived["expected_buffered_events"] = {name: round(it) for name, it in events.items()}
        derived["max_stock_pairs"] = round(sum(events.values()) * condition.k)
    return derived


def plan_condition(condition: TopKCondition, streams: Mapping[str, Stream]) -> dict[str, Any]:
    """Return a description of how the condition is evaluated.

    Parameters
    ----------
    condition : TopKCondition
        The condition.
    streams : mapping of name to Stream
        Its streams.

    Returns
    -------
    dict
        sentences, similarity, search, report, stock, and partitioning.
    """
    of = (
        f"pairs of one set of {condition.a} and one of {condition.b}"
        if condition.crossed
        else f"pairs of sets of {condition.a}"
    )
    each = "of each join key " if condition.per_key else ""
    partitioning = streams[condition.a].partitioning
    window = format_duration(condition.window_us)
    waits = any(streams[name].max_delay_us for name in condition.streams)
    return {
        "sentences": [
            f"The list {each}holds the {condition.k} most similar {of}.",
            f"A set takes part for {window}; a pair ends with its older set.",
            "Sets take effect in the order of their times, when all watermarks have passed them.",
            *([] if waits else [_NO_DELAY]),
            *([_MERGED] if partitioning.groups > 1 else []),
        ],
        "similarity": condition.similarity.name,
        "search": "shortest inverted list first"
        if condition.shortest
        else "list of the newest token first",
        "report": "every set and expiry" if condition.every else "the net change of a batch",
        "stock": "pairs that fewer than k better pairs outlive; at most k for each valid set",
        "partitioning": partitioning.describe(),
    }
