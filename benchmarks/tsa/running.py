"""Programs with the running example, and their results, for measurements on one core."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.tsa.workload import Arrivals, expected_ids, make_streams
from correlation.engine.program import Program
from correlation.event_query.evaluation.alarms import EventQueryAlarms
from correlation.limits import UNKNOWN_WATERMARK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from correlation.engine.blocks import Outcome


class DifferentResultsError(Exception):
    """Two ways of evaluation have different results, so their times are meaningless."""


class HoardingProgram(Program):
    """A program without garbage collection: its keep values keep all events."""

    def _keep_values(self, watermarks: Mapping[str, int]) -> dict[str, int]:
        return dict.fromkeys(watermarks, UNKNOWN_WATERMARK)


def start_program(*, keyed: bool, hoarding: bool = False) -> Program:
    """Return a program on the streams of the running example."""
    streams = make_streams(keyed=keyed)
    return (HoardingProgram if hoarding else Program)(streams, dict.fromkeys(streams, 1))


def result_ids(outcome: Outcome) -> set[bytes]:
    """Return the ids of the smokes of the results of a block."""
    return {
        name
        for result in outcome.results
        if isinstance(result, EventQueryAlarms)
        for _, places, segment in result.events[0].parts()
        for name in segment.id.take(result.events[0].rows[places]).to_list()
    }


def gauge(outcome: Outcome, name: str) -> int:
    """Return the sum of a gauge over the streams."""
    return sum(value for it, _, value in outcome.metrics["gauges"] if it == name)


def processor_seconds(run: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    begin = time.process_time()
    run()
    return time.process_time() - begin


def check_results(found: set[bytes], smokes: Arrivals, until_us: int, what: str) -> None:
    """Refuse results that are not the alarms up to a time.

    Raises
    ------
    DifferentResultsError
        An alarm is missing or wrong.
    """
    wanted = expected_ids(smokes, until_us)
    if found != wanted:
        raise DifferentResultsError(
            f"{what}: {len(wanted - found)} alarms are missing, {len(found - wanted)} are wrong"
        )
