"""Event queries: how many combinations are compared and how they are decided."""

from __future__ import annotations

from deploy.dashboards.expressions import age, gauge, rate
from deploy.dashboards.panels import Board, Panel, Query, Row


def event_queries() -> Board:
    """Return the dashboard."""
    combinations = rate("query_combinations_total", "condition")
    alarms = rate("alarms_total", "condition")
    return Board(
        "event-queries",
        "Event queries",
        "How many combinations of events a query compares, how they are decided, and how many "
        "cannot be decided.",
        (
            Row(
                "Result",
                (
                    Panel(
                        "Alarms",
                        "Alarms of event queries per second.",
                        (Query(f"{alarms} and {combinations}", "{{condition}}"),),
                        "cps",
                    ),
                    Panel(
                        "Not decided",
                        "Combinations per second that were not reported, because an event that may "
                        "stop them is not known any more or may still come.",
                        (Query(rate("query_undecided_total", "condition"), "{{condition}}"),),
                        "cps",
                    ),
                ),
            ),
            Row(
                "Work",
                (
                    Panel(
                        "Combinations",
                        "Combinations of positive events per second.",
                        (Query(combinations, "{{condition}}"),),
                        "cps",
                    ),
                    Panel(
                        "Negated events",
                        "Negated events per second that were compared with combinations.",
                        (Query(rate("query_negated_events_total", "condition"), "{{condition}}"),),
                        "cps",
                    ),
                    Panel(
                        "Decisions",
                        "Combinations per second of queries with a threshold: by position, by a "
                        "filter with floating-point numbers, or exactly. Exact decisions are slow.",
                        (
                            Query(
                                rate("query_decisions_total", "condition", "decided_by"),
                                "{{condition}} {{decided_by}}",
                            ),
                        ),
                        "cps",
                        "areas",
                    ),
                    Panel(
                        "Needs events for",
                        "Time since the oldest event that a query needs.",
                        (
                            Query(
                                f"{age('condition_keep_timestamp_seconds', 'condition', 'stream')}"
                                f" and on (condition) {combinations}",
                                "{{condition}} {{stream}}",
                            ),
                        ),
                        "s",
                    ),
                    Panel(
                        "Buffered events",
                        "Buffered events that a query itself needs; the buffer of a stream also "
                        "has those that only other conditions need.",
                        (
                            Query(
                                f"{gauge('condition_buffered_events', 'condition', 'stream')}"
                                f" and on (condition) {combinations}",
                                "{{condition}} {{stream}}",
                            ),
                        ),
                        width=24,
                    ),
                ),
            ),
        ),
    )
