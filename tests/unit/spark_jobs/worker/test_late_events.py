"""Records of late events that are sent with the events, and those that are not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from correlation.buffers.events import Events
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from correlation.resources.topics import Topics
from spark_jobs.worker.blob_files import BlobFiles
from spark_jobs.worker.envelope import unpack_records
from spark_jobs.worker.late_events import split_late, store_watermarks, stored_watermarks
from spark_jobs.worker.pack import pack_records
from spark_jobs.worker.packing import Packing
from tests.support.workload import SourceRecord, runs_of

if TYPE_CHECKING:
    from pathlib import Path

TOPICS = Topics("p")
SLOT_KEYS = (11, 12, 13)
GROUPS = 3


def stream(name: str, partitioning: Partitioning) -> Stream:
    return Stream(
        name, "events", max_uncertainty_us=1_000, max_delay_us=0, partitioning=partitioning
    )


STREAMS = (stream("keyed", Partitioning()), stream("grid", Partitioning("grid", GROUPS)))


def record(offset: int) -> SourceRecord:
    """Return a record whose event has its offset as `latest`."""
    value = {"id": f"e{offset}", "key": f"k{offset}", "earliest": 0, "latest": offset}
    return SourceRecord("events", json.dumps(value).encode(), b"key", 1, offset, 5_000)


def packed(folder: str, *, refills: bool = False) -> tuple[list[Events], list[bytes]]:
    """Pack 40 records; return the events and the blobs of records, by slot."""
    packing = Packing(TOPICS, STREAMS, SLOT_KEYS, 1_000_000, cache_folder=folder, refills=refills)
    batches = pack_records(packing, [runs_of([record(n) for n in range(40)])])
    rows = [row for batch in batches for row in batch.to_pylist()]
    events = [Events.from_bytes(it["blob"]) for it in rows if it["kind"] == "events"]
    return events, [it["blob"] for it in rows if it["kind"] == "late_records"]


@pytest.mark.parametrize(("keyed", "grid"), [(0, 0), (7, 0), (7, 12), (100, 100)])
def test_records_below_the_stored_watermarks_are_sent_once(
    tmp_path: Path, keyed: int, grid: int
) -> None:
    files = BlobFiles(str(tmp_path))
    store_watermarks(files, {"keyed": keyed, "grid": grid, "deleted": 50})
    assert stored_watermarks(files) == {"keyed": keyed, "grid": grid, "deleted": 50}
    events, blobs = packed(str(tmp_path))
    found = [
        (left.stream, it.value)
        for left, records in split_late(events, blobs)
        for it in records
        if it.topic == TOPICS.late
    ]
    # Each copy of the grid asks for its record here; slots ask for home copies only.
    expected = [("keyed", record(n).value) for n in range(min(keyed, 40))]
    expected += [("grid", record(n).value) for n in range(min(grid, 40)) for _ in range(GROUPS)]
    assert sorted(found) == sorted(expected)
    sent = sum(1 for blob in blobs for _ in unpack_records(blob))
    assert sent == min(keyed, 40) + min(grid, 40)


@pytest.mark.parametrize("content", [b"", b'{"keyed":'])
def test_damaged_watermarks_are_ignored(tmp_path: Path, content: bytes) -> None:
    store_watermarks(BlobFiles(str(tmp_path)), {"keyed": 7})
    (path,) = tmp_path.iterdir()
    path.write_bytes(content)
    assert stored_watermarks(BlobFiles(str(tmp_path))) == {}


def test_events_without_a_record_at_hand_are_left(tmp_path: Path) -> None:
    store_watermarks(BlobFiles(str(tmp_path)), {"keyed": 7})
    events, blobs = packed(str(tmp_path))
    keyed = [it for it in events if it.stream == "keyed"]
    left = [row for it, _ in split_late(keyed, blobs) for row in it.latest.tolist()]
    assert sorted(left) == list(range(7, 40))


@pytest.mark.parametrize("refills", [False, True])
def test_no_record_is_sent_without_watermarks_or_to_refill(
    tmp_path: Path, *, refills: bool
) -> None:
    if refills:
        store_watermarks(BlobFiles(str(tmp_path)), {"keyed": 100})
    _, blobs = packed(str(tmp_path), refills=refills)
    assert blobs == []
