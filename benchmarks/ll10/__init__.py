"""Repeat the experiments of Lee and Lee 2010, section 5: Figures 3 to 8, and further ones.

Figure 7 is a separate benchmark, `ll10.lookups`: its figures are counts, not times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.ll10.blocks import measure_blocks, report_blocks
from benchmarks.ll10.kernels import (
    measure_kernels,
    measure_slopes,
    report_kernels,
    report_slopes,
)
from benchmarks.ll10.measuring import warm_up
from benchmarks.ll10.rates import measure_costs, measure_rates, report_costs, report_rates
from benchmarks.ll10.thresholds import measure_thresholds, report_thresholds

if TYPE_CHECKING:
    from benchmarks.report import Report


def run(*, quick: bool = False) -> list[Report]:
    """Measure all figures."""
    warm_up()
    return [
        *report_rates(measure_rates(quick=quick)),
        report_costs(measure_costs(quick=quick)),
        report_blocks(measure_blocks(quick=quick)),
        report_thresholds(measure_thresholds(quick=quick)),
        report_kernels(measure_kernels(quick=quick)),
        report_slopes(measure_slopes(quick=quick)),
    ]
