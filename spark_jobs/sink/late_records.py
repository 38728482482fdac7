"""Read the records of late events again, to copy them to the topic of late events.

The source has read the records in the same batch, and has sent those of most late events with the
events (`spark_jobs.worker.late_events`). A record that Kafka has removed since is copied without
key, value and headers of its own.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Self

import numpy as np

from kafka_client.partition_offsets import timed_out
from kafka_client.topic_offsets import KafkaOffsets
from spark_jobs.source.range_reader import open_reader
from spark_jobs.worker.envelope import RecordPacker
from spark_jobs.worker.late_events import late_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from correlation.buffers.columns import Int64s
    from correlation.resources.topics import Topics
    from kafka_client.partition_offsets import Place
    from spark_jobs.settings import Properties
    from spark_jobs.worker.envelope import Record
    from spark_jobs.worker.late_events import LateEvents
    from spark_jobs.worker.runs import Run

# Single responses of a broker omit topics: a partition that is missing for this time was removed.
_GONE_SECONDS = 10.0
_PAUSE_SECONDS = 1.0
# Two ranges cost about as much as the reading of this number of records between them.
_MAX_GAP = 10_000
# Streams of the late events at an offset, and the Kafka timestamp of their record in µs.
_Wanted = tuple[list[str], int]


class LateRecords:
    """Reads the records of late events, with connections for a batch.

    Parameters
    ----------
    topics : Topics
        Topics of the installation.
    properties : mapping
        librdkafka properties.
    """

    def __init__(self, topics: Topics, properties: Properties) -> None:
        self._topic = topics.late
        self._offsets = KafkaOffsets(properties, topics.late)
        self._reader = open_reader(properties, topics.late)

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self._reader.close()
        self._offsets.close()

    def copy(self, found: Iterable[LateEvents]) -> Iterator[bytes]:
        """Yield blobs of the records for the topic of late events.

        Parameters
        ----------
        found : iterable of LateEvents
            Late events of a batch.

        Raises
        ------
        KafkaException
            A partition cannot be read, or was removed while it was read.
        """
        wanted = _by_place(found)
        offsets = {place: np.sort(np.fromiter(it, np.int64)) for place, it in wanted.items()}
        ends = self._ends(wanted)
        waiting = {place: _ranges(offsets[place], end) for place, end in ends.items()}
        while waiting := {place: ranges for place, ranges in waiting.items() if ranges}:
            # One range of each partition.
            now = [(*place, *ranges.pop(0)) for place, ranges in waiting.items()]
            for runs in self._reader.read(now, skips_missing=True):
                packer = RecordPacker()
                for run in runs:
                    place = run.topic, run.partition
                    packer.extend(self._take(run, offsets[place], wanted[place]))
                yield from packer.finish()
        packer = RecordPacker()
        for place, missing in wanted.items():
            for offset, (streams, _) in sorted(missing.items()):
                packer.extend(
                    late_record(self._topic, it, (*place, offset), None) for it in streams
                )
        yield from packer.finish()

    def _ends(self, wanted: Mapping[Place, object]) -> dict[Place, int]:
        """Return the end offset of each partition that was not removed."""
        deadline = time.monotonic() + _GONE_SECONDS
        while True:
            ends = self._offsets.committed_ends(wanted)
            missing = [place for place in wanted if place not in ends]
            if not missing:
                return ends
            if time.monotonic() > deadline:
                break
            time.sleep(_PAUSE_SECONDS)
        present = self._offsets.describe({topic for topic, _ in missing})
        for topic, partition in missing:
            found = present.get(topic)
            is_removed = partition >= found.partitions if found else self._offsets.is_deleted(topic)
            if not is_removed:
                raise timed_out((topic, partition), "has no end offset")
        return ends

    def _take(self, run: Run, offsets: Int64s, wanted: dict[int, _Wanted]) -> Iterator[Record]:
        """Yield the records of a run that are wanted, and remove them from those wanted."""
        begin, end = np.searchsorted(offsets, [run.offsets[0], run.offsets[-1] + 1])
        rows = np.flatnonzero(np.isin(run.offsets, offsets[begin:end]))
        for row in rows.tolist():
            offset = int(run.offsets[row])
            streams, timestamp_us = wanted[offset]
            # Another record, of a topic that was deleted and created again, remains missing.
            if timestamp_us == int(run.record_timestamp_us[row]):
                del wanted[offset]
                place = (run.topic, run.partition, offset)
                for stream in streams:
                    yield late_record(self._topic, stream, place, (run, row))


def _by_place(found: Iterable[LateEvents]) -> dict[Place, dict[int, _Wanted]]:
    wanted: dict[Place, dict[int, _Wanted]] = defaultdict(dict)
    for one in found:
        columns = (one.partition.tolist(), one.offset.tolist(), one.record_timestamp_us.tolist())
        for partition, offset, timestamp_us in zip(*columns, strict=True):
            streams, _ = wanted[one.topic, partition].setdefault(offset, ([], timestamp_us))
            streams.append(one.stream)
    return wanted


def _ranges(offsets: Int64s, end: int) -> list[tuple[int, int]]:
    """Return ranges before an end offset that contain ascending offsets."""
    present = offsets[offsets < end]
    if not len(present):
        return []
    parts = np.split(present, np.flatnonzero(np.diff(present) > _MAX_GAP) + 1)
    return [(int(part[0]), int(part[-1]) + 1) for part in parts]
