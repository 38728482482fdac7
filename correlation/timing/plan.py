"""Cost estimate and evaluation plan of a timing condition, for display."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from correlation.condition_kind import Chance, Load
from correlation.resources.durations import format_duration
from correlation.timing.chance import SECONDS_PER_HOUR, count_chance_alarms
from correlation.timing.conditions import BEST, PAIRS, UNMATCHED
from correlation.timing.final_chance import count_final_alarms
from correlation.timing.histograms.reach import stream_reach
from correlation.timing.histograms.regions import locate_supports
from correlation.timing.intervals.choosing import choose_algorithm
from correlation.timing.intervals.regions import describe_regions, locate_regions
from correlation.two_streams import NO_FILTERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from correlation.resources.streams import Stream
    from correlation.timing.conditions import TimingCondition

# Evaluation of conditions that report each A once; their `algorithm` field is not used.
_WHY = {
    BEST: "emit: each B within reach of an A is compared exactly with the best B so far",
    UNMATCHED: "emit: satisfaction regions find the B of most A; for the others, probabilities are "
    "computed until one B satisfies the condition",
}
# Evaluation of streams that declare templates or histograms.
_WHY_HISTOGRAMS = (
    "a stream declares templates or histograms: the s-windows of two templates decide their pairs. "
    "They are computed once, step by step from the registration on. Until then, and for events "
    "with their own histogram, the supports decide as many pairs as possible (the regions below), "
    "quantiles of the histograms decide most of the others, and the probability decides the rest. "
    "indexed and lazy_lookup require all s-windows of a search; without them they behave as lazy "
    "(coincide_searches_total counts the algorithms used)"
)
_WHY_COMPUTED = (
    "requested: simple computes the probability of every pair; ssort computes it for the pairs "
    "within reach that quantiles of the histograms cannot decide"
)


def derive_costs(
    condition: TimingCondition, streams: Mapping[str, Stream], load: Load
) -> dict[str, Any]:
    """Compute the expected costs of a condition before it is registered.

    Parameters
    ----------
    condition : TimingCondition
        The condition.
    streams : mapping of name to Stream
        Its streams.
    load : Load
        Events per second of the streams, if known, and the number of keys.

    Returns
    -------
    dict
        buffer_horizon_us: how long after its latest time an event of each stream is kept while
        the other stream keeps its max_delay. worst_case_alarm_latency_us: time from the later
        latest time of a pair to the arrival of its last record or, if each A is reported once,
        from the latest time of A until no further B can arrive. If both rates are known:
        expected_buffered_events, which counts every copy in a grid, and chance_alarms_per_hour
        for independent streams (timing.chance, timing.final_chance), unless their events carry
        histograms of their own or the condition has filters: the share of events that match is
        unknown. If no pair can be satisfied: warnings, sentences on the reason.
    """
    a, b = streams[condition.a], streams[condition.b]
    min_s, max_s = stream_reach(condition.window, a, b)
    horizon_a, horizon_b = max(max_s, 0) + b.max_delay_us, max(-min_s, 0) + a.max_delay_us
    latency = max(a.max_delay_us, b.max_delay_us)
    if condition.block_size is not None:
        latency += condition.block_interval_us
        # Events that wait for a block keep their targets buffered as well.
        horizon_a += condition.block_interval_us
        horizon_b += condition.block_interval_us
    if condition.emit != PAIRS:
        # Events of B are kept until every A that may need them is final.
        horizon_b = max(max(a.max_delay_us, max_s + b.max_delay_us) - min_s, 0)
        latency = max(a.max_delay_us, max_s + b.watermark_delay_us)
    horizons = {condition.a: horizon_a, condition.b: horizon_b}
    if condition.a == condition.b:
        horizons = {condition.a: max(horizon_a, horizon_b)}
    derived: dict[str, Any] = {
        "buffer_horizon_us": horizons,
        "worst_case_alarm_latency_us": latency,
        "can_be_satisfied": min_s <= max_s,
    }
    if warnings := find_warnings(condition, streams):
        derived["warnings"] = warnings
    if all(name in load.rates for name in condition.streams):
        derived["expected_buffered_events"] = {
            name: round(load.rates[name] * horizon / 1e6 * streams[name].partitioning.groups)
            for name, horizon in horizons.items()
        }
        count = count_chance_alarms if condition.emit == PAIRS else count_final_alarms
        alarms = count(condition, a, b, load) if condition.where == NO_FILTERS else None
        if alarms is not None:
            derived["chance_alarms_per_hour"] = alarms
    return derived


def find_warnings(condition: TimingCondition, streams: Mapping[str, Stream]) -> list[str]:
    """Return why no pair can be satisfied, as sentences with remedies.

    Parameters
    ----------
    condition : TimingCondition
        A condition that its streams support.
    streams : mapping of name to Stream
        Its streams.
    """
    min_s, max_s = stream_reach(condition.window, streams[condition.a], streams[condition.b])
    if min_s <= max_s:
        return []
    reason = (
        f"no pair of {condition.a} and {condition.b} can reach the threshold: the window is too "
        "narrow for the uncertainty of their events; widen the window, or reduce the threshold or "
        "the uncertainty that the streams declare"
    )
    return [reason]


def measure_chance(condition: TimingCondition, streams: Mapping[str, Stream]) -> Chance | None:
    """Compute the chance alarms of a condition that reports every pair.

    Parameters
    ----------
    condition : TimingCondition
        The registered condition.
    streams : mapping of name to Stream
        Its streams.

    Returns
    -------
    Chance or None
        None with `emit` best or unmatched, whose alarms are not in proportion to the rates; with
        filters, because the share of events that match is unknown; and if events carry histograms
        of their own.
    """
    if condition.emit != PAIRS or condition.where != NO_FILTERS:
        return None
    once = Load({condition.a: 1.0, condition.b: 1.0})
    per_hour = count_chance_alarms(condition, streams[condition.a], streams[condition.b], once)
    if per_hour is None:
        return None
    return Chance({"a": condition.a, "b": condition.b}, per_hour / SECONDS_PER_HOUR)


def plan_condition(condition: TimingCondition, streams: Mapping[str, Stream]) -> dict[str, Any]:
    """Return a description of how the condition is evaluated.

    Parameters
    ----------
    condition : TimingCondition
        The registered condition.
    streams : mapping of name to Stream
        Its streams.
    """
    a, b = streams[condition.a], streams[condition.b]
    lengths = (
        a.min_uncertainty_us,
        a.max_uncertainty_us,
        b.min_uncertainty_us,
        b.max_uncertainty_us,
    )
    min_s, max_s = stream_reach(condition.window, a, b)
    has_histograms = a.has_shapes or b.has_shapes
    locate = locate_supports if has_histograms else locate_regions
    return {
        **_describe_search(condition, lengths, has_histograms=has_histograms),
        "regions": describe_regions(condition.window, *lengths, locate),
        "threshold": f"{condition.threshold:f}",
        "emit": condition.emit,
        "output": condition.output,
        **_describe_limit(condition),
        "reported": _describe_block(condition)
        if condition.emit == PAIRS
        else f"when the watermark of {condition.b} exceeds latest of {condition.a} "
        f"+ ({format_duration(max_s)}): no further {condition.b} can match",
        "keep": _describe_keep(condition, min_s, max_s),
        "sharing": "one buffer per stream and slot, shared by all conditions on the stream; "
        + (
            f"conditions on these streams with similar windows{_with_filters(condition)} share the "
            "search for events within reach"
            if condition.emit == PAIRS and condition.algorithm != "simple"
            else "the search for events within reach is not shared"
        ),
        "partitioning": a.partitioning.describe(),
        **_describe_filters(condition),
    }


def _with_filters(condition: TimingCondition) -> str:
    return "" if condition.where == NO_FILTERS else " and equal filters"


def _describe_filters(condition: TimingCondition) -> dict[str, Any]:
    """Return the filters and when they are evaluated; empty without filters."""
    if condition.where == NO_FILTERS:
        return {}
    return {
        "where": condition.where.to_document(),
        "filters": "evaluated before the search, once per distinct value of an attribute; the "
        "buffers hold all events of the streams, because conditions share them",
    }


def _describe_block(condition: TimingCondition) -> str:
    """Return a description of when a pair is reported."""
    if condition.block_size is None:
        return "when both events of a pair have been read"
    return (
        f"when {condition.block_size} events of the slot wait for a block, or the first of them "
        f"has waited for {format_duration(condition.block_interval_us)}"
    )


def _describe_limit(condition: TimingCondition) -> dict[str, str]:
    """Return the limit of the pairs of a block; empty without one."""
    if condition.max_pairs is None:
        return {}
    return {
        "limit": f"a slot reports at most {condition.max_pairs:,} pairs of a block; "
        "coincide_limited_blocks_total counts the blocks with more pairs"
    }


def _describe_search(
    condition: TimingCondition, lengths: tuple[int, int, int, int], *, has_histograms: bool
) -> dict[str, str]:
    """Return the algorithm and the reason for it."""
    if has_histograms:
        asked = condition.algorithm if condition.emit == PAIRS else condition.emit
        computed = asked in {"simple", "ssort"}
        return {"algorithm": asked, "why": _WHY_COMPUTED if computed else _WHY_HISTOGRAMS}
    if condition.emit == PAIRS:
        choice = choose_algorithm(condition.algorithm, condition.window, lengths[:2], lengths[2:])
        return {"algorithm": choice.algorithm, "why": choice.why}
    return {"algorithm": condition.emit, "why": _WHY[condition.emit]}


def _describe_keep(condition: TimingCondition, min_s: int, max_s: int) -> dict[str, str]:
    """Return the formula of the keep value of each stream."""
    a, b = condition.a, condition.b
    mark_a, mark_b = f"watermark of {a}", f"watermark of {b}"
    if a == b:
        ago = max(max_s, -min_s, *([] if condition.emit == PAIRS else [max_s - min_s]))
        return {a: f"{mark_a} - ({format_duration(ago)})"}
    keep_a, keep_b = f"{mark_b} - ({format_duration(max_s)})", mark_a
    if condition.emit != PAIRS:
        keep_b = f"min({mark_a}, {keep_a})"
    return {a: keep_a, b: f"{keep_b} + ({format_duration(min_s)})"}
