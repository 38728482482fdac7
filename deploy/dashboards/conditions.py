"""Conditions: how many alarms, by which way, how fast, and how much work they take."""

from __future__ import annotations

from deploy.dashboards.expressions import age, chance_rate, gauge, rate
from deploy.dashboards.panels import Board, Panel, Query, Row
from deploy.dashboards.rules import quantiles, share


def conditions() -> Board:
    """Return the dashboard."""
    return Board(
        "conditions",
        "Conditions",
        "How many alarms a condition has, how fast they come, and how much work they take.",
        (
            Row("Alarms", _alarms()),
            Row("Response time", _times()),
            Row("Probe regions", _regions()),
            Row("Work", _work()),
        ),
    )


def _alarms() -> tuple[Panel, ...]:
    return (
        Panel(
            "Alarms",
            "Alarms per second.",
            (Query(rate("alarms_total", "condition"), "{{condition}}"),),
            "cps",
        ),
        Panel(
            "Pairs by decision",
            "Pairs per second, by the way in which they were decided: position, tables or "
            "probability.",
            (
                Query(
                    rate("pairs_total", "condition", "decided_by"), "{{condition}} {{decided_by}}"
                ),
            ),
            "cps",
            "areas",
        ),
        _chance(),
    )


def _chance() -> Panel:
    seen, expected = rate("alarms_total", "condition"), chance_rate()
    return Panel(
        "Alarms beside chance",
        "Alarms per hour, and those that unrelated events would cause at the present rates of the "
        "streams: many more alarms than expected are not due to chance. Enter the number of join "
        "keys above. On recorded streams that are sent faster than they were recorded, the "
        "expected number is too high.",
        (
            Query(f"3600 * {seen} and on (condition) {expected}", "{{condition}} seen"),
            Query(f"3600 * {expected}", "{{condition}} by chance"),
        ),
        width=24,
    )


def _times() -> tuple[Panel, ...]:
    return (
        Panel(
            "Response time",
            "From the later latest time of the events to the alarm; live streams only. It includes "
            "the delay of the records.",
            (Query(quantiles("response_time_seconds", "condition"), "{{condition}} {{quantile}}"),),
            "s",
        ),
        Panel(
            "Pipeline latency",
            "From Kafka's timestamp of the later record to the pair.",
            (
                Query(
                    quantiles("pipeline_latency_seconds", "condition"), "{{condition}} {{quantile}}"
                ),
            ),
            "s",
        ),
    )


def _regions() -> tuple[Panel, ...]:
    return (
        Panel(
            "Events in probe regions",
            "Events per second whose position did not decide. Those that the tables do not decide "
            "need a probability.",
            (
                Query(rate("probe_region_events_total", "condition"), "{{condition}} probed"),
                Query(rate("lookup_hits_total", "condition"), "{{condition}} by the tables"),
                Query(rate("pair_evaluations_total", "condition"), "{{condition}} one by one"),
            ),
            "cps",
        ),
        Panel(
            "Hit ratio of the look-up tables",
            "Share of the events in probe regions that the tables decided, over 5 minutes and "
            "since the first event.",
            (
                Query(share("lookup_hits_total", "condition", "5m"), "{{condition}} 5 minutes"),
                Query(gauge("lookup_hit_ratio", "condition"), "{{condition}} since the beginning"),
            ),
            "percentunit",
        ),
    )


def _work() -> tuple[Panel, ...]:
    return (
        Panel(
            "Searches by algorithm",
            "Searches per second of a block in a segment of a buffer.",
            (
                Query(
                    rate("searches_total", "condition", "algorithm"), "{{condition}} {{algorithm}}"
                ),
            ),
            "cps",
        ),
        Panel(
            "Blocks with more pairs than max_pairs",
            "Blocks per second of which some pairs are not reported.",
            (Query(rate("limited_blocks_total", "condition"), "{{condition}}"),),
            "cps",
        ),
        Panel(
            "Needs events for",
            "Time since the oldest event that a condition needs; the longest time of a stream "
            "determines the size of its buffer.",
            (
                Query(
                    age("condition_keep_timestamp_seconds", "condition", "stream"),
                    "{{condition}} {{stream}}",
                ),
            ),
            "s",
        ),
        Panel(
            "Buffered events",
            "Buffered events that a condition itself needs; the buffer of a stream also has those "
            "that only other conditions need.",
            (
                Query(
                    gauge("condition_buffered_events", "condition", "stream"),
                    "{{condition}} {{stream}}",
                ),
            ),
        ),
        Panel(
            "Factored records",
            "Records per second of conditions with `output: factored`.",
            (
                Query(
                    rate("factored_records_total", "condition", "record"),
                    "{{condition}} {{record}}",
                ),
            ),
            "cps",
            width=24,
        ),
    )
