"""Job: how long batches take, whether they keep up, and what the state holds."""

from __future__ import annotations

from deploy.dashboards.expressions import age, gauge, rate, total
from deploy.dashboards.panels import Board, Panel, Query, Row, number


def job() -> Board:
    """Return the dashboard."""
    return Board(
        "job",
        "Job",
        "How long the batches of the Spark job take, whether it keeps up with its topics, and how "
        "much it keeps in memory.",
        (
            Row("State", _state()),
            Row("Batches", _batches()),
            Row("Memory", _memory()),
        ),
    )


def _state() -> tuple[Panel, ...]:
    return (
        number("Running", "Whether the job runs.", gauge("job_up"), "bool_yes_no", bad_below=1),
        number("Records lost", "Records lost so far.", total("records_lost_total"), bad_from=1),
        number("Unread records", "Records to read.", gauge("consumer_lag_records")),
        number(
            "Buffer memory",
            "Size of the buffers of all streams.",
            f"sum({gauge('state_bytes', 'stream')})",
            "bytes",
        ),
        number("Applied config", "Newest applied record.", gauge("config_applied_offset")),
        number("Newest config", "Newest record.", gauge("config_head_offset")),
    )


def _batches() -> tuple[Panel, ...]:
    phase = gauge("batch_duration_seconds", "phase")
    return (
        Panel(
            "Batch duration",
            "Duration of the newest batch. `addBatch` contains reading, correlation and writing.",
            (Query(phase, "{{phase}}"),),
            "s",
        ),
        Panel(
            "Records of a batch",
            "Records in the newest batch. Batches grow when the job falls behind.",
            (Query(gauge("batch_events"), "records"),),
        ),
        Panel(
            "Unread records by time",
            "A number that keeps growing means that the job is too slow.",
            (Query(gauge("consumer_lag_records"), "unread"),),
        ),
        Panel(
            "Time since the last batch",
            "A job with unread records completes a batch within seconds. The time keeps growing "
            "if the job hangs, or has no records to read.",
            (Query(age("last_batch_timestamp_seconds"), "since the last batch"),),
            "s",
        ),
        Panel(
            "Events",
            "Events per second of all streams.",
            (Query(rate("events_consumed_total"), "events"),),
            "cps",
        ),
        Panel(
            "Topics created again",
            "Time since an event topic was found to be another one of the same name.",
            (Query(age("event_topic_recreated_timestamp_seconds", "topic"), "{{topic}}"),),
            "s",
        ),
    )


def _memory() -> tuple[Panel, ...]:
    return (
        Panel(
            "Memory of the buffers",
            "Bytes of the buffers, by stream. They are kept in the state and in the memory of the "
            "workers.",
            (Query(gauge("state_bytes", "stream"), "{{stream}}"),),
            "bytes",
            "areas",
        ),
        Panel(
            "Memory of the processes",
            "Bytes of the job on the machine of its driver: the driver, Spark's Java process, and "
            "the Python workers. Pages that processes share are divided among them.",
            (Query(gauge("job_memory_bytes", "process"), "{{process}}"),),
            "bytes",
            "areas",
        ),
        Panel(
            "Buffered events",
            "Events in the buffers, by stream.",
            (Query(gauge("buffered_events", "stream"), "{{stream}}"),),
            kind="areas",
        ),
    )
