"""The rows of a slot in a batch, grouped into a block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from correlation.buffers.events import Events
from correlation.engine.blocks import Block, Control
from correlation.engine.heartbeats import Heartbeat
from correlation.engine.progress import Progress
from correlation.resources.streams import Stream
from correlation.resources.topics import Topics
from spark_jobs.worker.envelope import (
    CONTROL,
    EVENTS,
    FILTERED,
    HEARTBEAT,
    LATE_RECORDS,
    POSITIONS,
    PROGRESS,
    REJECT,
)
from spark_jobs.worker.positions import Positions, from_json, newest, position_of
from spark_jobs.worker.rejects import rejected_counts

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Gathered:
    """The rows of a slot in a batch.

    Parameters
    ----------
    block : Block
        Records to be evaluated.
    rejects : list of bytes
        Packed dead letters.
    late : list of bytes
        Packed records of events that may be late.
    positions : Positions
        Positions after the batch, of the partitions that it read.
    """

    block: Block
    rejects: list[bytes]
    late: list[bytes]
    positions: Positions


def gather(
    frames: Iterable[pd.DataFrame],
    written: Positions,
    former: Mapping[str, str],
    streams: Mapping[str, Stream],
    topics: Topics,
) -> Gathered:
    """Group the rows of a slot by kind and sort heartbeats by offset; Program sorts the others.

    Parameters
    ----------
    frames : iterable of DataFrame
        Packed rows.
    written : Positions
        Positions up to which earlier jobs have written the output of the slot: records before them,
        and progress up to them, are left out.
    former : mapping of str to str
        Topics of the streams that the slot has read up to these positions. A stream that was
        registered since has all records, even if another stream has read its topic.
    streams : mapping of name to Stream
        The streams in force.
    topics : Topics
        Topics of the installation.
    """
    rows = _Rows(written, former, streams, position_of(written, topics.heartbeats, 0))
    for frame in frames:
        for kind, position, blob in zip(
            frame["kind"], frame["position"], frame["blob"], strict=True
        ):
            rows.add(kind, int(position), blob)
    return rows.finish()


@dataclass(slots=True)
class _Rows:
    """Rows of a slot that are being grouped."""

    written: Positions
    former: Mapping[str, str]
    streams: Mapping[str, Stream]
    first_heartbeat: int
    controls: list[Control] = field(default_factory=list)
    events: list[Events] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)
    heartbeats: list[tuple[int, Heartbeat]] = field(default_factory=list)
    rejects: list[bytes] = field(default_factory=list)
    late: list[bytes] = field(default_factory=list)
    rejected: Counter[tuple[str, str]] = field(default_factory=Counter)
    filtered: Counter[str] = field(default_factory=Counter)
    positions: Positions = field(default_factory=dict)

    def add(self, kind: str, position: int, blob: bytes) -> None:
        """Add a row."""
        if kind == EVENTS:
            self.events.append(self._unwritten(Events.from_bytes(blob)))
        elif kind == LATE_RECORDS:
            self.late.append(blob)
        elif kind == REJECT:
            self.rejects.append(blob)
            self.rejected += rejected_counts(blob)
        elif kind != HEARTBEAT or position >= self.first_heartbeat:
            self._add_document(kind, position, orjson.loads(blob))

    def _add_document(self, kind: str, position: int, found: Any) -> None:  # noqa: ANN401 - parsed
        if kind == PROGRESS:
            self.progress += filter(self._is_unwritten, (Progress(*entry) for entry in found))
        elif kind == CONTROL:
            self.controls.append(Control(position, found["key"].encode(), found["record"]))
        elif kind == HEARTBEAT:
            self.heartbeats.append((position, Heartbeat(*found)))
        elif kind == FILTERED:
            stream, count = found
            self.filtered[stream] += count
        elif kind == POSITIONS:
            self.positions = newest(self.positions, from_json(found))

    def _begin_of(self, name: str, partition: int) -> int:
        """Return the offset of the first record of a stream of which no output is written."""
        stream = self.streams.get(name)
        if stream is None or self.former.get(name) != stream.topic:
            return 0
        return position_of(self.written, stream.topic, partition)

    def _is_unwritten(self, progress: Progress) -> bool:
        begin = self._begin_of(progress.stream, progress.partition)
        return not begin or progress.next_offset > begin

    def _unwritten(self, events: Events) -> Events:
        begin = self._begin_of(events.stream, int(events.partition[0]))
        return events.take(np.flatnonzero(events.offset >= begin)) if begin else events

    def finish(self) -> Gathered:
        """Return the block."""
        self.heartbeats.sort(key=itemgetter(0))
        in_order = [heartbeat for _, heartbeat in self.heartbeats]
        block = Block(
            self.controls, self.events, self.progress, in_order, self.rejected, self.filtered
        )
        return Gathered(block, self.rejects, self.late, self.positions)
