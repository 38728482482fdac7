"""The benchmark that Novoseltsev 2013 (TSA) leaves open: event queries with garbage collection.

The comparison with Spark is a separate benchmark, `tsa.path`: it needs Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.tsa.alone import measure_alone, report_alone
from benchmarks.tsa.growth import measure_growth, report_growth
from benchmarks.tsa.many import measure_many, report_many

if TYPE_CHECKING:
    from benchmarks.report import Report


def run(*, quick: bool = False) -> list[Report]:
    """Measure all tables."""
    return [
        report_growth(measure_growth(quick=quick)),
        report_alone(measure_alone(quick=quick)),
        report_many(measure_many(quick=quick)),
    ]
