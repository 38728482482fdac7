"""The whole path of a top-k condition, Kafka to Spark to Kafka: rate, response time, memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.swoop.backlog import measure_backlogs, report_backlogs
from benchmarks.swoop.live import measure_live, report_live
from benchmarks.swoop.phases import running_job
from benchmarks.swoop.windows import measure_windows, report_windows

if TYPE_CHECKING:
    from benchmarks.report import Report


def run(*, quick: bool = False) -> list[Report]:
    """Measure all tables."""
    with running_job() as job:
        backlogs = measure_backlogs(job, quick=quick)
        live = measure_live(job, quick=quick)
    return [
        report_backlogs(backlogs),
        report_live(live),
        report_windows(measure_windows(quick=quick)),
    ]
