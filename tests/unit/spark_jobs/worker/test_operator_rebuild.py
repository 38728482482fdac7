"""Slots that are rebuilt from what they published and the log, without a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import orjson
import pandas as pd
import pytest
from pyspark.sql.streaming.tws_tester import TwsTester

from correlation.resources.streams import Stream
from correlation.resources.topics import Topics
from spark_jobs.worker import slot_evaluation
from spark_jobs.worker.envelope import BEGIN, EVENTS, Record, unpack_records
from spark_jobs.worker.in_force import InForce
from spark_jobs.worker.operator import SlotProcessor
from spark_jobs.worker.pack import pack_records
from spark_jobs.worker.packing import Packing
from spark_jobs.worker.positions import Positions
from spark_jobs.worker.slot_records import Generation, SlotRecord, read_generations
from tests.support.workload import (
    NearCondition,
    Occurrence,
    SourceRecord,
    Workload,
    alarm_pairs,
    runs_of,
)

TOPICS = Topics("p")
SLOT_KEYS = (5, 9)
PARTITIONS = 2
STREAMS = {name: Stream(name, f"events-{name}", 2_000, 50_000, clock="replay") for name in "ab"}
NEAR = NearCondition("near", "a", "b", 4_000, "0.6")
IN_FORCE = InForce(
    "run", TOPICS, STREAMS, dict.fromkeys(STREAMS, PARTITIONS), SLOT_KEYS, "/dev/null/cache", {}
)
EVENTS_SENT = Workload("ab", seed=4, max_uncertainty_us=2_000).take(300)
CONFIG = SourceRecord(TOPICS.config, orjson.dumps(NEAR.resource.to_record()), NEAR.resource.key)


def log_of(events: Sequence[Occurrence]) -> list[SourceRecord]:
    """Return the events as records; every tenth is followed by one that cannot be parsed."""
    offsets: dict[tuple[str, int], int] = {}
    records = []
    for number, event in enumerate(events):
        for value in (event.value, *([b"{"] if number % 10 == 0 else [])):
            topic, partition = STREAMS[event.stream].topic, number % PARTITIONS
            offset = offsets.get((topic, partition), 0)
            offsets[topic, partition] = offset + 1
            records.append(
                SourceRecord(topic, value, event.key.encode(), partition, offset, event.latest)
            )
    return records


LOG = log_of(EVENTS_SENT)


class Slots:
    """Slots of a job; their output is collected."""

    def __init__(self, in_force: InForce = IN_FORCE) -> None:
        self.in_force = in_force
        self.testers = {key: TwsTester(SlotProcessor(in_force)) for key in in_force.slot_keys}
        self.output: list[Record] = []

    def pack(self, records: Sequence[SourceRecord], *, refills: bool = False) -> pd.DataFrame:
        packing = Packing(
            TOPICS,
            tuple(self.in_force.streams.values()),
            self.in_force.slot_keys,
            1_000_000,
            self.in_force.written,
            refills,
        )
        batches = [it.to_pandas() for it in pack_records(packing, [runs_of(records)])]
        rows: pd.DataFrame = pd.concat(batches, ignore_index=True)
        return rows

    def run_batch(self, records: Sequence[SourceRecord], keys: Sequence[int] = SLOT_KEYS) -> None:
        """Run a batch in some slots, as if the job was killed before the others."""
        for key, frame in self.pack(records).groupby("slot_key"):
            number = int(str(key))
            if number in keys:
                found = self.testers[number].testInPandas(key, frame)["blob"]
                self.output += [record for blob in found for record in unpack_records(blob)]

    def published(self) -> Generation:
        """Return the newest generation in the topic of the state."""
        values = {it.key or b"": it.value or b"" for it in self.output if it.topic == TOPICS.state}
        return read_generations(values)[0]

    def rebuilt(self, written: tuple[Positions, ...]) -> Slots:
        """Return slots that begin with the published state; the log is given in two frames."""
        slot_evaluation._cache.slots.clear()  # noqa: SLF001 - the workers are gone, too
        found = self.published()
        later = Slots(replace(self.in_force, run_id=f"{self.in_force.run_id}+", written=written))
        rows = later.pack(LOG, refills=True)
        assert set(rows["kind"]) == {EVENTS}
        for number, key in enumerate(SLOT_KEYS):
            record = found.records.get(number)
            begin = orjson.dumps(None if record is None else record.to_json())
            first = pd.DataFrame({"kind": [BEGIN], "blob": [begin]})
            mine = rows[rows["slot_key"] == key][["kind", "blob"]]
            later.testers[key] = TwsTester(
                SlotProcessor(later.in_force), initialStatePandas=[(key, first), (key, mine)]
            )
        later.output = self.output
        return later

    def check(self) -> None:
        """Check that each alarm and each dead letter was written once."""
        alarms = alarm_pairs(it.value for it in self.output if it.topic == TOPICS.alarms)
        assert alarms == sorted(NEAR.pairs(EVENTS_SENT))
        letters = [it for it in self.output if it.topic == TOPICS.dead_letter]
        bad = [it for it in LOG if it.value == b"{"]
        assert len(letters) == len(bad)
        assert not [it for it in self.output if it.topic == TOPICS.late]


def positions_of(record: SlotRecord | None) -> Positions:
    return {} if record is None else record.positions


@pytest.mark.parametrize("size", [31, 110])
@pytest.mark.parametrize("kept", [{5, 9}, {5}, {9}, set()], ids=str)
def test_p_rebuild_slots_one_batch_apart_write_everything_once(size: int, kept: set[int]) -> None:
    """The job is killed in a batch of which some slots have written their output."""
    slots = Slots()
    slots.run_batch([CONFIG, *LOG[:50]])
    for begin in range(50, len(LOG), size):
        batch = LOG[begin : begin + size]
        slots.run_batch(batch, sorted(kept))
        found = slots.published()
        written = tuple(positions_of(found.records.get(number)) for number in range(2))
        is_level = written[0] == written[1]
        slots = slots.rebuilt(() if is_level else written)
        if len(kept) < 2:
            # The query begins at the position of the slot that is behind.
            slots.run_batch(batch)
        if not is_level:
            slots = slots.rebuilt(())
    slots.check()


def test_first_batch_of_which_one_slot_has_written_is_read_by_the_other() -> None:
    slots = Slots()
    slots.run_batch([CONFIG, *LOG[:100]], [9])
    written = tuple(positions_of(slots.published().records.get(number)) for number in range(2))
    assert written[0] == {}
    slots = slots.rebuilt(written)
    slots.run_batch([CONFIG, *LOG[:170]])
    slots = slots.rebuilt(())
    slots.run_batch(LOG[170:])
    slots.check()


def test_heartbeat_holds_for_a_stream_that_is_registered_since() -> None:
    slots = Slots()
    slots.run_batch([CONFIG, *LOG])
    ends = slots.published().records[0].positions[STREAMS["a"].topic]
    slots.in_force = replace(
        slots.in_force,
        streams={**STREAMS, "c": replace(STREAMS["a"], name="c")},
        partitions=dict.fromkeys("abc", PARTITIONS),
        read_up_to={"c": ends, "a": ends},
    )
    slots = slots.rebuilt(())
    beats = [
        {"stream": "c", "partition": number, "read_up_to": 10**9, "offset": end}
        for number, end in ends.items()
    ]
    slots.run_batch(
        [
            SourceRecord(TOPICS.heartbeats, orjson.dumps(it), b"c", offset=number)
            for number, it in enumerate(beats)
        ]
    )
    metrics = [it for it in slots.output if it.topic == TOPICS.metrics]
    marks = orjson.loads(metrics[-1].value or b"")["watermarks"]
    assert marks["c"]["watermark"] == 10**9 - 50_000


def test_stream_that_is_registered_since_has_the_same_records_in_slots_one_batch_apart() -> None:
    slots = Slots()
    slots.run_batch([CONFIG, *LOG[:100]])
    behind = slots.published().records[0].positions
    slots.run_batch(LOG[100:150], [9])
    written = tuple(positions_of(slots.published().records.get(number)) for number in range(2))
    streams = {**STREAMS, "c": replace(STREAMS["a"], name="c")}
    slots.in_force = replace(
        slots.in_force,
        streams=streams,
        partitions=dict.fromkeys(streams, PARTITIONS),
        read_up_to={name: behind[it.topic] for name, it in streams.items()},
    )
    slots = slots.rebuilt(written)
    slots.run_batch(LOG[100:150])
    newest = {
        it.key: orjson.loads(it.value or b"") for it in slots.output if it.topic == TOPICS.metrics
    }
    marks = [it["watermarks"] for it in newest.values()]
    assert marks[0]["c"] == marks[1]["c"] == {**marks[0]["a"], "refused_heartbeats": 0}
    consumed = [
        value
        for slot in newest.values()
        for name, labels, value in slot["counters"]
        if name == "events_consumed_total" and labels["stream"] == "c"
    ]
    sent = [it for it in LOG[100:150] if it.topic == STREAMS["a"].topic and it.value != b"{"]
    assert sum(consumed) == len(sent)


def test_totals_continue() -> None:
    slots = Slots()
    slots.run_batch([CONFIG, *LOG[:200]])
    slots = slots.rebuilt(())
    slots.run_batch(LOG[200:])
    newest = {
        it.key: orjson.loads(it.value or b"") for it in slots.output if it.topic == TOPICS.metrics
    }
    consumed = [
        value
        for slot in newest.values()
        for name, _, value in slot["counters"]
        if name == "events_consumed_total"
    ]
    assert sum(consumed) == len(EVENTS_SENT)
