"""Measure the savings of the pruning of Mok, Woo and Lee 2006 (PTJ)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.ptj.comparing import measure_joins, report_joins
from benchmarks.ptj.own import measure_own, report_own
from benchmarks.ptj.partitions import measure_partition, report_partition
from benchmarks.ptj.sizes import measure_sizes, report_sizes

if TYPE_CHECKING:
    from benchmarks.report import Report


def run(*, quick: bool = False) -> list[Report]:
    """Measure all tables."""
    return [
        report_partition(measure_partition(quick=quick)),
        report_joins(measure_joins(quick=quick)),
        report_sizes(measure_sizes(quick=quick)),
        report_own(measure_own(quick=quick)),
    ]
