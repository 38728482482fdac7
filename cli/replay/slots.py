"""The slots of a replay: each is a Program with its share of the join keys, as in the job.

The number of slots does not depend on the number of processes, so the output does not either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from cli.errors import UsageError
from cli.replay.options import MAX_PROCESSES
from cli.replay.results import Alarm, Output, Totals
from correlation.engine.heartbeats import Heartbeat
from correlation.engine.program import Block, Program
from correlation.engine.progress import Progress
from spark_jobs.worker.cache_files import cache_of_conditions

if TYPE_CHECKING:
    from cli.replay.setup import Setup
    from correlation.buffers.events import Events
    from correlation.operators import Share

# An empty slot costs 30 µs per block.
SLOTS = MAX_PROCESSES


class Found(NamedTuple):
    """Result of a block: the number of pairs, the alarms if requested, and the slots' shares."""

    pairs: int
    alarms: list[Alarm]
    shares: list[Sequence[Share]]


@dataclass(frozen=True, slots=True)
class Step:
    """A block for all slots.

    Parameters
    ----------
    events
        Events by slot; slots without events are missing.
    progress, heartbeats
        Progress of the inputs at the end of this block.
    """

    events: Mapping[int, Events]
    progress: Sequence[Progress]
    heartbeats: Sequence[Heartbeat]


class Slots:
    """Some of the slots.

    Parameters
    ----------
    setup
        Streams and conditions.
    numbers
        Numbers of the slots.
    alarms
        Whether alarms are returned, or only their number.
    """

    def __init__(self, setup: Setup, numbers: Iterable[int], *, alarms: bool) -> None:
        self._output = Output(alarms=alarms)
        cache = cache_of_conditions()
        self._programs = {
            number: Program(setup.streams, setup.partitions, cache=cache) for number in numbers
        }
        self._metrics: dict[int, Mapping[str, Any]] = {}
        for number, program in self._programs.items():
            outcome = program.advance(Block(setup.controls()), _no_clock)
            _check_running(outcome.metrics["conditions"])
            self._metrics[number] = outcome.metrics

    def advance(self, step: Step) -> Found:
        """Evaluate a block in each slot."""
        pairs = 0
        alarms: list[Alarm] = []
        shares: list[Sequence[Share]] = []
        for number, program in self._programs.items():
            events = step.events.get(number)
            block = Block(
                events=() if events is None else (events,),
                progress=step.progress,
                heartbeats=step.heartbeats,
            )
            outcome = program.advance(block, _no_clock)
            self._metrics[number] = outcome.metrics
            # The conditions of a replay do not change: no results are `later`.
            count, found = self._output.take(outcome.results)
            pairs += count
            alarms += found
            shares.append(outcome.shares)
        return Found(pairs, alarms, shares)

    def lists(self) -> dict[bytes, bytes]:
        """Return the newest record of each list that is not withdrawn, by Kafka key."""
        return self._output.lists

    def totals(self) -> Totals:
        """Return the counters, summed over the slots."""
        totals: Totals = Counter()
        for metrics in self._metrics.values():
            for name, labels, value in metrics["counters"]:
                totals[name, tuple(sorted(labels.items()))] += value
        return totals


def _check_running(conditions: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise UsageError for a condition that the job would report as not running."""
    for name, found in conditions.items():
        if found["state"] != "running":
            raise UsageError(f"condition {name} is {found['state']}: {found['detail']}")


def _no_clock() -> int:
    # The results of a replay do not depend on the wall clock.
    return 0
