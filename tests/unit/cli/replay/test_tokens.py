"""Tokens in files: all formats are read alike."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.errors import UsageError
from cli.replay.chunks import read_chunks
from cli.replay.options import EventFile, Format
from cli.replay.reading import InputReader
from correlation.buffers.columns import SetsColumn
from correlation.resources.mapping import EventMapping
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from correlation.resources.tokens import Tokens
from tests.support.messages import assert_names, naming

if TYPE_CHECKING:
    from pathlib import Path

MAPPED = EventMapping("time", id_path=("id",), time_path=("at",), format="epoch_us")
STREAM = Stream(
    "s",
    "log",
    max_uncertainty_us=0,
    max_delay_us=0,
    clock="replay",
    mapping=MAPPED,
    partitioning=Partitioning("grid"),
)
TAGS = replace(STREAM, tokens=Tokens(("alert", "tags"), lower_case=True))
NUMBERS = replace(STREAM, tokens=Tokens(("numbers",)))
WORDS = replace(STREAM, tokens=Tokens(("id",), "split:-"))
ROWS: list[dict[str, Any]] = [
    {"id": "a-b", "at": 1, "tags": ["Disk", "full"], "numbers": [1, 2**62]},
    {"id": "c", "at": 2, "tags": [], "numbers": [3]},
    {"id": "a-d-a", "at": 3, "tags": None, "numbers": None},
]


def write(folder: Path, form: Format, rows: list[dict[str, Any]]) -> Path:
    path = folder / f"rows.{form}"
    nested = [{**row, "alert": {"tags": row["tags"]}} for row in rows]
    if form == "jsonl":
        path.write_text("".join(json.dumps(it) + "\n" for it in nested))
    elif form == "parquet":
        pq.write_table(pa.Table.from_pylist(nested), path)
    else:
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "at", "alert.tags", "numbers"])
            for row in rows:
                lists = [row["tags"], row["numbers"]]
                cells = [
                    it if it is None or isinstance(it, str) else json.dumps(it) for it in lists
                ]
                writer.writerow([row["id"], row["at"], *cells])
    return path


def read(path: Path, form: Format, stream: Stream) -> tuple[list[set[str]], list[str]]:
    """Return the sets of the events, and the problems of rejected rows."""
    file = EventFile("s", 0, path, form)
    reader = InputReader(file, stream, 1_000, letters=True)
    sets: list[set[str]] = []
    details: list[str] = []
    for chunk in read_chunks(file, stream, 1_000, whole_rows=True):
        taken = reader.read(chunk)
        details += [json.loads(it)["detail"] for it in taken.letters]
        if taken.events is not None:
            column = taken.events.columns["tokens"]
            assert isinstance(column, SetsColumn)
            sets += [{token.decode() for token in it} for it in column.to_list()]
    return sets, details


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_files_are_read_alike(tmp_path: Path, form: Format) -> None:
    path = write(tmp_path, form, ROWS)
    assert read(path, form, TAGS) == ([{"disk", "full"}, set(), set()], [])
    numbers = [{"1", "4611686018427387904"}, {"3"}, set()]
    assert read(path, form, NUMBERS) == (numbers, [])
    # The field is also the id.
    assert read(path, form, WORDS) == ([{"a", "b"}, {"c"}, {"a", "d"}], [])


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_cell_that_is_not_a_list_is_rejected(tmp_path: Path, form: Format) -> None:
    path = write(tmp_path, form, [ROWS[0], ROWS[1] | {"tags": "[disk", "numbers": '"3"'}])
    sets, (problem,) = read(path, form, TAGS)
    assert sets == [{"disk", "full"}]
    assert_names(problem, "'alert.tags'", "list of tokens", "a string")


def test_canonical_events_may_have_their_tokens_in_a_column_of_this_name(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('id,time,tokens\ne,5,"[""a"", 7]"\nf,6,\n')
    stream = replace(STREAM, mapping=EventMapping(), tokens=Tokens(("tokens",)))
    assert read(path, "csv", stream) == ([{"a", "7"}, set()], [])


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_file_without_the_column_is_refused(tmp_path: Path, form: Format) -> None:
    path = write(tmp_path, form, ROWS)
    stream = replace(STREAM, tokens=Tokens(("alert", "words"), "words"))
    with pytest.raises(UsageError, match=naming("column 'alert.words'", "stream s", "missing")):
        read(path, form, stream)
