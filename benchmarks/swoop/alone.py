"""Processor time of the steps of the job for a set, without Kafka and Spark.

Batches of records are packed as in Spark's tasks. The programs of the slots evaluate them, and the
results are packed as records; with several groups the shares of the slots are merged as by the
driver of the job.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from benchmarks.attributes import run_of
from benchmarks.swoop.recorded import PARTITIONS, make_resources, make_stream
from correlation.buffers.events import Events
from correlation.engine.program import Block, Control, Program
from correlation.engine.progress import Progress
from correlation.kinds import topics_of
from correlation.shares import merge_shares
from spark_jobs.worker.envelope import EVENTS, PROGRESS
from spark_jobs.worker.pack import pack_records
from spark_jobs.worker.packing import Packing
from spark_jobs.worker.results import pack_results
from spark_jobs.worker.runs import Run

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from benchmarks.swoop.recorded import Source
    from correlation.engine.blocks import Outcome
    from correlation.operators import Evaluation, Operator, View

SLOTS = 2
_MAX_RECORD_BYTES = 1_000_000


class TimedOperator:
    """An operator that measures its evaluation; see `Operator`.

    Parameters
    ----------
    operator : Operator
        The operator.

    Attributes
    ----------
    seconds : float
        Processor time of all calls of `evaluate`.
    """

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self.seconds = 0.0

    def begin(
        self, watermarks: Mapping[str, int], held_from: Mapping[str, int], before: bytes
    ) -> None:
        """See `Operator.begin`."""
        self._operator.begin(watermarks, held_from, before)

    def evaluate(self, view: View) -> Evaluation:
        """See `Operator.evaluate`."""
        begin = time.process_time()
        found = self._operator.evaluate(view)
        self.seconds += time.process_time() - begin
        return found

    def keep_values(self, watermarks: Mapping[str, int]) -> Mapping[str, int]:
        """See `Operator.keep_values`."""
        return self._operator.keep_values(watermarks)

    def held(self) -> Mapping[str, Collection[int]]:
        """See `Operator.held`."""
        return self._operator.held()

    def needs_timestamps(self) -> bool:
        """See `Operator.needs_timestamps`."""
        return self._operator.needs_timestamps()

    def dump(self) -> bytes:
        """See `Operator.dump`."""
        return self._operator.dump()


class TimedProgram(Program):
    """A program whose operators are timed from a call of `time_operators` on."""

    def time_operators(self) -> list[TimedOperator]:
        """Wrap the operators; return the wrapped ones."""
        timed = []
        for entry, operator in self._conditions.operators():
            entry.operator = TimedOperator(operator)
            timed.append(entry.operator)
        return timed


class Steps(NamedTuple):
    """Processor time of a set, in seconds.

    Attributes
    ----------
    reading : float
        Parsing of JSON, and packing for the slots.
    slots : float
        Programs of all slots, with their operators, states, and results as records.
    operator : float
        Operators alone.
    merging : float
        Merge of the lists of the slots.
    """

    reading: float
    slots: float
    operator: float
    merging: float


class Alone:
    """The steps of the job on one core.

    Parameters
    ----------
    source : Source
        The sets.
    k : int
        Length of the list.
    window_us : int
        Age up to which a set is valid, in µs.
    groups : int
        Groups of the grid.

    Attributes
    ----------
    outcomes : list of Outcome
        Outcomes of the slots in the last batch.
    """

    def __init__(self, source: Source, k: int, window_us: int, groups: int) -> None:
        stream = make_stream("sets", source, groups)
        _, condition = make_resources(stream, k, window_us)
        self._topic = stream.topic
        self._source = source
        self._topics = topics_of("bench")
        self._packing = Packing(self._topics, (stream,), tuple(range(SLOTS)), _MAX_RECORD_BYTES)
        self._programs = [
            TimedProgram({stream.name: stream}, {stream.name: PARTITIONS}) for _ in range(SLOTS)
        ]
        self._timed: list[TimedOperator] = []
        self._controls = [Control(0, condition.key, condition.to_record())]
        self._seconds = np.zeros(3)
        self._next = 0
        self.outcomes: list[Outcome] = []

    def take(self, count: int) -> None:
        """Evaluate the next sets as one batch.

        Parameters
        ----------
        count : int
            Number of sets, a multiple of the number of partitions.
        """
        runs = self._read(count)
        marks = [time.process_time()]
        packed = pa.Table.from_batches(pack_records(self._packing, [runs])).to_pylist()
        marks.append(time.process_time())
        self.outcomes = [self._advance(slot, packed) for slot in range(SLOTS)]
        marks.append(time.process_time())
        for merged in merge_shares([it.shares for it in self.outcomes]):
            if merged.evaluation is not None:
                list(pack_results(merged.evaluation.results, 0, self._topics))
        marks.append(time.process_time())
        self._seconds += np.diff(marks)
        self._controls = []

    def measure(self, count: int, batches: int) -> Steps:
        """Evaluate the next sets in batches; return the processor time of one set.

        Parameters
        ----------
        count : int
            Number of sets of a batch.
        batches : int
            Number of batches; one was evaluated before.
        """
        if not self._timed:
            self._timed = [it for program in self._programs for it in program.time_operators()]
        self._seconds[:] = 0
        for it in self._timed:
            it.seconds = 0.0
        for _ in range(batches):
            self.take(count)
        reading, slots, merging = (self._seconds / (count * batches)).tolist()
        operator = sum(it.seconds for it in self._timed) / (count * batches)
        return Steps(reading, slots, operator, merging)

    def _read(self, count: int) -> list[Run]:
        """Return the next records as the source reads them, partition by partition."""
        begin, self._next = self._next, self._next + count
        records = self._source.records(begin, self._next)
        offsets = np.arange(begin // PARTITIONS, self._next // PARTITIONS)
        return [
            run_of(self._topic, it, [value for _, value, place in records if place == it], offsets)
            for it in range(PARTITIONS)
        ]

    def _advance(self, slot: int, packed: Sequence[Mapping[str, Any]]) -> Outcome:
        rows = [it for it in packed if it["slot_key"] == slot]
        events = [Events.from_bytes(it["blob"]) for it in rows if it["kind"] == EVENTS]
        progress = [
            Progress(*entry)
            for it in rows
            if it["kind"] == PROGRESS
            for entry in orjson.loads(it["blob"])
        ]
        program = self._programs[slot]
        outcome = program.advance(Block(self._controls, events, progress), lambda: 0)
        list(pack_results(outcome.results, 0, self._topics))
        program.snapshot()
        return outcome
