"""API: how many requests the service answers, and how fast."""

from __future__ import annotations

from deploy.dashboards.expressions import (
    INSTANCE,
    buckets,
    gauge,
    mean,
    observations,
    rate,
    total,
)
from deploy.dashboards.overview import UP
from deploy.dashboards.panels import Board, Panel, Query, Row, number
from deploy.dashboards.rules import quantiles


def api() -> Board:
    """Return the dashboard."""
    return Board(
        "api",
        "API",
        "How many requests and live feeds the service answers, how fast, and whether it can read "
        "its topics.",
        (
            Row("State", _state()),
            Row("Requests", _requests()),
            Row("Live alarms", _live_alarms()),
        ),
    )


def _state() -> tuple[Panel, ...]:
    return (
        number("Service", "Whether Prometheus reaches it.", UP, "bool_yes_no", bad_below=1),
        number(
            "Config records unreadable",
            "`GET /readyz` lists them.",
            gauge("config_records_unreadable"),
            bad_from=1,
        ),
        number(
            "Metrics records unreadable",
            "Service and job may have different versions.",
            total("metrics_records_unreadable_total"),
            bad_from=1,
        ),
        number("Newest config", "Offset of the newest record.", gauge("config_head_offset")),
    )


def _requests() -> tuple[Panel, ...]:
    name = "http_request_duration_seconds"
    scraped = f"scrape_duration_seconds{{{INSTANCE}}}"
    return (
        Panel("Requests", "Requests per second.", (Query(observations(name), "requests"),), "cps"),
        Panel(
            "Duration",
            "Writes wait until their record is read back from Kafka.",
            (Query(quantiles(name), "{{quantile}}"), Query(mean(name), "mean")),
            "s",
        ),
        Panel("Durations", "Requests by duration.", (Query(buckets(name), "{{le}}"),), "s", "heat"),
        Panel("Scrape", "Time that Prometheus needs.", (Query(scraped, "scrape"),), "s"),
    )


def _live_alarms() -> tuple[Panel, ...]:
    followed, dropped = "alarm_records_followed_total", "alarm_readers_dropped_total"
    return (
        Panel(
            "Readers",
            "Streams of `GET /v1/alarms`; a dropped client read too slowly.",
            (
                Query(gauge("alarm_readers"), "open"),
                Query(total(dropped), "dropped since the start"),
            ),
        ),
        Panel(
            "Alarms read",
            "Records per second that the service reads for these streams.",
            (Query(rate(followed), "records"),),
            "cps",
        ),
    )
