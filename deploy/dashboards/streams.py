"""Streams: do the declarations fit the events that arrive."""

from __future__ import annotations

from deploy.dashboards.expressions import age, gauge, rate
from deploy.dashboards.panels import Board, Panel, Query, Row
from deploy.dashboards.rules import quantiles, share


def streams() -> Board:
    """Return the dashboard."""
    return Board(
        "streams",
        "Streams",
        "Whether the declared limits of a stream fit its events: a limit that is too small makes "
        "events late or dead letters, one that is too large makes buffers large and alarms slow.",
        (
            Row("Declared and seen", _declared()),
            Row("Records", _records()),
            Row("Progress and buffers", _progress()),
        ),
    )


def _declared() -> tuple[Panel, ...]:
    delay = gauge("declared_seconds", "stream", limit="max_delay")
    lengths = f"{gauge('declared_seconds', 'stream', 'limit')} unless {delay}"
    near = gauge("near_limit_ratio", "stream", "limit")
    return (
        Panel(
            "Uncertainty",
            "Length of the intervals beside the declared limits. A max that stays far below its "
            "limit leaves room for a smaller `max_uncertainty`.",
            (
                Query(lengths, "{{stream}} declared {{limit}}"),
                Query(gauge("interval_length_max_seconds", "stream"), "{{stream}} seen max"),
                Query(gauge("interval_length_min_seconds", "stream"), "{{stream}} seen min"),
                Query(
                    quantiles("interval_length_seconds", "stream", quantile="0.99"),
                    "{{stream}} 99 %",
                ),
            ),
            "s",
        ),
        Panel(
            "Delay",
            "Delay of the records beside `max_delay`; live streams only. A max that reaches nine "
            "tenths of the limit fires an alert.",
            (
                Query(delay, "{{stream}} declared {{limit}}"),
                Query(gauge("transmission_delay_max_seconds", "stream"), "{{stream}} seen max"),
                Query(gauge("transmission_delay_min_seconds", "stream"), "{{stream}} seen min"),
                Query(quantiles("transmission_delay_seconds", "stream"), "{{stream}} {{quantile}}"),
            ),
            "s",
        ),
        Panel(
            "Events near a limit",
            "Share of the events within a tenth of each limit, since the declaration. A high share "
            "at a limit suggests that the limit is too tight.",
            (Query(near, "{{stream}} {{limit}}"),),
            "percentunit",
        ),
        Panel(
            "Late events",
            "Share of the events that came later than `max_delay`, over 15 minutes; above 1 % an "
            "alert fires.",
            (Query(share("events_late_total", "stream", "15m"), "{{stream}}"),),
            "percentunit",
            bad_from=0.01,
        ),
    )


def _records() -> tuple[Panel, ...]:
    return (
        Panel(
            "Events",
            "Events per second.",
            (Query(rate("events_consumed_total", "stream"), "{{stream}}"),),
            "cps",
            "areas",
        ),
        Panel(
            "Dead letters",
            "Records per second, by reason; docs/operations.md explains each reason.",
            (Query(rate("events_rejected_total", "stream", "reason"), "{{stream}} {{reason}}"),),
            "cps",
            "areas",
        ),
        Panel(
            "Late",
            "Late events per second.",
            (Query(rate("events_late_total", "stream"), "{{stream}}"),),
            "cps",
        ),
        Panel(
            "Filtered",
            "Records per second that do not match `where` of the stream.",
            (Query(rate("events_filtered_total", "stream"), "{{stream}}"),),
            "cps",
        ),
    )


def _progress() -> tuple[Panel, ...]:
    return (
        Panel(
            "Watermark behind",
            "Time since the watermark.",
            (Query(age("watermark_timestamp_seconds", "stream"), "{{stream}}"),),
            "s",
        ),
        Panel(
            "Kept for",
            "Time since the oldest event that the buffer may contain.",
            (Query(age("buffer_keep_timestamp_seconds", "stream"), "{{stream}}"),),
            "s",
        ),
        Panel(
            "Buffered events",
            "Events that later pairs may need.",
            (Query(gauge("buffered_events", "stream"), "{{stream}}"),),
            kind="areas",
        ),
        Panel(
            "Collected events",
            "Events per second that left the buffers.",
            (Query(rate("events_collected_total", "stream"), "{{stream}}"),),
            "cps",
        ),
    )
