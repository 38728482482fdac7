"""The stateful operator without a JVM: the same alarms for all batches, restarts and caches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql.streaming.tws_tester import TwsTester

from correlation.engine.heartbeats import CLOSED
from correlation.engine.origin import Origin
from correlation.resources.partitioning import Partitioning
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from correlation.resources.topics import Topics
from spark_jobs.worker import envelope, slot_evaluation
from spark_jobs.worker.envelope import LATE, RECORDS, Record, unpack_records
from spark_jobs.worker.in_force import InForce
from spark_jobs.worker.late_events import LateEvents
from spark_jobs.worker.operator import SlotProcessor
from spark_jobs.worker.pack import pack_records
from spark_jobs.worker.packing import Packing
from tests.support.job import total
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
MAX_UNCERTAINTY_US, DELAY_US = 2_000, 50_000
CONDITIONS = [
    NearCondition("near", "a", "b", 4_000, "0.6"),
    NearCondition("self", "a", "a", 1_500, "0.5"),
]
REGISTERED = tuple(condition.resource for condition in CONDITIONS)
STREAMS = {
    name: Stream(name, f"events-{name}", MAX_UNCERTAINTY_US, DELAY_US, clock="replay")
    for name in "ab"
}
# A folder that cannot be made: the blob files are a cache, and all must go without them too.
IN_FORCE = InForce(
    "run", TOPICS, STREAMS, dict.fromkeys(STREAMS, PARTITIONS), SLOT_KEYS, "/dev/null/cache", {}
)


def config_records(
    resources: Iterable[Resource] = REGISTERED, first_offset: int = 0
) -> list[SourceRecord]:
    return [
        SourceRecord(TOPICS.config, json.dumps(it.to_record()).encode(), it.key, 0, offset)
        for offset, it in enumerate(resources, start=first_offset)
    ]


def event_records(events: Sequence[Occurrence]) -> list[SourceRecord]:
    """Place events in Kafka: offsets count per topic and partition."""
    offsets: dict[tuple[str, int], int] = {}
    records = []
    for event in events:
        place = (event.stream, int(event.id[1:]) % PARTITIONS)
        offset = offsets.get(place, 0)
        offsets[place] = offset + 1
        topic = STREAMS[event.stream].topic
        records.append(
            SourceRecord(topic, event.value, event.key.encode(), place[1], offset, event.latest, ())
        )
    return records


@dataclass
class Job:
    """Slots under TwsTester, one for each key, as Spark would run them."""

    in_force: InForce = IN_FORCE
    testers: dict[int, TwsTester] = field(default_factory=dict)
    written: list[Record] = field(default_factory=list)
    late: list[LateEvents] = field(default_factory=list)

    def __post_init__(self) -> None:
        for key in self.in_force.slot_keys:
            self.testers[key] = TwsTester(SlotProcessor(self.in_force))

    def restarted(self) -> Job:
        """Return the same state in new workers."""
        later = Job(replace(self.in_force, run_id=self.in_force.run_id + "+"))
        for key, tester in later.testers.items():
            old = self.testers[key]
            manifest = old.peekValueState("manifest", key)
            if manifest is not None:
                tester.updateValueState("manifest", key, manifest)
                tester.updateMapState("blobs", key, old.peekMapState("blobs", key))
        later.written = self.written
        return later

    def replace_workers(self) -> None:
        """Go on with new workers in the same run, as Spark does for idle and lost ones."""
        slot_evaluation._cache.slots.clear()  # noqa: SLF001 - a new worker's cache is empty

    def run_batch(self, records: Sequence[SourceRecord]) -> list[Record]:
        """Pack the records of a batch and advance every slot that has rows."""
        streams = tuple(self.in_force.streams.values())
        packing = Packing(
            TOPICS,
            streams,
            self.in_force.slot_keys,
            max_record_bytes=1_000_000,
            cache_folder=self.in_force.cache_folder,
        )
        rows = pd.concat(
            [batch.to_pandas() for batch in pack_records(packing, [runs_of(records)])],
            ignore_index=True,
        )
        written: list[Record] = []
        for key, frame in rows.groupby("slot_key"):
            output = self.testers[int(str(key))].testInPandas(key, frame)
            for blob, kind in zip(output["blob"], output["kind"], strict=True):
                if kind == RECORDS:
                    written += unpack_records(blob)
                elif kind == LATE:
                    self.late.append(LateEvents.from_bytes(blob))
        self.written += written
        return written

    def run_batches(self, records: Sequence[SourceRecord], size: int, *, restarts: bool) -> Job:
        """Run batches of a size, in new workers after each if asked for; return the last job."""
        job = self
        for low in range(0, len(records), size):
            job.run_batch(records[low : low + size])
            job = job.restarted() if restarts else job
        return job

    def alarms(self) -> list[tuple[str, str, str]]:
        return alarm_pairs(record.value for record in self.written if record.topic == TOPICS.alarms)

    def metrics(self) -> dict[str, Any]:
        """Return the last record of each slot."""
        return {
            (record.key or b"").decode(): json.loads(record.value or b"")
            for record in self.written
            if record.topic == TOPICS.metrics
        }


def expected_alarms(events: Sequence[Occurrence]) -> list[tuple[str, str, str]]:
    near, same = (condition.pairs(events) for condition in CONDITIONS)
    place = {event.id: (event.latest, event.earliest, event.id) for event in events}
    # Within a stream each unordered pair is one alarm.
    return sorted(near | {pair for pair in same if place[pair[1]] < place[pair[2]]})


EVENTS = Workload("ab", seed=3, max_uncertainty_us=MAX_UNCERTAINTY_US).take(400)


def every(count: int) -> Callable[[int], bool]:
    return lambda batch: batch % count == 0


@pytest.mark.parametrize("batch_size", [400, 61, 7])
@pytest.mark.parametrize("restarts", [every(10**9), every(2)], ids=["cached", "restarted"])
@pytest.mark.parametrize("kept_in", ["state", "files"])
def test_alarms_are_the_judges_whatever_the_batches_and_restarts(
    batch_size: int, restarts: Callable[[int], bool], kept_in: str, tmp_path: Path
) -> None:
    job = Job(replace(IN_FORCE, cache_folder=str(tmp_path)) if kept_in == "files" else IN_FORCE)
    job.run_batch(config_records())
    records = event_records(EVENTS)
    for number, low in enumerate(range(0, len(records), batch_size), start=1):
        if restarts(number):
            job = job.restarted()
        job.run_batch(records[low : low + batch_size])
    expected = expected_alarms(EVENTS)
    assert len(expected) > 100
    assert job.alarms() == expected
    consumed = [
        value
        for slot in job.metrics().values()
        for name, _, value in slot["counters"]
        if name == "events_consumed_total"
    ]
    assert sum(consumed) == len(EVENTS)
    blobs = sum(len(tester.peekMapState("blobs", key)) for key, tester in job.testers.items())
    assert blobs > 0
    stored = [it for it in tmp_path.iterdir() if it.name != "watermarks"]
    assert len(stored) == (blobs if kept_in == "files" else 0)


def test_worker_whose_cache_is_older_than_the_state_takes_the_state() -> None:
    """A batch that failed after the operator had run is run again, on the state before it."""
    job = Job()
    records = event_records(EVENTS)
    job.run_batch(config_records())
    job.run_batch(records[:200])
    state = {
        key: (tester.peekValueState("manifest", key), tester.peekMapState("blobs", key))
        for key, tester in job.testers.items()
    }
    first = job.run_batch(records[200:])
    for key, tester in job.testers.items():
        manifest, blobs = state[key]
        assert manifest is not None
        tester.updateValueState("manifest", key, manifest)
        tester.updateMapState("blobs", key, blobs)
    again = job.run_batch(records[200:])

    def outcome(written: list[Record]) -> list[tuple[str, str, str]]:
        return alarm_pairs(record.value for record in written if record.topic == TOPICS.alarms)

    assert outcome(again) == outcome(first)
    assert outcome(first)


def test_another_config_topic_drops_conditions_and_keeps_events() -> None:
    job = Job()
    records = event_records(EVENTS)
    job.run_batch([*config_records(), *records[:200]])
    before = job.alarms()
    job.in_force = replace(job.in_force, origin=Origin(config_epoch=1))
    job = job.restarted()
    near = CONDITIONS[0]
    job.run_batch([*config_records([near.resource]), *records[200:]])
    # Pairs of an event of before with one of after are among them.
    expected = [pair for pair in before if pair[0] != near.name] + sorted(near.pairs(EVENTS))
    assert job.alarms() == sorted(expected)
    assert len(before) < len(expected) < len(expected_alarms(EVENTS))
    assert all(set(slot["conditions"]) == {near.name} for slot in job.metrics().values())


def test_state_does_not_grow_when_time_goes_on() -> None:
    job = Job()
    job.run_batch(config_records())
    sizes = []
    workload = Workload("ab", seed=5, max_uncertainty_us=MAX_UNCERTAINTY_US)
    offsets: list[Occurrence] = []
    for _ in range(12):
        offsets += workload.take(400)
        job.run_batch(event_records(offsets)[-400:])
        sizes.append(
            sum(
                len(blob[0])
                for key, tester in job.testers.items()
                for blob in tester.peekMapState("blobs", key).values()
            )
        )
    assert max(sizes[6:]) < 2 * max(sizes[2:6])


@pytest.mark.parametrize("has_files", [True, False])
def test_late_event_is_written_as_it_was_or_named_by_its_place(
    tmp_path: Path, *, has_files: bool
) -> None:
    job = Job(replace(IN_FORCE, cache_folder=str(tmp_path))) if has_files else Job()
    job.run_batch(config_records())
    # Both partitions must have moved on before an event can be late.
    job.run_batch(
        [
            SourceRecord(
                STREAMS[name].topic,
                Occurrence(name, f"{name}{partition}", "k", 1_000_000, 1_000_000).value,
                b"k",
                partition,
                0,
                1_000_000,
            )
            for name in "ab"
            for partition in range(PARTITIONS)
        ]
    )
    late = Occurrence("a", "late", "k", 900_000, 901_000)
    on_time = Occurrence("a", "on time", "k", 999_000, 1_000_001)
    headers = (("mine", b"\xff"), ("null", None))
    topic = STREAMS["a"].topic
    written = job.run_batch(
        [
            SourceRecord(topic, late.value, b"k", 1, 1, 1_000_500, headers),
            SourceRecord(topic, on_time.value, b"k", 1, 2, 1_000_600),
        ]
    )
    if has_files:
        (copy,) = (it for it in written if it.topic == TOPICS.late)
        assert (copy.key, copy.value, list(copy.headers[:2])) == (b"k", late.value, list(headers))
        added = dict(copy.headers[2:])
        assert (added["coincide.error.reason"], added["coincide.error.offset"]) == (b"late", b"1")
        assert job.late == []
        return
    (found,) = job.late
    assert (found.stream, found.topic) == ("a", STREAMS["a"].topic)
    places = (found.partition, found.offset, found.record_timestamp_us)
    assert [it.tolist() for it in places] == [[1], [1], [1_000_500]]


def test_dead_letters_of_several_partitions_are_all_counted() -> None:
    job = Job()
    bad = [
        SourceRecord(STREAMS[name].topic, b"{", b"k", partition, offset)
        for name in "ab"
        for partition in range(PARTITIONS)
        for offset in range(3)
    ]
    written = job.run_batch(bad)
    assert len([one for one in written if one.topic == TOPICS.dead_letter]) == len(bad)
    counted = [
        value
        for slot in job.metrics().values()
        for name, _, value in slot["counters"]
        if name == "events_rejected_total"
    ]
    assert sum(counted) == len(bad)


@pytest.mark.parametrize("restored", [False, True])
def test_heartbeat_holds_where_its_partition_was_read_before_the_run(*, restored: bool) -> None:
    """A stream may be registered again when its topic has been read already."""
    job = Job()
    if restored:
        job.run_batch(config_records())
    read = {name: dict.fromkeys(range(PARTITIONS), 7) for name in STREAMS}
    job.in_force = replace(IN_FORCE, run_id=f"read {restored}", read_up_to=read)
    job = job.restarted()
    beats = [
        SourceRecord(
            TOPICS.heartbeats,
            json.dumps(
                {"stream": name, "partition": number, "read_up_to": 1_000_000, "offset": offset}
            ).encode(),
            name.encode(),
            offset=2 * number,
        )
        for name, offset in (("a", 7), ("b", 8))
        for number in range(PARTITIONS)
    ]
    job.run_batch(beats)
    for slot in job.metrics().values():
        assert slot["watermarks"]["a"]["watermark"] == 1_000_000 - DELAY_US
        assert slot["watermarks"]["b"]["watermark"] is None


def test_heartbeat_holds_where_its_partition_was_read_by_another_worker_of_the_run() -> None:
    """Spark replaces a worker that was idle for a minute; the slots are restored from the state."""
    read = {name: dict.fromkeys(range(PARTITIONS), 0) for name in STREAMS}
    job = Job(replace(IN_FORCE, run_id="replaced", read_up_to=read))
    records = event_records(EVENTS)
    job.run_batch(config_records())
    job.run_batch(records)
    ends = {(it.topic, it.partition): it.offset + 1 for it in records}
    beats = [
        SourceRecord(
            TOPICS.heartbeats,
            json.dumps(
                {
                    "stream": name,
                    "partition": number,
                    "read_up_to": "end",
                    "offset": ends[stream.topic, number],
                }
            ).encode(),
            name.encode(),
            offset=number,
        )
        for name, stream in STREAMS.items()
        for number in range(PARTITIONS)
    ]
    job.replace_workers()
    job.run_batch(beats)
    for slot in job.metrics().values():
        for name in STREAMS:
            assert slot["watermarks"][name]["watermark"] == CLOSED


@pytest.mark.parametrize("reverse", [False, True])
def test_heartbeats_are_taken_in_the_order_of_their_records(*, reverse: bool) -> None:
    """Spark's shuffle may bring the rows of a batch in any order."""
    job = Job()
    beats = [
        SourceRecord(
            TOPICS.heartbeats,
            json.dumps({"stream": name, "read_up_to": until}).encode(),
            name.encode(),
            offset=offset,
        )
        for offset, (name, until) in enumerate(
            [("a", "end"), ("a", "reset"), ("a", 1_000_000), ("b", 1_000_000), ("b", "reset")]
        )
    ]
    job.run_batch(beats[::-1] if reverse else beats)
    for slot in job.metrics().values():
        assert slot["watermarks"]["a"]["watermark"] == 1_000_000 - DELAY_US
        assert slot["watermarks"]["b"]["watermark"] is None


def test_programs_of_an_earlier_run_are_not_used_again() -> None:
    job = Job()
    job.run_batch(config_records())
    job.run_batch(event_records(EVENTS))
    longer = {name: replace(it, max_delay_us=2 * DELAY_US) for name, it in STREAMS.items()}
    job.in_force = replace(IN_FORCE, streams=longer)
    later = job.restarted()
    until = 10**16
    value = json.dumps({"stream": "a", "read_up_to": until}).encode()
    later.run_batch([SourceRecord(TOPICS.heartbeats, value, b"a")])
    found = later.metrics().values()
    # The programs of the earlier run have the state, but other streams.
    assert {it["watermarks"]["a"]["watermark"] for it in found} == {until - 2 * DELAY_US}
    assert total(found, "events_consumed_total") == len(EVENTS)


@pytest.mark.parametrize("groups", [1, 3])
def test_grid_streams_meet_without_keys_and_count_once(groups: int) -> None:
    partitioning = Partitioning("grid", groups)
    streams = {name: replace(it, partitioning=partitioning) for name, it in STREAMS.items()}
    job = Job(replace(IN_FORCE, run_id=f"grid {groups}", streams=streams))
    job.run_batch(config_records())
    records = [replace(record, key=None) for record in event_records(EVENTS)]
    job.run_batch(records[:150])
    job = job.restarted()
    job.run_batch(records[150:])
    keyless = [replace(event, key="") for event in EVENTS]
    assert job.alarms() == expected_alarms(keyless)
    long_ago = replace(
        records[0], value=replace(EVENTS[0], earliest=-(10**9), latest=-(10**9)).value
    )
    late = [replace(long_ago, offset=10_000 + n) for n in range(5)]
    job.run_batch(late)
    assert sorted(it for found in job.late for it in found.offset) == [it.offset for it in late]
    metrics = job.metrics().values()
    assert total(metrics, "events_consumed_total") == len(EVENTS) + len(late)
    assert total(metrics, "events_late_total") == len(late)


@pytest.mark.parametrize("paces", [True, False])
def test_slot_with_many_conditions_writes_its_metrics_less_often_than_its_batches(
    monkeypatch: pytest.MonkeyPatch, *, paces: bool
) -> None:
    now = [1_000_000_000]
    monkeypatch.setattr(slot_evaluation, "_wall_clock_us", lambda: now[0])
    many = [NearCondition(f"near{n}", "a", "b", 4_000 + n, "0.6").resource for n in range(150)]
    job = Job(replace(IN_FORCE, paces_metrics=paces))
    records = event_records(EVENTS)

    def written_by(batch: list[SourceRecord]) -> list[dict[str, Any]]:
        found = [it for it in job.run_batch(batch) if it.topic == TOPICS.metrics]
        return [json.loads(it.value or b"") for it in found]

    assert len(written_by(config_records(many))) == len(SLOT_KEYS)
    assert len(written_by(records[:100])) == (0 if paces else len(SLOT_KEYS))
    # A slot keeps its pace when another worker serves it.
    job.replace_workers()
    assert len(written_by(records[100:200])) == (0 if paces else len(SLOT_KEYS))
    # A registration is reported at once.
    (last,) = config_records([CONDITIONS[1].resource], first_offset=len(many))
    assert {it["config_offset"] for it in written_by([last])} == {len(many)}
    now[0] += 10_000_000
    late = written_by(records[200:])
    consumed = [
        value
        for slot in late
        for name, _, value in slot["counters"]
        if name == "events_consumed_total"
    ]
    # Including the events of the batch that did not write its metrics.
    assert sum(consumed) == len(EVENTS)


def test_large_output_is_returned_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    portions: list[int] = []

    def counted(rows: Iterable[tuple[bytes, str]]) -> Iterator[list[tuple[bytes, str]]]:
        for portion in envelope.in_portions(rows):
            portions.append(len(portion))
            yield portion

    monkeypatch.setattr(slot_evaluation, "in_portions", counted)
    monkeypatch.setattr(envelope, "_BLOB_RESULTS", 10)
    monkeypatch.setattr(envelope, "_PORTION_BYTES", 3_000)
    job = Job()
    job.run_batch(config_records())
    portions.clear()
    job.run_batch(event_records(EVENTS))
    assert job.alarms() == expected_alarms(EVENTS)
    assert len(portions) > len(SLOT_KEYS)
    assert max(portions) < sum(portions) / 2
