"""Repeat the experiments of Mann, Augsten & Jensen 2017 (SWOOP), section 7."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.swoop.latency import measure_latencies, report_latencies
from benchmarks.swoop.orders import measure_orders, report_orders
from benchmarks.swoop.rates import (
    measure_messages,
    measure_rates,
    report_costs,
    report_messages,
    report_rates,
)
from benchmarks.swoop.rebuilding import measure_rebuilding, report_rebuilding
from benchmarks.swoop.similarities import measure_similarities, report_similarities
from benchmarks.swoop.spares import measure_spares, report_spares

if TYPE_CHECKING:
    from benchmarks.report import Report


def run(*, quick: bool = False) -> list[Report]:
    """Measure all tables."""
    rates = measure_rates(quick=quick)
    return [
        report_rates(rates),
        report_costs(rates),
        report_latencies(measure_latencies(quick=quick)),
        report_similarities(measure_similarities(quick=quick)),
        report_orders(measure_orders(quick=quick)),
        report_messages(measure_messages(quick=quick)),
        report_spares(measure_spares(quick=quick)),
        report_rebuilding(measure_rebuilding(quick=quick)),
    ]
