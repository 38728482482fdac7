"""Packing of records of streams with attributes, filters and events that last."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

import orjson
import pandas as pd
import pytest

from correlation.buffers.columns import DictionaryColumn
from correlation.buffers.events import Events
from correlation.engine.program import Program
from correlation.reasons import Reason
from correlation.resources.attributes import Attribute, column_name
from correlation.resources.filters import read_filter
from correlation.resources.mapping import EventMapping
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from correlation.resources.topics import Topics
from spark_jobs.worker.envelope import unpack_records
from spark_jobs.worker.gathering import gather
from spark_jobs.worker.pack import pack_records
from spark_jobs.worker.packing import Packing
from tests.support.workload import SourceRecord, runs_of

TOPICS = Topics("p")
SLOT_KEYS = (11, 12)
KIND = Attribute("kind", ("kind",))
LEVEL = Attribute("level", ("level",), "integer")
SMOKE = Stream(
    "smoke",
    "alerts",
    max_uncertainty_us=0,
    max_delay_us=10,
    clock="replay",
    mapping=EventMapping("time", id_path=("id",), time_path=("seen",), format="epoch_us"),
    attributes=(KIND, LEVEL),
    where=read_filter({"kind": "smoke", "level": {"min": 2}}, (KIND, LEVEL)),
)
REPAIR = Stream(
    "repair",
    "alerts",
    max_uncertainty_us=0,
    max_delay_us=0,
    clock="replay",
    mapping=EventMapping(
        "lasting", id_path=("id",), begin_path=("from",), end_path=("to",), format="epoch_us"
    ),
    partitioning=Partitioning("grid", 2),
    attributes=(KIND,),
    where=read_filter({"kind": "repair"}, (KIND,)),
    max_length_us=100,
)
RECORDS = [
    {"id": "s1", "kind": "smoke", "level": 3, "seen": 5},
    {"id": "r1", "kind": "repair", "from": 1, "to": 60},
    {"id": "s2", "kind": "smoke", "level": 1, "seen": 7_000},
    {"id": "s3", "kind": "smoke", "level": 2},
    {"id": "s4", "kind": "smoke", "level": 2, "seen": 9},
    {"id": "r2", "kind": "repair", "from": 1, "to": 200},
    {"id": "x1", "kind": "other", "level": "low"},
    {"id": "s5", "kind": "smoke", "level": "low", "seen": 8_000},
    {"id": "x2"},
]


@pytest.fixture(params=[1, 2, 100], name="rows")
def _rows(request: pytest.FixtureRequest) -> list[dict[str, object]]:
    """Return the packed rows of the records, in Arrow batches of several sizes."""
    records = [
        SourceRecord("alerts", json.dumps(it).encode(), b"k", 1, place)
        for place, it in enumerate(RECORDS)
    ]
    cut = request.param
    batches = (runs_of(records[low : low + cut]) for low in range(0, len(records), cut))
    packing = Packing(TOPICS, (SMOKE, REPAIR), SLOT_KEYS, max_record_bytes=1_000)
    return [row for batch in pack_records(packing, batches) for row in batch.to_pylist()]


def blobs_of(rows: Sequence[dict[str, object]], kind: str) -> Iterator[bytes]:
    return (row["blob"] for row in rows if row["kind"] == kind)  # type: ignore[misc]


def test_streams_of_one_topic_take_the_records_that_match(rows: list[dict[str, object]]) -> None:
    found: dict[str, dict[tuple[bytes, int, int], bytes | None]] = {"smoke": {}, "repair": {}}
    for blob in blobs_of(rows, "events"):
        events = Events.from_bytes(blob)
        kinds = events.columns[column_name("kind")]
        assert isinstance(kinds, DictionaryColumn)
        spans = zip(
            events.id.to_list(), events.earliest.tolist(), events.latest.tolist(), strict=True
        )
        found[events.stream] |= dict(zip(spans, kinds.to_list(), strict=True))
    assert found == {
        "smoke": {(b"s1", 5, 5): b'"smoke"', (b"s4", 9, 9): b'"smoke"'},
        "repair": {(b"r1", 1, 60): b'"repair"'},
    }


def test_records_that_do_not_match_are_counted_and_not_rejected(
    rows: list[dict[str, object]],
) -> None:
    filtered: Counter[str] = Counter()
    for blob in blobs_of(rows, "filtered"):
        stream, count = orjson.loads(blob)
        filtered[stream] += count
    assert filtered == {"smoke": 5, "repair": 7}
    letters: Counter[tuple[str, bytes | None, bytes | None]] = Counter()
    for blob in blobs_of(rows, "reject"):
        for record in unpack_records(blob):
            headers = dict(record.headers)
            stream, reason = (headers[f"coincide.error.{it}"] for it in ("stream", "reason"))
            letters[orjson.loads(record.value or b"")["id"], stream, reason] += 1
    assert letters == {
        ("s3", b"smoke", Reason.MISSING_FIELD.encode()): 1,
        ("s5", b"smoke", Reason.BAD_ATTRIBUTE.encode()): 1,
        ("r2", b"repair", Reason.LONGER_THAN_DECLARED.encode()): 1,
    }


def test_the_progress_has_only_matching_events(rows: list[dict[str, object]]) -> None:
    (*_, last) = blobs_of(rows, "progress")
    assert orjson.loads(last) == [
        ["repair", 1, len(RECORDS), 60],
        ["smoke", 1, len(RECORDS), 9],
    ]


def test_the_slots_count_filtered_records_once(rows: list[dict[str, object]]) -> None:
    counts: Counter[str] = Counter()
    marks = set()
    for key in SLOT_KEYS:
        mine = pd.DataFrame([row for row in rows if row["slot_key"] == key])
        streams = {"smoke": SMOKE, "repair": REPAIR}
        program = Program(streams, {"smoke": 2, "repair": 2})
        block = gather([mine], {}, {}, streams, Topics()).block
        metrics = program.advance(block, lambda: 0).metrics
        for name, labels, value in metrics["counters"]:
            if name in {"events_filtered_total", "events_consumed_total", "events_late_total"}:
                counts[f"{name} {labels['stream']}"] += value
        marks.add(json.dumps(metrics["watermarks"], sort_keys=True))
    assert +counts == {
        "events_filtered_total smoke": 5,
        "events_filtered_total repair": 7,
        "events_consumed_total smoke": 2,
        "events_consumed_total repair": 1,
    }
    assert len(marks) == 1
