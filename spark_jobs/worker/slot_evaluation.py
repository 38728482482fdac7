"""Evaluation of a slot: one Program, whose state Spark stores in segments.

The state consists of a manifest (ValueState) and the blobs that it names by number (MapState). A
worker keeps the programs of the slots that it served last, each with a random mark that is also in
the manifest. A program is used again only when the manifest of the current transaction has the same
mark, so the cache is correct whatever Spark repeats, moves or discards. The blobs are also stored
as files (`blob_files`), under tokens derived from these marks.

With each batch a slot publishes its position in Kafka (`slot_records`). A job without a checkpoint
gives the published state and the buffered events, read again, to Spark as the initial state of the
slots. They are stored as they come; the program is built from them before the first batch.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pandas as pd

from correlation.buffers.events import Events
from correlation.engine.program import Outcome, Program
from correlation.engine.rebuilding import rebuild_program
from spark_jobs.worker.blob_files import BlobFiles
from spark_jobs.worker.cache_files import cache_of_conditions
from spark_jobs.worker.envelope import (
    BEGIN,
    LATE,
    RECORDS,
    SHARE,
    Record,
    RecordPacker,
    in_portions,
)
from spark_jobs.worker.gathering import Gathered, gather
from spark_jobs.worker.late_events import LateEvents, split_late, store_watermarks
from spark_jobs.worker.metrics_pace import MetricsPace
from spark_jobs.worker.positions import (
    Positions,
    from_json,
    newest,
    position_of,
    replaced,
    to_json,
)
from spark_jobs.worker.results import pack_results
from spark_jobs.worker.row_schemas import OUTPUT_SCHEMA
from spark_jobs.worker.shares import SlotShares
from spark_jobs.worker.slot_records import SlotRecord

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState, ValueState

    from spark_jobs.worker.in_force import InForce


@dataclass(slots=True)
class _Slot:
    """A slot's program, with the tokens of its blobs and the mark of its manifest.

    `former` has the topics of the streams that the slot had read when it was rebuilt.
    """

    program: Program
    tokens: dict[int, str] = field(default_factory=dict)
    mark: str = ""
    pace: MetricsPace = field(default_factory=MetricsPace)
    positions: Positions = field(default_factory=dict)
    former: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Cache:
    """The slots that this worker served in its last task."""

    run_id: str = ""
    slots: dict[int, _Slot] = field(default_factory=dict)
    served: set[int] = field(default_factory=set)

    def pop(self, run_id: str, slot_key: int, mark: str) -> _Slot | None:
        """Remove a slot; return it if it has the mark of the manifest, else None."""
        if run_id != self.run_id:
            self.run_id = run_id
            self.slots = {}
        found = self.slots.pop(slot_key, None)
        return found if found is not None and found.mark == mark else None

    def put(self, run_id: str, slot_key: int, slot: _Slot) -> None:
        """Add a slot."""
        self.run_id = run_id
        self.slots[slot_key] = slot
        self.served.add(slot_key)

    def end_task(self) -> None:
        """Drop the slots that the task did not serve: another worker has newer programs of them."""
        self.slots = {key: slot for key, slot in self.slots.items() if key in self.served}
        self.served = set()


_cache = _Cache()


class SlotEvaluation:
    """Advances the programs of slots in a task.

    Parameters
    ----------
    in_force : InForce
        Streams and slots of this run.
    manifest : ValueState
        Manifest of the slot that Spark has selected.
    blobs : MapState
        Its blobs by number.
    """

    def __init__(self, in_force: InForce, manifest: ValueState, blobs: MapState) -> None:
        self._in_force = in_force
        self._manifest = manifest
        self._blobs = blobs
        self._files = BlobFiles(in_force.cache_folder)
        self._cache = cache_of_conditions()

    def advance(self, slot_key: int, rows: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Evaluate the rows of a slot; all state is written before the first row is returned.

        The output is packed while it is returned: it can be much larger than the events.

        Parameters
        ----------
        slot_key : int
            Key of the slot that Spark has selected.
        rows : iterator of DataFrame
            Packed rows of the batch (`PACKED_SCHEMA`).

        Returns
        -------
        iterator of DataFrame
            Packed output (`OUTPUT_SCHEMA`).
        """
        slot = self._load(slot_key)
        written = self._written(slot_key)
        in_force = self._in_force
        gathered = gather(rows, written, slot.former, in_force.streams, in_force.topics)
        block = replace(gathered.block, flush=in_force.is_flushing)
        outcome = slot.program.advance(block, _wall_clock_us)
        slot.positions = newest(replaced(slot.positions, gathered.positions), written)
        self._store(slot_key, slot)
        store_watermarks(self._files, slot.program.watermarks())
        for portion in in_portions(self._pack(slot_key, gathered, outcome, slot)):
            yield pd.DataFrame(portion, columns=OUTPUT_SCHEMA.names)

    def store_initial(self, state: pd.DataFrame) -> None:
        """Store a part of the published state and the events of a slot that is rebuilt.

        Parameters
        ----------
        state : DataFrame
            Packed rows (`PACKED_SCHEMA`).
        """
        stored = self._manifest.get()
        found = {"events": 0} if stored is None else orjson.loads(stored[0])
        for kind, blob in zip(state["kind"], state["blob"], strict=True):
            if kind == BEGIN:
                found["published"] = orjson.loads(blob)
            else:
                self._blobs.updateValue((found["events"],), (bytes(blob),))
                found["events"] += 1
        self._manifest.update((orjson.dumps(found),))

    def end_task(self) -> None:
        """End the task; state and cache remain for the next batch."""
        _cache.end_task()

    def _written(self, slot_key: int) -> Positions:
        """Return the positions up to which earlier jobs have written the output of a slot."""
        in_force = self._in_force
        return in_force.written[self._number(slot_key)] if in_force.written else {}

    def _number(self, slot_key: int) -> int:
        return self._in_force.slot_keys.index(slot_key)

    def _load(self, slot_key: int) -> _Slot:
        stored = self._manifest.get()
        in_force = self._in_force
        if stored is None:
            return self._begin()
        manifest = orjson.loads(stored[0])
        if "events" in manifest:
            return self._rebuild(manifest)
        cached = _cache.pop(in_force.run_id, slot_key, manifest["mark"])
        if cached is not None:
            return cached
        tokens = {int(number): token for number, token in manifest["tokens"].items()}

        def fetch(number: int) -> bytes:
            token = tokens.get(number)
            blob = self._files.get(token)
            if blob is None:
                blob = self._fetch(number)
                if token is not None:
                    self._files.put(token, blob)
            return blob

        program = Program.restore(
            manifest["program"],
            fetch,
            in_force.streams,
            in_force.partitions,
            in_force.origin,
            self._cache,
        )
        # A slot that this run has advanced has read further since the start of the run.
        if manifest.get("run") == in_force.run_id:
            pace = MetricsPace(*manifest["pace"])
            return _Slot(program, tokens, pace=pace, positions=from_json(manifest["positions"]))
        program.note_read(in_force.read_up_to)
        return _Slot(program, tokens, positions=in_force.positions)

    def _begin(self) -> _Slot:
        """Return a slot without state."""
        in_force = self._in_force
        fresh = Program(in_force.streams, in_force.partitions, in_force.origin, self._cache)
        fresh.note_read(in_force.read_up_to)
        return _Slot(fresh)

    def _rebuild(self, manifest: dict[str, Any]) -> _Slot:
        """Build the program of a slot from its initial state."""
        events: dict[str, list[Events]] = {}
        record = SlotRecord.from_json(manifest["published"])
        for number in range(manifest["events"]):
            found = Events.from_bytes(self._fetch(number))
            self._blobs.removeKey((number,))
            if record is not None and found.stream in self._in_force.streams:
                topic = self._in_force.streams[found.stream].topic
                end = position_of(record.positions, topic, int(found.partition[0]))
                read = found.take(np.flatnonzero(found.offset < end))
                events.setdefault(found.stream, []).append(read)
        if record is None:
            return self._begin()
        in_force = self._in_force
        program = rebuild_program(
            record.published,
            events,
            in_force.streams,
            in_force.partitions,
            in_force.origin,
            self._cache,
        )
        # Streams that were registered since, on topics that the slot has read.
        former = record.published.position["topics"]
        read_up_to = in_force.read_up_to.items()
        program.note_read({name: it for name, it in read_up_to if name not in former})
        return _Slot(program, positions=record.positions, former=former)

    def _fetch(self, number: int) -> bytes:
        # Blobs are read one by one: an iterator over the map would put all into one message.
        found = self._blobs.getValue((number,))
        if found is None:
            raise KeyError(f"blob {number} of the manifest is missing in the state")
        return bytes(found[0])

    def _store(self, slot_key: int, slot: _Slot) -> None:
        snapshot = slot.program.snapshot()
        slot.mark = uuid.uuid4().hex
        for number, blob in snapshot.added.items():
            self._blobs.updateValue((number,), (blob,))
            slot.tokens[number] = f"{slot.mark}-{number}"
            self._files.put(slot.tokens[number], blob)
        for number in snapshot.removed:
            self._blobs.removeKey((number,))
            self._files.remove(slot.tokens.pop(number, None))
        manifest = {
            "run": self._in_force.run_id,
            "mark": slot.mark,
            "tokens": {str(number): token for number, token in slot.tokens.items()},
            "positions": to_json(slot.positions),
            "pace": slot.pace.dump(),
            "program": snapshot.manifest,
        }
        self._manifest.update((orjson.dumps(manifest),))
        _cache.put(self._in_force.run_id, slot_key, slot)

    def _pack(
        self, slot_key: int, gathered: Gathered, outcome: Outcome, slot: _Slot
    ) -> Iterator[tuple[bytes, str]]:
        """Pack the output of a slot: blobs and their kinds."""
        topics, pace = self._in_force.topics, slot.pace
        results = pack_results(outcome.results, outcome.detected_at_us, topics)
        packer = RecordPacker()
        now_us = outcome.detected_at_us
        number, slots = self._number(slot_key), len(self._in_force.slot_keys)
        is_due = not self._in_force.paces_metrics or pace.is_due(outcome.config_offset, now_us)
        if is_due:
            value = orjson.dumps({**outcome.metrics, "slot": number, "slots": slots})
            packer.add(Record(topics.metrics, f"slot/{number}".encode(), value))
            pace.note_written(outcome.config_offset, now_us, len(value))
        published = slot.program.publish(with_totals=is_due)
        in_force = self._in_force
        record = SlotRecord(
            in_force.checkpoint, slots, in_force.config_topic_id, slot.positions, published
        )
        packer.extend(
            record.to_records(topics.state, in_force.generation, number, with_totals=is_due)
        )
        missing = []
        for events, records in split_late(outcome.late, gathered.late):
            packer.extend(records)
            if len(events):
                topic = in_force.streams[events.stream].topic
                missing.append(LateEvents.of(events, topic).to_bytes())
        for blob in chain(gathered.rejects, results, packer.finish()):
            yield blob, RECORDS
        for blob in missing:
            yield blob, LATE
        if outcome.shares:
            later = pack_results(outcome.later, outcome.detected_at_us, topics)
            shares = SlotShares(number, slots, outcome.detected_at_us, outcome.shares, [*later])
            yield shares.to_bytes(), SHARE


def _wall_clock_us() -> int:
    return time.time_ns() // 1_000
