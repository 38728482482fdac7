"""Read the records of late events again, to copy them to the topic of late events.

The source has read the records in the same batch. A record that Kafka has removed since is copied
without key, value and headers of its own.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from correlation.reasons import Reason
from correlation.resources.topics import error_headers
from kafka_client.clients import UserAdmin
from kafka_client.partition_offsets import Edge, Place, list_offsets
from spark_jobs.source.range_reader import RangeReader, open_reader
from spark_jobs.worker.envelope import Record, RecordPacker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from correlation.resources.topics import Topics
    from spark_jobs.settings import Properties
    from spark_jobs.worker.late_events import LateEvents
    from spark_jobs.worker.runs import Run

_ANSWER_SECONDS = 60.0
# Two ranges cost about as much as the reading of this number of records between them.
_MAX_GAP = 10_000
# Streams of the late events at an offset, and the Kafka timestamp of their record in µs.
_Wanted = tuple[list[str], int]


class LateRecords:
    """Reads the records of late events with connections that are kept.

    Parameters
    ----------
    topics : Topics
        Topics of the installation.
    properties : mapping
        librdkafka properties.
    """

    def __init__(self, topics: Topics, properties: Properties) -> None:
        self._topic = topics.late
        self._admin = UserAdmin(properties)
        self._reader: RangeReader = open_reader(properties, topics.late)

    def copy(self, found: Iterable[LateEvents]) -> Iterator[bytes]:
        """Yield blobs of the records for the topic of late events.

        Parameters
        ----------
        found : iterable of LateEvents
            Late events of a batch.

        Raises
        ------
        KafkaException
            A partition cannot be read, or a topic was deleted while it was read.
        """
        wanted = _by_place(found)
        waiting = self._ranges(wanted)
        while waiting:
            # One range of each partition.
            ranges = [(*place, *parts.pop(0)) for place, parts in waiting.items()]
            for runs in self._reader.read(ranges, skips_missing=True):
                packer = RecordPacker()
                for run in runs:
                    packer.extend(self._take(run, wanted[run.topic, run.partition]))
                yield from packer.finish()
            waiting = {place: parts for place, parts in waiting.items() if parts}
        packer = RecordPacker()
        for place, missing in wanted.items():
            for offset, (streams, _) in sorted(missing.items()):
                packer.extend(self._record(it, place, offset, None) for it in streams)
        yield from packer.finish()

    def _ranges(
        self, wanted: dict[Place, dict[int, _Wanted]]
    ) -> dict[Place, list[tuple[int, int]]]:
        """Return the ranges of offsets to read of each partition that exists."""
        ends = list_offsets(
            self._admin, wanted, Edge.COMMITTED_END, _ANSWER_SECONDS, skip_unknown=True
        )
        ranges = {}
        for place, end in ends.items():
            offsets = np.sort(np.fromiter(wanted[place], np.int64))
            offsets = offsets[offsets < end]
            if len(offsets):
                cuts = np.flatnonzero(np.diff(offsets) > _MAX_GAP) + 1
                parts = np.split(offsets, cuts)
                ranges[place] = [(int(part[0]), int(part[-1]) + 1) for part in parts]
        return ranges

    def _take(self, run: Run, wanted: dict[int, _Wanted]) -> Iterator[Record]:
        """Yield the records of a run that are wanted, and remove them from those wanted."""
        chosen = np.isin(run.offsets, np.fromiter(wanted, np.int64, len(wanted)))
        for row in np.flatnonzero(chosen).tolist():
            offset = int(run.offsets[row])
            streams, timestamp_us = wanted[offset]
            # Another record, of a topic that was deleted and created again, remains missing.
            if timestamp_us == int(run.record_timestamp_us[row]):
                del wanted[offset]
                place = run.topic, run.partition
                for stream in streams:
                    yield self._record(stream, place, offset, (run, row))

    def _record(
        self, stream: str, place: Place, offset: int, found: tuple[Run, int] | None
    ) -> Record:
        detail = f"latest is before the watermark of stream {stream}"
        if found is None:
            detail += "; the record is missing in its topic"
        added = error_headers(Reason.LATE, detail, stream, *place, offset).items()
        if found is None:
            return Record(self._topic, None, None, (*added,))
        run, row = found
        headers = (*run.headers_of(row), *added)
        return Record(self._topic, run.keys[row], run.values[row], headers)


def _by_place(found: Iterable[LateEvents]) -> dict[Place, dict[int, _Wanted]]:
    wanted: dict[Place, dict[int, _Wanted]] = defaultdict(dict)
    for one in found:
        columns = (one.partition.tolist(), one.offset.tolist(), one.record_timestamp_us.tolist())
        for partition, offset, timestamp_us in zip(*columns, strict=True):
            streams, _ = wanted[one.topic, partition].setdefault(offset, ([], timestamp_us))
            streams.append(one.stream)
    return wanted
