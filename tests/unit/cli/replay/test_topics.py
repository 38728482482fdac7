"""`coincide replay --topics` without a broker: options, streams, records, report."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

import pyarrow as pa
import pytest

from cli.client.set_aside import as_text
from cli.main import main
from cli.replay.chunks import Chunk
from cli.replay.merging import Source
from cli.replay.options import EventPartition
from cli.replay.reading import InputReader, Taken
from cli.replay.records import SCHEMA
from cli.replay.report import summarise
from cli.replay.setup import Setup, read_topic_setup
from correlation.buffers.events import Events
from correlation.resources.mapping import EventMapping
from correlation.resources.streams import Stream
from correlation.resources.topics import Topics
from spark_jobs.worker.envelope import EVENTS, REJECT, unpack_records
from spark_jobs.worker.pack import pack_records
from spark_jobs.worker.packing import Packing
from tests.support.messages import assert_names
from tests.support.workload import SourceRecord, runs_of

RESOURCES = """\
{kind: stream, name: a, topic: ta, max_uncertainty: 1s, max_delay: 1s}
---
{kind: stream, name: b, topic: tb, max_uncertainty: 1s, max_delay: 2s, clock: replay}
---
{kind: stream, name: unused, topic: tc, max_uncertainty: 1s, max_delay: 1s}
---
{kind: mutual_deadline, name: near, a: a, b: b, window: 1s, threshold: 0.5, output_topic: live}
---
{kind: mutual_deadline, name: other, a: a, b: unused, window: 1s, threshold: 0.5}
"""


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ([], ["--events", "missing", "--events STREAM=FILE", "--topics"]),
        (["--topics", "--events", "a=a.jsonl"], ["--events", "events in files"]),
        (["--topics", "--sort", "--key", "a=k"], ["--key, --sort", "events in files"]),
        (["--topics", "--format", "csv"], ["--format", "events in files"]),
        (["--bootstrap", "h:1"], ["--bootstrap", "events in Kafka", "--topics"]),
        (
            ["--topics", "--thresholds", "0.5", "--alarms", "x"],
            ["--alarms", "combined with --thresholds"],
        ),
        (
            ["--topics", "--rejects", "r.yaml"],
            ["r.yaml", "input", "output"],
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    arguments: list[str],
    names: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.yaml").write_text(RESOURCES)
    with pytest.raises(SystemExit) as ended:
        main(["replay", "-f", "r.yaml", *arguments])
    assert ended.value.code == 2
    assert_names(capsys.readouterr().err, *names)


def test_streams_have_the_replay_clock_and_only_needed_topics_are_read(tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(RESOURCES)
    setup = read_topic_setup([file], ["near"], lambda it: {"ta": 2, "tb": 3}[it.topic])
    assert setup.partitions == {"a": 2, "b": 3}
    assert {it.name: (it.clock, it.max_delay_us) for it in setup.streams.values()} == {
        "a": ("replay", 1_000_000),
        "b": ("replay", 2_000_000),
    }
    assert [it.name for it in setup.conditions] == ["near"]


# Of `SourceRecord`, in the order of the columns.
FIELDS = ("key", "value", "offset", "record_timestamp_us")
VALUES = [
    b'{"id": "e", "key": "other", "earliest": 0, "latest": 100}',
    None,
    b"",
    b"{",
    b'{"id": "e", "earliest": 0, "latest": 100}',
    b'{"earliest": 5, "latest": 100}',
    b" " * 201,
    b"[1]",
]
KEYS = [b"k", b"k", None, b"\xff", None, b"k", b"k", b"k"]


def test_records_are_read_and_rejected_as_by_the_job() -> None:
    stream = Stream("s", "t", 1_000, 0, clock="replay", mapping=EventMapping(key_path=None))
    records = [
        # Offsets of a compacted topic have gaps.
        SourceRecord("t", value, key, 3, 10 + 7 * number, 1_000 * number)
        for number, (key, value) in enumerate(zip(KEYS, VALUES, strict=True))
    ]
    packing = Packing(Topics("p"), (stream,), (1,), 200)
    rows = [row for it in pack_records(packing, [runs_of(records)]) for row in it.to_pylist()]
    (job,) = [Events.from_bytes(row["blob"]) for row in rows if row["kind"] == EVENTS]
    letters = [
        (
            it.key,
            it.value,
            {k.removeprefix("coincide.error."): as_text(v) or "" for k, v in it.headers},
        )
        for row in rows
        if row["kind"] == REJECT
        for it in unpack_records(row["blob"])
    ]

    columns = [[getattr(it, name) for it in records] for name in FIELDS]
    arrays = [pa.array(it, field.type) for it, field in zip(columns, SCHEMA, strict=True)]
    chunk = Chunk(0, 0, 60, table=pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
    origin = EventPartition("s", 3, "t", 10, 70)
    taken = InputReader(origin, stream, 200, letters=True).read(chunk)
    assert taken.events is not None
    for name in ("id", "key"):
        assert getattr(taken.events, name).to_list() == getattr(job, name).to_list()
    for name in ("earliest", "latest", "partition", "offset", "record_timestamp_us"):
        assert getattr(taken.events, name).tolist() == getattr(job, name).tolist()
    assert job.id.to_list() == [b"e", b"t-3-45"]

    found = [json.loads(letter) for letter in taken.letters]
    assert found == [
        {
            "topic": "t",
            "partition": 3,
            "stream": "s",
            "offset": int(headers["offset"]),
            "reason": headers["reason"],
            "detail": headers["detail"],
            "key": as_text(key),
            "record": as_text(value),
        }
        for key, value, headers in letters
    ]
    assert len(found) == 6
    assert taken.first["null_value"].startswith("t, partition 3, offset 17: ")
    assert (taken.rows, taken.size) == (8, 60)


def test_report_names_the_topic_and_its_lost_records() -> None:
    stream = Stream("s", "t", 0, 0, clock="replay")
    empty = pa.RecordBatch.from_arrays([pa.array([], it.type) for it in SCHEMA], schema=SCHEMA)
    chunks = iter([Chunk(0, 0, 5, table=empty, lost=count) for count in (2, 3)])
    origin = EventPartition("s", 0, "t", 0, 10)
    reader = InputReader(origin, stream, 200, letters=False)

    def read(chunk: Chunk) -> Future[Taken]:
        future: Future[Taken] = Future()
        future.set_result(reader.read(chunk))
        return future

    source = Source(origin, stream, chunks, read, 1, lambda _: None)
    source.take(10)
    report = summarise(Setup({"s": stream}, {"s": 1}, ()), [source], Counter(), (), 1.0)
    assert report["streams"]["s"] == {
        "topic": "t",
        "rows": 0,
        "events": 0,
        "late": 0,
        "rejected": {},
        "first_rejected": {},
        "lost": 5,
    }
