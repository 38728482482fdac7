"""The whole path, Kafka to Spark to Kafka, against Spark's own outer join; and 100 queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.tsa.against import measure_against, report_against
from benchmarks.tsa.answers import measure_answers, report_answers
from benchmarks.tsa.sharing import measure_sharing, report_sharing

if TYPE_CHECKING:
    from benchmarks.report import Report


def run(*, quick: bool = False) -> list[Report]:
    """Measure all tables."""
    return [
        report_sharing(measure_sharing(quick=quick)),
        report_against(measure_against(quick=quick)),
        report_answers(*measure_answers(quick=quick)),
    ]
