"""Templates and histograms in files: every row format keeps the shapes."""

from __future__ import annotations

import json
from concurrent.futures import Future
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.errors import UsageError
from cli.replay.chunks import read_chunks
from cli.replay.merging import Source
from cli.replay.options import EventFile, Format, ReplayOptions
from cli.replay.reading import InputReader
from cli.replay.setup import read_setup
from correlation.buffers.events import Events
from correlation.resources.histogram import Histogram
from correlation.resources.mapping import EventMapping
from correlation.resources.streams import Stream
from correlation.resources.template import Template
from tests.support.messages import naming

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cli.replay.chunks import Chunk
    from cli.replay.reading import Taken

HALVES = Template("halves", Histogram.from_buckets([[0, 40, "0.5"], [40, 90, "0.5"]]))
OWN = Histogram.from_buckets([[1_000_005, 1_000_025, "0.15"], [1_000_025, 1_000_045, "0.85"]])
WITH_HISTOGRAMS = Stream(
    "s",
    "t",
    max_uncertainty_us=100,
    max_delay_us=0,
    clock="replay",
    templates=(HALVES,),
    histograms=True,
)
WHEN = Stream(
    "s",
    "t",
    max_uncertainty_us=100,
    max_delay_us=0,
    clock="replay",
    histograms=True,
    mapping=EventMapping(
        "histogram", key_path=("key",), histogram_path=("seen", "when"), format="epoch_us"
    ),
)
Found = list[tuple[int, int, bytes | None]]
DETECTED = (999_910, 1_000_000, HALVES.histogram.shape_bytes)
MEASURED = (1_000_005, 1_000_045, OWN.shape_bytes)
PLAIN = (999_990, 1_000_000, None)
LISTS = [[1_000_005, 1_000_025, 0.15], [1_000_025, 1_000_045, 0.85]]
OBJECTS = [{"lo": lo, "hi": hi, "p": p} for lo, hi, p in LISTS]


def read(path: Path, stream: Stream, form: Format) -> tuple[Found, list[str]]:
    """Return the events of a file, and the reasons for which rows were rejected."""
    file = EventFile(stream.name, 0, path, form)
    reader = InputReader(file, stream, 10_000, letters=True)
    taken = [reader.read(it) for it in read_chunks(file, stream, 10_000, whole_rows=True)]
    reasons = [json.loads(letter)["reason"] for it in taken for letter in it.letters]
    return described(it.events for it in taken if it.events is not None), reasons


def described(blocks: Iterable[Events]) -> Found:
    found: Found = []
    for events in blocks:
        shapes = [None] * len(events) if events.shape is None else events.shape.to_list()
        spans = zip(events.earliest.tolist(), events.latest.tolist(), strict=True)
        found += [(*span, shape) for span, shape in zip(spans, shapes, strict=True)]
    return found


def test_lines(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    rows = [
        {"key": "k", "detected": 1_000_000, "template": "halves"},
        {"key": "k", "time": 1_000_000, "before": 10},
        {"key": "k", "histogram": LISTS},
        {"key": "k", "detected": 1_000_000, "template": "thirds"},
        {"key": "k", "histogram": LISTS[:1]},
        {"key": "k", "histogram": OBJECTS},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    found, reasons = read(path, WITH_HISTOGRAMS, "jsonl")
    assert found == [DETECTED, PLAIN, MEASURED, MEASURED]
    assert reasons == ["unknown_template", "bad_histogram"]


def test_cells_of_csv(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    quoted = json.dumps(LISTS).replace('"', '""')
    path.write_text(
        "key,detected,template,histogram,time,before\n"
        "k,1000000,halves,,,\n"
        f'k,,,"{quoted}",,\n'
        "k,,,,1970-01-01T00:00:01Z,10us\n"
        "k,,,half past noon,,\n"
        "k,,,7,,\n"
    )
    found, reasons = read(path, WITH_HISTOGRAMS, "csv")
    assert found == [DETECTED, MEASURED, PLAIN]
    assert reasons == ["bad_histogram", "bad_histogram"]
    path.write_text(f'key,seen.when\nk,"{quoted}"\n')
    assert read(path, WHEN, "csv") == ([MEASURED], [])


def test_columns_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    bucket = pa.struct({"lo": pa.int64(), "hi": pa.int64(), "p": pa.decimal128(12, 10)})
    exact = [{**it, "p": Decimal(str(it["p"]))} for it in OBJECTS]
    rows: list[dict[str, Any]] = [
        {"key": "k", "detected": 1_000_000, "template": "halves", "histogram": None},
        {"key": "k", "detected": None, "template": None, "histogram": exact},
        # Null is JSON's null, here of all its times.
        {"key": "k", "detected": None, "template": None, "histogram": None},
    ]
    kinds = {"detected": pa.int64(), "template": pa.string(), "histogram": pa.list_(bucket)}
    table = pa.Table.from_pylist(rows, pa.schema({"key": pa.string(), **kinds}))
    pq.write_table(table, path)
    assert read(path, WITH_HISTOGRAMS, "parquet") == ([DETECTED, MEASURED], ["missing_field"])


@pytest.mark.parametrize("kind", ["lists", "objects", "timestamps"])
def test_histogram_column_that_the_mapping_names(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "events.parquet"
    when: Any = pa.array([OBJECTS])
    if kind == "lists":
        when = pa.array([[list(map(float, bucket)) for bucket in LISTS]])
    elif kind == "timestamps":
        # Times by themselves, whatever the format of the mapping.
        stamped = [
            {**it, **{end: datetime.fromtimestamp(it[end] / 1e6, UTC) for end in ("lo", "hi")}}
            for it in OBJECTS
        ]
        when = pa.array([stamped])
    nested = pa.StructArray.from_arrays([when], ["when"])
    pq.write_table(pa.table({"key": ["k"], "seen": nested}), path)
    assert read(path, WHEN, "parquet") == ([MEASURED], [])
    pq.write_table(pa.table({"key": ["k"], "seen.when": when}), path)
    assert read(path, WHEN, "parquet") == ([MEASURED], [])


RESOURCES = """\
{kind: stream, name: s, topic: t, max_uncertainty: 100us, max_delay: 0s, templates: [halves]}
---
{kind: mutual_deadline, name: near, a: s, b: s, window: 1s, threshold: 0.5}
---
{kind: template, name: halves, buckets: [[0s, 40us, 0.5], {lo: 40, hi_us: 90, p: "0.5"}]}
"""


def options(tmp_path: Path, resources: str) -> ReplayOptions:
    (tmp_path / "r.yaml").write_text(resources)
    file = EventFile("s", 0, tmp_path / "s.jsonl", "jsonl")
    return ReplayOptions((tmp_path / "r.yaml",), (file,), sort=True)


def test_setup_resolves_templates_and_blocks_keep_the_shapes(tmp_path: Path) -> None:
    given = options(tmp_path, RESOURCES)
    setup = read_setup(given)
    assert setup.streams["s"].templates == (HALVES,)
    rows = [
        {"id": number, "key": "k", "detected": 1_000_000 - number, "template": "halves"}
        for number in range(5)
    ]
    given.files[0].path.write_text("\n".join(map(json.dumps, rows)))
    reader = InputReader(given.files[0], setup.streams["s"], 10_000, letters=False)
    chunks = read_chunks(given.files[0], setup.streams["s"], 10_000, whole_rows=False)

    def done(chunk: Chunk) -> Future[Taken]:
        future: Future[Taken] = Future()
        future.set_result(reader.read(chunk))
        return future

    source = Source(given.files[0], setup.streams["s"], chunks, done, 1, lambda _: None)
    source.sort()
    steps = [source.take(most)[0] for most in (2, 3)]
    found = described(events for step in steps for events in step.events.values())
    assert found == [
        (early - number, late - number, shape)
        for number in reversed(range(5))
        for early, late, shape in [DETECTED]
    ]


@pytest.mark.parametrize(
    ("resources", "names"),
    [
        (
            RESOURCES.replace("name: halves", "name: thirds"),
            ["stream s", "template halves", "not in the files"],
        ),
        (
            RESOURCES.replace("0.5]", "0.4]"),
            ["template halves: buckets", "exactly 1", "got 0.9"],
        ),
        (
            RESOURCES.replace("hi_us", "high"),
            ["template halves: buckets[1].high", "not a field"],
        ),
        (
            RESOURCES.replace("buckets", "bucket"),
            ["template halves", "bucket: is", "not a field", "mean buckets"],
        ),
        (
            RESOURCES.replace("100us", "80us"),
            ["stream s: max_uncertainty", "template halves", "90us"],
        ),
        (RESOURCES.replace("[halves]", "halves"), ["stream s: templates", "list"]),
    ],
)
def test_setup_says_what_is_wrong_with_templates(
    tmp_path: Path, resources: str, names: list[str]
) -> None:
    with pytest.raises(UsageError, match=naming(*names)):
        read_setup(options(tmp_path, resources))
