"""Packing of records of streams with tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator

import orjson
import pytest

from correlation.buffers.columns import SetsColumn
from correlation.buffers.events import Events
from correlation.resources.mapping import EventMapping
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from correlation.resources.tokens import Tokens
from correlation.resources.topics import Topics
from spark_jobs.worker.envelope import unpack_records
from spark_jobs.worker.pack import pack_records
from spark_jobs.worker.packing import Packing
from tests.support.workload import SourceRecord, runs_of

SLOT_KEYS = (11, 12, 13)
TIMED = EventMapping(
    "time", id_path=("id",), key_path=("key",), time_path=("at",), format="epoch_us"
)
KEYED = Stream(
    "keyed", "log", 0, 10, clock="replay", mapping=TIMED, tokens=Tokens(("message",), "words")
)
GRID = Stream(
    "grid",
    "log",
    0,
    10,
    clock="replay",
    mapping=TIMED,
    partitioning=Partitioning("grid", 2),
    tokens=Tokens(("tags",)),
)
PLAIN = Stream("plain", "log", 0, 10, clock="replay", mapping=TIMED)
RECORDS = [
    {"id": f"e{place}", "key": f"k{place}", "at": place, "message": message, "tags": tags}
    for place, (message, tags) in enumerate(
        [
            ("disk full", ["a"]),
            ("full stop", ["b", "a"]),
            ("", []),
            (None, None),
            (["disk"], ["c"]),
            ("disk", "c"),
        ]
    )
]


@pytest.fixture(params=[1, 4, 100], name="rows")
def _rows(request: pytest.FixtureRequest) -> list[dict[str, object]]:
    """Return the packed rows of the records, in Arrow batches of several sizes."""
    records = [
        SourceRecord("log", json.dumps(it).encode(), b"k", 0, place)
        for place, it in enumerate(RECORDS)
    ]
    cut = request.param
    batches = (runs_of(records[low : low + cut]) for low in range(0, len(records), cut))
    packing = Packing(Topics("p"), (KEYED, GRID, PLAIN), SLOT_KEYS, max_record_bytes=1_000)
    return [row for batch in pack_records(packing, batches) for row in batch.to_pylist()]


def blobs_of(rows: list[dict[str, object]], kind: str) -> Iterator[bytes]:
    return (row["blob"] for row in rows if row["kind"] == kind)  # type: ignore[misc]


def test_every_copy_of_an_event_has_its_set(rows: list[dict[str, object]]) -> None:
    found: dict[str, dict[bytes, set[frozenset[bytes]]]] = {"keyed": {}, "grid": {}}
    for blob in blobs_of(rows, "events"):
        events = Events.from_bytes(blob)
        if events.stream == "plain":
            assert events.columns == {}
            continue
        column = events.columns["tokens"]
        assert isinstance(column, SetsColumn)
        sets = column.to_list()
        # A slot's blob has the tokens of its own events, and no others.
        assert sorted(column.values.to_list()) == sorted(frozenset().union(*sets))
        for name, tokens in zip(events.id.to_list(), sets, strict=True):
            found[events.stream].setdefault(name, set()).add(tokens)
    assert found == {
        "keyed": {
            b"e0": {frozenset({b"disk", b"full"})},
            b"e1": {frozenset({b"full", b"stop"})},
            b"e2": {frozenset()},
            b"e3": {frozenset()},
            b"e5": {frozenset({b"disk"})},
        },
        "grid": {
            b"e0": {frozenset({b"a"})},
            b"e1": {frozenset({b"a", b"b"})},
            b"e2": {frozenset()},
            b"e3": {frozenset()},
            b"e4": {frozenset({b"c"})},
        },
    }


def test_bad_tokens_are_dead_letters_of_their_stream(rows: list[dict[str, object]]) -> None:
    letters = {
        (
            orjson.loads(record.value or b"")["id"],
            dict(record.headers)["coincide.error.stream"],
            dict(record.headers)["coincide.error.reason"],
        )
        for blob in blobs_of(rows, "reject")
        for record in unpack_records(blob)
    }
    assert letters == {("e4", b"keyed", b"bad_tokens"), ("e5", b"grid", b"bad_tokens")}
