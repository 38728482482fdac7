"""The slots of a replay: each is a Program with its share of the join keys, as in the job.

The number of slots does not depend on the number of processes, so the output does not either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from cli.errors import UsageError
from cli.replay.options import MAX_PROCESSES
from correlation.engine.heartbeats import Heartbeat
from correlation.engine.program import Block, Program
from correlation.engine.progress import Progress
from correlation.kinds import CHANNELS
from correlation.resources.topics import ALARMS
from spark_jobs.worker.cache_files import cache_of_conditions

if TYPE_CHECKING:
    from cli.replay.setup import Setup
    from correlation.buffers.events import Events
    from correlation.operators import Result

_LIST_CHANNELS = frozenset(it.name for it in CHANNELS if it.compacted)
# An empty slot costs 30 µs per block.
SLOTS = MAX_PROCESSES

Labels = tuple[tuple[str, str], ...]
Totals = Counter[tuple[str, Labels]]


class Alarm(NamedTuple):
    """An alarm or a change; sorted by time, then alarms by condition and id, changes by number.

    Parameters
    ----------
    detected_at_us
        Time at which both events have certainly happened: the max of their latest times.
    order
        Value of an alarm, which begins with the name of the condition; of changes, the value of the
        first change of their result.
    number
        Number of the change in its result: changes of equal times build on each other. Alarms: 0.
    value
        Value of the record.
    """

    detected_at_us: int
    order: bytes
    number: int
    value: bytes


class Found(NamedTuple):
    """Result of a block: the number of pairs, and the alarms if requested."""

    pairs: int
    alarms: list[Alarm]


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
        self._alarms = alarms
        cache = cache_of_conditions()
        self._programs = {
            number: Program(setup.streams, setup.partitions, cache=cache) for number in numbers
        }
        self._metrics: dict[int, Mapping[str, Any]] = {}
        # Newest record of each list, by Kafka key.
        self._lists: dict[bytes, bytes] = {}
        for number, program in self._programs.items():
            outcome = program.advance(Block(setup.controls()), _no_clock)
            _check_running(outcome.metrics["conditions"])
            self._metrics[number] = outcome.metrics

    def advance(self, step: Step) -> Found:
        """Evaluate a block in each slot."""
        pairs = 0
        alarms: list[Alarm] = []
        for number, program in self._programs.items():
            events = step.events.get(number)
            block = Block(
                events=() if events is None else (events,),
                progress=step.progress,
                heartbeats=step.heartbeats,
            )
            outcome = program.advance(block, _no_clock)
            self._metrics[number] = outcome.metrics
            for result in outcome.results:
                if result.heading(0).channel in _LIST_CHANNELS:
                    self._note_lists(result)
                    continue
                ready_us = result.ready_us()
                pairs += len(ready_us)
                if self._alarms:
                    alarms += _read_alarms(result)
        alarms.sort()
        return Found(pairs, alarms)

    def _note_lists(self, result: Result) -> None:
        for record in result.records(result.ready_us(), orjson.dumps):
            self._lists.pop(record.key, None)
            if record.value is not None:
                self._lists[record.key] = record.value

    def lists(self) -> dict[bytes, bytes]:
        """Return the newest record of each list that is not withdrawn, by Kafka key."""
        return self._lists

    def totals(self) -> Totals:
        """Return the counters, summed over the slots."""
        totals: Totals = Counter()
        for metrics in self._metrics.values():
            for name, labels, value in metrics["counters"]:
                totals[name, tuple(sorted(labels.items()))] += value
        return totals


def _read_alarms(result: Result) -> Iterator[Alarm]:
    """Yield the records of a result."""
    ready_us = result.ready_us()
    ordered = result.heading(0).channel != ALARMS.name
    first: bytes | None = None
    records = result.records(ready_us, orjson.dumps)
    rows = zip(ready_us.tolist(), records, strict=True)
    for number, (moment, record) in enumerate(rows):
        if record.value is None:
            continue
        if not ordered:
            yield Alarm(moment, record.value, 0, record.value)
            continue
        first = first or record.value
        yield Alarm(moment, first, number, record.value)


def _check_running(conditions: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise UsageError for a condition that the job would report as not running."""
    for name, found in conditions.items():
        if found["state"] != "running":
            raise UsageError(f"condition {name} is {found['state']}: {found['detail']}")


def _no_clock() -> int:
    # The results of a replay do not depend on the wall clock.
    return 0
