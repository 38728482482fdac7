"""Rows of files: JSON lines, CSV and Parquet, valid and invalid."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.errors import UsageError
from cli.replay import chunks
from cli.replay.chunks import read_chunks
from cli.replay.options import EventFile, Format
from cli.replay.reading import InputReader
from correlation.reasons import Reason
from correlation.resources.mapping import EventMapping
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from correlation.resources.topics import Topics
from spark_jobs.worker.envelope import unpack_records
from spark_jobs.worker.pack import pack_records
from spark_jobs.worker.packing import Packing
from tests.support.messages import naming
from tests.support.workload import SourceRecord, runs_of

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES = 200
CANONICAL = Stream(
    "s", "events", max_uncertainty_us=1_000, max_delay_us=0, min_uncertainty_us=10, clock="replay"
)
RANGE = Stream(
    "r",
    "felt",
    max_uncertainty_us=2_000_000,
    max_delay_us=0,
    clock="replay",
    mapping=EventMapping(
        form="range",
        id_path=("phone",),
        key_path=("site",),
        earliest_path=("felt", "from"),
        latest_path=("felt", "to"),
        format="epoch_s",
    ),
)
Row = tuple[str, str, int, int]
Letter = dict[str, Any]


def read(path: Path, stream: Stream, form: Format) -> tuple[list[Row], list[Letter]]:
    """Return the events of a file, and its rejected rows."""
    file = EventFile(stream.name, 0, path, form)
    reader = InputReader(file, stream, MOST_BYTES, letters=True)
    rows: list[Row] = []
    letters: list[Letter] = []
    nbytes = 0
    for chunk in read_chunks(file, stream, MOST_BYTES, whole_rows=True):
        taken = reader.read(chunk)
        nbytes += taken.size
        letters += map(json.loads, taken.letters)
        events = taken.events
        count = 0 if events is None else len(events)
        assert taken.rows == count + sum(taken.rejected.values())
        if events is not None:
            ids, keys = events.id.to_list(), events.key.to_list()
            spans = zip(events.earliest.tolist(), events.latest.tolist(), strict=True)
            rows += [
                (it.decode(), key.decode(), *span)
                for it, key, span in zip(ids, keys, spans, strict=True)
            ]
    # The progress bar ends where the file does, but for a header and the last line break.
    header = len(path.read_bytes().partition(b"\n")[0]) + 1 if form == "csv" else 0
    assert not nbytes or nbytes + header - path.stat().st_size in {0, 1}
    return rows, letters


def reasons(letters: list[Letter]) -> list[tuple[int, str]]:
    return [(it["line"] if "line" in it else it["row"], it["reason"]) for it in letters]


@pytest.fixture(params=[1, 2, 1_000], autouse=True)
def _most_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut the files anywhere."""
    monkeypatch.setattr(chunks, "_MAX_ROWS", request.param)
    monkeypatch.setattr(chunks, "_PIECE_BYTES", 7 * request.param)


def event(**fields: object) -> bytes:
    return json.dumps({"id": "e", "key": "k", "earliest": 0, "latest": 100, **fields}).encode()


LINES = [
    event(),
    b'{"id": "e"',
    b"{} {}",
    b'{"id":"e","key":"k","earliest":NaN,"latest":1}',
    '{"id":"é"}'.encode("latin-1"),
    b"\xef\xbb\xbf{}",
    b'{"id":"\\ud800","earliest":0,"latest":50}',
    b"null",
    b"[1,2]",
    b'{"id":"e","key":"k"}',
    event(latest=None),
    event(latest=True),
    event(latest="soon"),
    event(earliest=10**18 * 2, latest=10**18 * 2 + 50),
    event(earliest=101),
    event(earliest=91),
    event(latest=1_001),
    b'{"id":"e","earliest":0,"latest":100}',
    event(id={}),
    event(pad="x" * MOST_BYTES),
    event(id=None),
    event(time=5),
]


def test_lines_are_rejected_as_the_job_rejects_records(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"\r\n".join(LINES))
    rows, letters = read(path, CANONICAL, "jsonl")
    packing = Packing(Topics("p"), (CANONICAL,), (1,), MOST_BYTES)
    records = [SourceRecord("events", line, None, 0, i, 0) for i, line in enumerate(LINES)]
    dead = [
        (headers["coincide.error.offset"], headers["coincide.error.reason"], detail)
        for batch in pack_records(packing, [runs_of(records)])
        for row in batch.to_pylist()
        if row["kind"] == "reject"
        for record in unpack_records(row["blob"])
        for headers in [dict(record.headers)]
        for detail in [headers["coincide.error.detail"]]
    ]
    found = [
        (str(it["line"] - 1).encode(), it["reason"].encode(), it["detail"].encode())
        for it in letters
    ]
    # The length of a line that is passed over has its line break in it.
    assert [it[:2] for it in found] == [it[:2] for it in dead]
    assert [it for it in found if it[1] != b"too_large"] == [
        it for it in dead if it[1] != b"too_large"
    ]
    assert rows == [("e", "k", 0, 100), ("events-0-20", "k", 0, 100), ("e", "k", 0, 100)]
    kept = {it["line"]: it["record"] for it in letters}
    assert kept[2] == '{"id": "e"'
    assert kept[5] == '{"id":"\\xe9"}'
    assert letters[0]["file"] == str(path)
    assert letters[0]["stream"] == "s"


def test_long_line_is_passed_over_and_the_next_one_read(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"\n" + b"x" * 3_000_000 + b"\n\n" + event() + b"\n" + b"y" * 300)
    rows, letters = read(path, CANONICAL, "jsonl")
    assert len(rows) == 1
    assert reasons(letters) == [(2, "too_large"), (5, "too_large")]
    assert [(it["record"], it["omitted_bytes"]) for it in letters] == [
        (None, 3_000_000),
        (None, 300),
    ]


CSV = """\
\ufeffphone, site,felt.from,felt.to,note
geo-1,north,1.5,2,plain
geo-2,"no""rth",1.25,2,"two
lines"

007,1e3,1,2,
,south,1,2,no id
geo-3,,1,2,no key
geo-4,north,,2,no time
geo-5,north,soon,2,text
geo-6,north,1,2
geo-7,north,1,2,"open
geo-8,north,1,2,7" pipe
geo-9,north,1,2,"x"y
geo-10,north,1,9,long
geo-11,north,1,2,"last"
"""


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_csv_rows_become_events_or_are_rejected_one_by_one(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "events.csv"
    path.write_bytes(CSV.replace("\n", ending).encode())
    rows, letters = read(path, RANGE, "csv")
    assert rows == [
        ("geo-1", "north", 1_500_000, 2_000_000),
        ("geo-2", 'no"rth', 1_250_000, 2_000_000),
        ("007", "1e3", 1_000_000, 2_000_000),
        ("felt-0-4", "south", 1_000_000, 2_000_000),
        ("geo-8", "north", 1_000_000, 2_000_000),
        ("geo-11", "north", 1_000_000, 2_000_000),
    ]
    assert reasons(letters) == [
        (8, "missing_key"),
        (9, "missing_field"),
        (10, "not_a_time"),
        (11, "malformed_row"),
        (12, "malformed_row"),
        (14, "malformed_row"),
        (15, "longer_than_declared"),
    ]
    assert letters[2]["record"] == {
        "phone": "geo-5",
        "site": "north",
        "felt.from": "soon",
        "felt.to": "2",
        "note": "text",
    }
    assert letters[3]["record"] == "geo-6,north,1,2"
    assert letters[4]["record"] == 'geo-7,north,1,2,"open'


def test_csv_cells_may_be_long_or_no_utf8(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    long = b'e,k,0,100,"' + b"x" * MOST_BYTES + b'"\n'
    others = b"e,k,0,100,\xe9\ne,k,250ms,100,x\ne,k,0,9.5,"
    path.write_bytes(b"id,key,earliest,latest,note\n" + long + others)
    rows, letters = read(path, CANONICAL, "csv")
    assert rows == [("e", "k", 0, 10)]
    assert reasons(letters) == [(2, "too_large"), (3, "wrong_encoding"), (4, "not_a_time")]


def test_canonical_csv_takes_every_column_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text(
        "time,before,id,key,earliest,latest\n"
        "1970-01-01T00:00:01Z,100us,a,k,,\n"
        "1000100,100,b,k,,\n"
        ",,c,k,5,1970-01-01T00:00:00.000100Z\n",
        encoding="utf-8",
    )
    rows, letters = read(path, CANONICAL, "csv")
    assert letters == []
    assert rows == [
        ("a", "k", 999_900, 1_000_000),
        ("b", "k", 1_000_000, 1_000_100),
        ("c", "k", 5, 100),
    ]


def _stamp(us: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)


def test_parquet_rows_become_events_or_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    rows = [
        {"phone": "g1", "site": b"n", "felt": {"from": 1.5, "to": 2.0}, "day": date(2026, 1, 1)},
        {"phone": "g2", "site": b"\xff", "felt": {"from": 1.0, "to": 2.0}, "day": None},
        {"phone": None, "site": b"n", "felt": {"from": 1.0, "to": 2.0}, "day": None},
        {"phone": "g4", "site": b"n", "felt": {"from": None, "to": 2.0}, "day": None},
        {"phone": "g5", "site": b"n", "felt": None, "day": None},
    ]
    struct = pa.struct({"from": pa.float64(), "to": pa.float64()})
    kinds = {"phone": pa.string(), "site": pa.binary(), "felt": struct, "day": pa.date32()}
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(kinds)), path)
    found, letters = read(path, RANGE, "parquet")
    assert found == [
        ("g1", "n", 1_500_000, 2_000_000),
        ("felt-0-2", "n", 1_000_000, 2_000_000),
    ]
    assert reasons(letters) == [(2, "wrong_type"), (4, "wrong_type"), (5, "missing_field")]
    assert letters[1]["record"] == {
        "phone": "g4",
        "site": "n",
        "felt": {"from": None, "to": 2.0},
        "day": None,
    }


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_parquet_timestamps_are_times_whatever_the_format(
    tmp_path: Path, unit: str, zone: str | None
) -> None:
    path = tmp_path / "events.parquet"
    kind = pa.timestamp(unit, zone)
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    table = {
        "phone": pa.array(["a"]),
        "site": pa.array([Decimal(7)]),
        "felt.from": pa.array([1767225600 * scale], pa.int64()).cast(kind),
        "felt.to": pa.array([1767225601 * scale], pa.int64()).cast(kind),
    }
    pq.write_table(pa.table(table), path)
    rows, letters = read(path, RANGE, "parquet")
    assert letters == []
    assert rows == [("a", "7", 1_767_225_600_000_000, 1_767_225_601_000_000)]


def test_parquet_timestamp_beyond_the_calendar_is_rejected_alone(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    stamps = pa.array([0, 2**62, 20], pa.int64()).cast(pa.timestamp("us"))
    times = {"earliest": stamps, "latest": pa.array([100, 2**62 + 50, 120], pa.int64())}
    pq.write_table(pa.table({"id": ["a", "b", "c"], "key": ["k"] * 3, **times}), path)
    rows, letters = read(path, CANONICAL, "parquet")
    assert rows == [("a", "k", 0, 100), ("c", "k", 20, 120)]
    assert reasons(letters) == [(2, "time_out_of_range")]
    assert letters[0]["record"]["id"] == "b"


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_file_without_a_byte_has_no_rows(tmp_path: Path, form: Format) -> None:
    path = tmp_path / "events"
    path.write_bytes(b"")
    assert read(path, RANGE, form) == ([], [])


def test_files_without_rows_have_none(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("phone,site,felt.from,felt.to\n")
    assert read(path, RANGE, "csv") == ([], [])
    path = tmp_path / "events.parquet"
    kinds = {"id": pa.string(), "key": pa.string(), "earliest": pa.int64(), "latest": pa.int64()}
    pq.write_table(pa.schema(kinds).empty_table(), path)
    assert read(path, CANONICAL, "parquet") == ([], [])


def _wrong(tmp_path: Path, name: str, content: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("form", "content", "names"),
    [
        (
            "csv",
            b"phone,site,from,felt.to\n",
            ["column 'felt.from'", "missing", "phone, site, from"],
        ),
        ("csv", b"phone,site,felt.from,felt.to,site\n", ["column 'site'", "repeated 2 times"]),
        ("csv", b'phone,"site\n', ["header", "cannot be read"]),
        ("csv", b"\xff\n", ["header", "cannot be read"]),
        ("csv", b"x" * 300, ["header", "too long", "300 bytes"]),
        ("parquet", b"PAR0", ["cannot be read"]),
        ("parquet", b"", ["cannot be read"]),
    ],
)
def test_file_of_another_form_is_refused(
    tmp_path: Path, form: Format, content: bytes, names: list[str]
) -> None:
    with pytest.raises(UsageError, match=naming(*names)):
        read(_wrong(tmp_path, "events", content), RANGE, form)


def test_parquet_file_without_the_mappings_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(pa.table({"phone": ["a"], "site": ["b"], "felt": [1.0]}), path)
    with pytest.raises(UsageError, match=r"column 'felt.from' .* is missing"):
        read(path, RANGE, "parquet")
    stamps = pa.array([0]).cast(pa.timestamp("s"))
    times = {"felt.from": stamps, "felt.to": pa.array([1.0])}
    pq.write_table(pa.table({"phone": ["a"], "site": ["b"], **times}), path)
    with pytest.raises(UsageError, match=naming("only some", "stream r", "timestamps")):
        read(path, RANGE, "parquet")


def test_key_column_is_not_needed_where_all_events_meet(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("phone,felt.from,felt.to\na,1,2\n")
    stream = Stream(
        "r",
        "felt",
        2_000_000,
        0,
        mapping=RANGE.mapping,
        clock="replay",
        partitioning=Partitioning("grid"),
    )
    assert read(path, stream, "csv") == ([("a", "", 1_000_000, 2_000_000)], [])


def test_every_reason_is_one_of_the_closed_list(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text(CSV, encoding="utf-8")
    assert {reason for _, reason in reasons(read(path, RANGE, "csv")[1])} <= set(Reason)
