"""Overview: is everything healthy, how much arrives, how much is found, and how late."""

from __future__ import annotations

from deploy.dashboards.expressions import INSTANCE, age, gauge, rate, total
from deploy.dashboards.panels import Board, Panel, Query, Row, number
from deploy.dashboards.rules import quantiles

# Prometheus' own series.
UP = f"up{{{INSTANCE}}}"
FIRING = 'ALERTS{alertname=~"Coincide.+",alertstate="firing"}'


def overview() -> Board:
    """Return the dashboard."""
    return Board(
        "overview",
        "Overview",
        "Whether the installation is healthy, how many events and alarms there are, and how late "
        "alarms are.",
        (
            Row("Health", _health()),
            Row("Rates", _rates()),
            Row("Delay", _delay()),
        ),
    )


def _health() -> tuple[Panel, ...]:
    behind = f"{gauge('config_head_offset')} - {gauge('config_applied_offset')}"
    return (
        number(
            "Service", "Whether Prometheus reaches the service.", UP, "bool_yes_no", bad_below=1
        ),
        number(
            "Job",
            "Whether the job runs; `GET /v1/job` has the last exception.",
            gauge("job_up"),
            "bool_yes_no",
            bad_below=1,
        ),
        number(
            "Alerts",
            "Alerts that fire now, of all installations.",
            f"count({FIRING}) or vector(0)",
            bad_from=1,
        ),
        number(
            "Config records to apply",
            "Records of the config topic that the job has not applied.",
            behind,
            bad_from=1,
        ),
        number(
            "Records lost",
            "Pairs with lost records may be missing.",
            total("records_lost_total"),
            bad_from=1,
        ),
        number(
            "Output topics missing",
            "The alarms of these topics go to the dead-letter topic.",
            gauge("missing_output_topics"),
            bad_from=1,
        ),
        Panel(
            "Firing alerts",
            "Each alert is explained in docs/runbook.md.",
            (Query(f"sum by (alertname) ({FIRING})", "{{alertname}}"),),
            kind="areas",
            width=24,
        ),
    )


def _rates() -> tuple[Panel, ...]:
    return (
        Panel(
            "Events",
            "Events per second, by stream.",
            (Query(rate("events_consumed_total", "stream"), "{{stream}}"),),
            "cps",
            "areas",
        ),
        Panel(
            "Alarms",
            "Alarms per second, by condition.",
            (Query(rate("alarms_total", "condition"), "{{condition}}"),),
            "cps",
            "areas",
        ),
        Panel(
            "Late events and dead letters",
            "Late events are written to the late topic and may miss results; dead letters are "
            "records that are not events.",
            (
                Query(rate("events_late_total", "stream"), "late: {{stream}}"),
                Query(rate("events_rejected_total", "stream"), "dead letters: {{stream}}"),
            ),
            "cps",
        ),
        Panel(
            "Changes of top-k lists",
            "Pairs per second that entered, left or moved, by condition.",
            (Query(rate("topk_changes_total", "condition"), "{{condition}}"),),
            "cps",
        ),
    )


def _delay() -> tuple[Panel, ...]:
    return (
        Panel(
            "Pipeline latency",
            "From Kafka's timestamp of the later record to the pair: 50, 95 and 99 % of the pairs "
            "are faster.",
            (
                Query(
                    quantiles("pipeline_latency_seconds", "condition"), "{{condition}} {{quantile}}"
                ),
            ),
            "s",
        ),
        Panel(
            "Unread records",
            "A number that keeps growing means that the job is too slow.",
            (Query(gauge("consumer_lag_records"), "unread"),),
        ),
        Panel(
            "Watermark behind",
            "Time since the watermark: on a live stream about `max_delay` and a batch, on a "
            "recorded stream the age of its records. It keeps growing if a partition is silent and "
            "has no heartbeats.",
            (Query(age("watermark_timestamp_seconds", "stream"), "{{stream}}"),),
            "s",
            width=24,
        ),
    )
