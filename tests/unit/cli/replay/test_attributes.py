"""Attributes, filters and events that last in files: all formats are read alike."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.errors import UsageError
from cli.replay.chunks import read_chunks
from cli.replay.options import EventFile, Format
from cli.replay.reading import InputReader
from correlation.buffers.columns import DictionaryColumn
from correlation.resources.attributes import Attribute
from correlation.resources.filters import read_filter
from correlation.resources.mapping import EventMapping
from correlation.resources.streams import Stream
from tests.support.messages import naming

if TYPE_CHECKING:
    from pathlib import Path

ATTRIBUTES = (
    Attribute("rule", ("alert", "rule")),
    Attribute("level", ("level",), "integer"),
    Attribute("ratio", ("ratio",), "number"),
    Attribute("open", ("open",), "boolean"),
    # Also the id.
    Attribute("number", ("number",), "integer"),
    Attribute("topic", ("$topic",)),
    Attribute("at", ("$timestamp",), "integer"),
)
STREAM = Stream(
    "s",
    "doors",
    max_uncertainty_us=0,
    max_delay_us=0,
    clock="replay",
    mapping=EventMapping(
        "lasting",
        id_path=("number",),
        key_path=("site",),
        begin_path=("from",),
        end_path=("to",),
        format="epoch_s",
    ),
    attributes=ATTRIBUTES,
    where=read_filter({"rule": ["a", "b"]}, ATTRIBUTES),
)
ROWS: list[dict[str, Any]] = [
    {"rule": "a", "level": 3, "ratio": 0.5, "open": True, "from": 1, "to": 2},
    {"rule": "b", "level": -4, "ratio": 2.0, "open": False, "from": 1, "to": 1},
    {"rule": "c", "level": 3, "ratio": 0.5, "open": True, "from": 9, "to": 2},
    {"rule": None, "level": 3, "ratio": 0.5, "open": True, "from": 9, "to": 2},
    {"rule": "a", "level": None, "ratio": None, "open": None, "from": 3, "to": 5},
    {"rule": "a", "level": 1, "ratio": 1.0, "open": True, "from": 9, "to": 2},
]
for _number, _row in enumerate(ROWS):
    _row.update(number=_number, site="k")


def write(folder: Path, form: Format) -> Path:
    path = folder / f"rows.{form}"
    if form == "jsonl":
        records = [{**row, "alert": {"rule": row["rule"]}} for row in ROWS]
        path.write_text("".join(json.dumps(it) + "\n" for it in records))
    elif form == "csv":
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            names = ["number", "site", "alert.rule", "level", "ratio", "open", "from", "to"]
            writer.writerow(names)
            for row in ROWS:
                cells = [row[name.removeprefix("alert.")] for name in names]
                writer.writerow([str(it).lower() if isinstance(it, bool) else it for it in cells])
    else:
        records = [{**row, "alert": {"rule": row["rule"]}} for row in ROWS]
        pq.write_table(pa.Table.from_pylist(records), path)
    return path


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_files_are_read_alike(tmp_path: Path, form: Format) -> None:
    path = write(tmp_path, form)
    reader = InputReader(EventFile("s", 0, path, form), STREAM, 1_000, letters=True)
    found: list[tuple[object, ...]] = []
    rejected: list[str] = []
    filtered = rows = 0
    for chunk in read_chunks(EventFile("s", 0, path, form), STREAM, 1_000, whole_rows=True):
        taken = reader.read(chunk)
        rejected += taken.rejected.elements()
        filtered += taken.filtered
        rows += taken.rows
        if taken.events is None:
            continue
        columns = []
        for it in ATTRIBUTES:
            column = taken.events.columns[it.column_name]
            assert isinstance(column, DictionaryColumn)
            columns.append(column.to_list())
        spans = [taken.events.earliest.tolist(), taken.events.latest.tolist()]
        found += zip(taken.events.id.to_list(), *spans, *columns, strict=True)
    second = 1_000_000
    known = (b'"doors"', None)
    assert found == [
        (b"0", second, 2 * second, b'"a"', b"3", b"0.5", b"true", b"0", *known),
        (b"1", second, second, b'"b"', b"-4", b"2", b"false", b"1", *known),
        (b"4", 3 * second, 5 * second, b'"a"', None, None, None, b"4", *known),
    ]
    assert (filtered, rejected, rows) == (2, ["begin_after_end"], len(ROWS))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_file_without_the_column_of_an_attribute_is_refused(tmp_path: Path, form: Format) -> None:
    path = tmp_path / "rows"
    if form == "csv":
        path.write_text("number,site,from,to,alert.rule,level,ratio\n")
    else:
        row = dict.fromkeys(("number", "site", "from", "to", "level", "ratio", "alert.rule"), 1)
        pq.write_table(pa.Table.from_pylist([row]), path)
    file = EventFile("s", 0, path, form)
    with pytest.raises(UsageError, match=naming("column 'open'", "attribute open", "stream s")):
        list(read_chunks(file, STREAM, 1_000, whole_rows=True))
