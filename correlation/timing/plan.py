"""What a timing condition costs and how it is evaluated, for a person to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from correlation.durations import format_duration
from correlation.timing.chance import count_chance_alarms
from correlation.timing.choosing import choose_algorithm
from correlation.timing.regions import describe_regions
from correlation.timing.satisfaction import bounds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from correlation.operators import Load
    from correlation.streams import Stream
    from correlation.timing.conditions import TimingCondition


def derive_costs(
    condition: TimingCondition, streams: Mapping[str, Stream], load: Load
) -> dict[str, Any]:
    """Derive what the condition costs before it is registered.

    Parameters
    ----------
    condition : TimingCondition
        To be judged.
    streams : mapping of name to Stream
        Its streams.
    load : Load
        Events per second where they are known, and their keys.

    Returns
    -------
    dict
        buffer_horizon_us: how long after its latest time an event of each stream is kept while
        the other stream keeps its promises; worst_case_alarm_latency_us: from the later latest
        time of a pair to the arrival of its last record; with both rates also
        expected_buffered_events, and chance_alarms_per_hour of streams that are independent of
        each other (timing.chance).
    """
    a, b = streams[condition.a], streams[condition.b]
    least, greatest = bounds(
        condition.window, a.shortest_us, a.longest_us, b.shortest_us, b.longest_us
    )
    horizon_a, horizon_b = max(greatest, 0) + b.max_delay_us, max(-least, 0) + a.max_delay_us
    horizons = {condition.a: horizon_a, condition.b: horizon_b}
    if condition.a == condition.b:
        horizons = {condition.a: max(horizon_a, horizon_b)}
    derived: dict[str, Any] = {
        "buffer_horizon_us": horizons,
        "worst_case_alarm_latency_us": max(a.max_delay_us, b.max_delay_us),
        "can_be_satisfied": least <= greatest,
    }
    if all(name in load.rates for name in condition.streams):
        derived["expected_buffered_events"] = {
            name: round(load.rates[name] * horizon / 1e6) for name, horizon in horizons.items()
        }
        derived["chance_alarms_per_hour"] = count_chance_alarms(condition, a, b, load)
    return derived


def plan_condition(condition: TimingCondition, streams: Mapping[str, Stream]) -> dict[str, Any]:
    """Describe how the condition is evaluated.

    Parameters
    ----------
    condition : TimingCondition
        As registered.
    streams : mapping of name to Stream
        Its streams.
    """
    a, b = streams[condition.a], streams[condition.b]
    lengths = (a.shortest_us, a.longest_us, b.shortest_us, b.longest_us)
    least, greatest = bounds(condition.window, *lengths)
    choice = choose_algorithm(condition.algorithm, condition.window, lengths[:2], lengths[2:])
    return {
        "algorithm": choice.algorithm,
        "why": choice.why,
        "regions": describe_regions(condition.window, *lengths),
        "keep": {
            condition.a: f"low mark of {condition.b} - ({format_duration(greatest)})",
            condition.b: f"low mark of {condition.a} + ({format_duration(least)})",
        }
        if condition.a != condition.b
        else {
            condition.a: f"low mark of {condition.a} - ({format_duration(max(greatest, -least))})"
        },
        "sharing": "one buffer per stream and slot, kept for all conditions on the stream",
    }
