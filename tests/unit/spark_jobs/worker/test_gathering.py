"""Rows of a slot of which a former job has written a part."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import pandas as pd

from correlation.engine.progress import Progress
from correlation.resources.streams import Stream
from correlation.resources.topics import Topics
from spark_jobs.worker.gathering import Gathered, gather
from spark_jobs.worker.pack import pack_records
from spark_jobs.worker.packing import Packing
from tests.support.workload import SourceRecord, runs_of

TOPICS = Topics("p")
STREAMS = {name: Stream(name, "events", 10, 10) for name in ("read", "new", "moved")}
# The slot has read the third stream from another topic.
FORMER = {"read": "events", "moved": "elsewhere"}
WRITTEN = {"events": {0: 5, 1: 8}}


def gathered(partition: int, offsets: Sequence[int]) -> Gathered:
    """Return the block of events of a partition."""
    records = [
        SourceRecord(
            "events",
            orjson.dumps({"id": f"{it}", "earliest": 60 + it, "latest": 60 + it}),
            b"k",
            partition,
            it,
        )
        for it in offsets
    ]
    packing = Packing(TOPICS, tuple(STREAMS.values()), (7,), 1_000_000)
    frames = [it.to_pandas() for it in pack_records(packing, [runs_of(records)])]
    return gather([pd.concat(frames)], WRITTEN, FORMER, STREAMS, TOPICS)


def test_events_before_the_written_positions_are_left_out_of_streams_that_were_read() -> None:
    events = gathered(0, [3, 4, 5, 6]).block.events
    found = {it.stream: it.offset.tolist() for it in events if len(it)}
    assert found == {"read": [5, 6], "new": [3, 4, 5, 6], "moved": [3, 4, 5, 6]}


def test_progress_up_to_the_written_positions_is_left_out_of_streams_that_were_read() -> None:
    """Events that are sent again after a reset would otherwise be late."""
    assert {*gathered(1, [5, 6, 7]).block.progress} == {
        Progress("new", 1, 8, 67),
        Progress("moved", 1, 8, 67),
    }
    found = gathered(1, [7, 8]).block.progress
    assert {*found} == {Progress(name, 1, 9, 68) for name in STREAMS}
