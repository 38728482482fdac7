"""Processor time of an alarm, from the pair to Kafka, by step: columns against single records.

The same pairs are written as columns, and one by one: a dictionary, an id and a record each.
Results of a few alarms are also written as lists.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
import orjson

from benchmarks.factored import make_segment
from benchmarks.report import Report
from benchmarks.stack import bench
from correlation.kinds import condition_from_document
from correlation.operators import OutputRecord
from correlation.record_columns import collect_records, columns_of
from correlation.timing import alarm_writing
from correlation.timing.alarm_format import ALARM_VERSION, BY_REGION, alarm_id
from correlation.timing.alarm_writing import event_record
from correlation.timing.alarms import PairBatch
from correlation.timing.conditions import TimingCondition
from correlation.timing.histograms.rows import probability_rows
from spark_jobs.sink.batches import target_of
from spark_jobs.sink.ownership import claims_of
from spark_jobs.sink.transactions import PartitionProducer
from spark_jobs.worker.envelope import PackedRecords, pack_result, unpack_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.stack import Bench
    from correlation.buffers.columns import Int64s
    from correlation.buffers.segment import Segment
    from correlation.record_columns import RecordColumns
    from spark_jobs.settings import Properties

_SECOND_US = 1_000_000
_PAIRS = 200_000
_ROUNDS = 3
_SMALL_RESULTS = (1, 3, 10, 30, 100, 300)
# Calls of a step between two readings of the clock, and the number of readings.
_SMALL_CALLS, _SMALL_ROUNDS = 20, 60
_DETECTED_AT_US = 1_750_000_000 * _SECOND_US
_QUERY = "bench"


def make_pairs(count: int) -> PairBatch:
    """Draw two seconds of two streams, and pair events of A with all events of B."""
    rng = np.random.default_rng(2010)
    begin_us = _DETECTED_AT_US - 2 * _SECOND_US
    a, b = (make_segment(name, begin_us, _DETECTED_AT_US, rng) for name in "ab")
    ends = {"window_us": 2 * _SECOND_US, "threshold": "0.7"}
    document = {"kind": "mutual_deadline", "a": "a", "b": "b", **ends}
    condition = condition_from_document("near", 1, document)
    if not isinstance(condition, TimingCondition):
        raise TypeError(f"not a timing condition: {condition}")
    rows = np.arange(count)
    ways = np.zeros(count, np.uint8)
    return PairBatch(condition, True, a, b, rows // len(b), rows % len(b), ways)  # noqa: FBT003 - keyed


def write_one_by_one(pairs: PairBatch) -> Iterator[OutputRecord]:
    """Yield the alarms, each written by itself."""
    condition = pairs.condition
    chances = probability_rows(pairs.a, pairs.a_rows, pairs.b, pairs.b_rows, condition.window)
    events = zip(_events(pairs.a, pairs.a_rows), _events(pairs.b, pairs.b_rows), strict=True)
    for chance, (a, b) in zip(chances.tolist(), events, strict=True):
        ident = alarm_id(condition.name, condition.version, a[0], b[0])
        alarm = {
            "v": ALARM_VERSION,
            "condition": condition.name,
            "version": condition.version,
            "kind": condition.kind,
            "threshold": float(condition.threshold),
            "detected_at": _DETECTED_AT_US,
            "alarm_id": ident,
            "decided_by": BY_REGION,
            "late": False,
            "probability": chance,
            "a": event_record(condition.a, *a),
            "b": event_record(condition.b, *b),
        }
        yield OutputRecord(a[1], orjson.dumps(alarm), ident)


def _events(segment: Segment, rows: Int64s) -> Iterator[tuple[bytes, bytes, int, int]]:
    return zip(
        segment.id.take(rows).to_list(),
        segment.key_of_rows(rows).to_list(),
        segment.earliest[rows].tolist(),
        segment.latest[rows].tolist(),
        strict=True,
    )


def measure(step: Callable[[], object]) -> float:
    """Return the min processor time of a step, in µs per alarm."""
    found = []
    for _ in range(_ROUNDS):
        begin = time.process_time()
        step()
        found.append((time.process_time() - begin) / _PAIRS * 1e6)
    return min(found)


def measure_way(
    topic: str,
    producer: PartitionProducer,
    pairs: PairBatch,
    write: Callable[[], Iterator[RecordColumns]],
) -> list[str]:
    """Return the times of the steps, and the bytes of a packed alarm."""
    heading = pairs.heading(_DETECTED_AT_US)
    written = list(write())
    blobs = list(pack_result(topic, heading, written))

    def unpack() -> None:
        for blob in blobs:
            deque(unpack_records(blob), maxlen=0)

    def send() -> None:
        producer.write(producer.next_batch(), PackedRecords(blobs))

    unpack()  # compiles
    steps = (
        measure(lambda: deque(write(), maxlen=0)),
        measure(lambda: deque(pack_result(topic, heading, written), maxlen=0)),
        measure(unpack),
        measure(send),
    )
    packed = sum(map(len, blobs)) / _PAIRS
    return [*(f"{it:.2f}" for it in steps), f"{packed:.0f}"]


def measure_small(count: int) -> list[str]:
    """Return the number of alarms of a result, and its times in µs by way of writing."""
    pairs = make_pairs(count)
    heading = pairs.heading(_DETECTED_AT_US)

    def handle(records: Iterator[RecordColumns]) -> None:
        for blob in pack_result("t", heading, records):
            deque(unpack_records(blob), maxlen=0)

    def measure_few(few_alarms: int) -> float:
        with patch.object(alarm_writing, "FEW_ALARMS", few_alarms):
            return min_us(lambda: handle(columns_of(pairs, _DETECTED_AT_US, orjson.dumps)))

    single = min_us(lambda: handle(collect_records(write_one_by_one(pairs))))
    return [f"{count}", *(f"{it:.0f}" for it in (measure_few(count), measure_few(0), single))]


def min_us(step: Callable[[], object]) -> float:
    """Return the min processor time of a step, in µs; it is called once before."""
    step()
    found = []
    for _ in range(_SMALL_ROUNDS):
        begin = time.process_time()
        for _ in range(_SMALL_CALLS):
            step()
        found.append((time.process_time() - begin) / _SMALL_CALLS * 1e6)
    return min(found)


def run() -> list[Report]:
    """Measure both ways to write the same alarms."""
    pairs = make_pairs(_PAIRS)
    ways: dict[str, Callable[[], Iterator[RecordColumns]]] = {
        "columns": lambda: columns_of(pairs, _DETECTED_AT_US, orjson.dumps),
        "one by one": lambda: collect_records(write_one_by_one(pairs)),
    }
    columns, single = (
        [record for part in write() for record in part.records()] for write in ways.values()
    )
    if columns != single:
        raise ValueError("the two ways must write the same records")
    value_bytes = sum(len(it.value or b"") for it in single) / _PAIRS
    with bench() as on:
        producer = open_producer(on)
        rows = [
            [name, *measure_way(on.topics.alarms, producer, pairs, write)]
            for name, write in ways.items()
        ]
    small = [measure_small(count) for count in _SMALL_RESULTS]
    return [
        Report(
            "Writing alarms",
            f"Processor time of an alarm, in µs, with the search left out: {_PAIRS:,} pairs of a "
            f"few thousand events, of one condition and one key; values of {value_bytes:.0f} "
            "bytes. As columns, the JSON of an event is written once per 8,000 alarms, and blobs "
            "hold the pieces of the values; one by one, each alarm is a dictionary, encoded by "
            "itself. Both write the same records. `write` makes the records of a worker, `pack` "
            "the blobs for Spark; `unpack` is the part of Python in the sink, `send` the whole "
            "sink with unpacking, the calls of Kafka's client for records with six headers, and "
            "the client's own threads. `packed` is the size of an alarm in a blob, in bytes.",
            ("alarms", "write", "pack", "unpack", "send", "packed"),
            rows,
        ),
        Report(
            "Results of a few alarms",
            "Processor time to write, pack and unpack a result, in µs, by its number of alarms. "
            f"Results of up to {alarm_writing.FEW_ALARMS} alarms are written as lists, larger "
            "results as columns; one by one as in the table above.",
            ("alarms", "lists", "columns", "one by one"),
            small,
        ),
    ]


def open_producer(on: Bench) -> PartitionProducer:
    """Open the producer of a part of the sink."""
    properties: Properties = {"bootstrap.servers": on.bootstrap}
    owner = claims_of(on.topics, properties).claim(_QUERY, 1, time.time_ns() // 1_000)
    return PartitionProducer(target_of(on.topics.prefix, _QUERY, 0, owner, {}), properties)


if __name__ == "__main__":
    for found in run():
        found.show()
