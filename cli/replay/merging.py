"""Merge of the files or partitions of a replay into one sequence of blocks.

The next block always comes from the input with the earliest watermark. The buffers of the streams
therefore hold few events more than their conditions need, although inputs are read in large chunks.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

import numpy as np

from cli.replay.crew import result_of
from cli.replay.slots import SLOTS, Step
from correlation.buffers.events import Events
from correlation.buffers.partitioner import Partitioner
from correlation.engine.heartbeats import CLOSED, Heartbeat
from correlation.engine.progress import Progress
from correlation.limits import UNKNOWN_WATERMARK
from correlation.shares import merge_shares

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from cli.replay.chunks import Chunk
    from cli.replay.crew import Crew
    from cli.replay.options import Input
    from cli.replay.reading import Taken
    from cli.replay.results import Output
    from correlation.buffers.columns import Int64s
    from correlation.resources.streams import Stream

# Events of a block: few if they form many pairs, because the alarms of a block are in memory.
_FIRST_BLOCK, _MIN_BLOCK, _MAX_BLOCK = 512, 64, 65_536


class InputCounts:
    """Counts of the rows of an input that were read so far."""

    def __init__(self) -> None:
        self.rows = 0
        self.events = 0
        self.late = 0
        self.filtered = 0
        self.lost = 0
        self.rejected: Counter[str] = Counter()
        self.first: dict[str, str] = {}


class Source:
    """The events of a file or partition, in the order of its rows or sorted.

    Parameters
    ----------
    origin, stream
        The file or partition, and its stream.
    chunks
        Chunks of the input.
    read
        Submits a chunk for parsing.
    ahead
        Number of chunks that are submitted before they are needed.
    on_taken
        Called with each parsed chunk, in the order of the input.
    """

    def __init__(
        self,
        origin: Input,
        stream: Stream,
        chunks: Iterator[Chunk],
        read: Callable[[Chunk], Future[Taken]],
        ahead: int,
        on_taken: Callable[[Taken], None],
    ) -> None:
        self.origin = origin
        self.counts = InputCounts()
        self.mark = UNKNOWN_WATERMARK
        self._delay_us = stream.max_delay_us
        self._partitioner = Partitioner.of_stream(stream, SLOTS)
        self._chunks = chunks
        self._read = read
        self._ahead = ahead
        self._on_taken = on_taken
        self._asked: deque[Future[Taken]] = deque()
        self._waiting: deque[Events] = deque()
        self._waiting_events = 0
        # Number of events of the first waiting batch that were already returned.
        self._begin = 0
        self._max: int | None = None

    def begin(self) -> None:
        """Submit the next chunks for parsing; raise at once if the input cannot be read."""
        while len(self._asked) < self._ahead:
            chunk = next(self._chunks, None)
            if chunk is None:
                return
            self.counts.lost += chunk.lost
            self._asked.append(self._read(chunk))

    def take(self, max_events: int) -> tuple[Step, bool]:
        """Return the next events as a block, and whether it is the last block of the input."""
        self._fill(max_events + 1)
        parts = []
        while self._waiting and max_events:
            events = self._waiting[0]
            end = min(self._begin + max_events, len(events))
            parts.append(events.take(np.arange(self._begin, end, dtype=np.int64)))
            max_events -= end - self._begin
            self._waiting_events -= end - self._begin
            self._begin = end
            if end == len(events):
                self._waiting.popleft()
                self._begin = 0
        last = not self._waiting
        place = (self.origin.stream, self.origin.partition)
        closing = [Heartbeat(*place, CLOSED, None)] if last else []
        if not parts:
            return Step({}, (), closing), last
        events = Events.concat(parts)
        self._note(events.latest)
        max_latest, end = int(events.latest.max()), int(events.offset.max()) + 1
        spread = dict(self._partitioner.spread(events))
        return Step(spread, [Progress(*place, end, max_latest)], closing), last

    def sort(self) -> None:
        """Read the input to its end and order its events by their latest times."""
        while self._next_chunk():
            pass
        if self._waiting:
            events = Events.concat(list(self._waiting))
            order = np.argsort(events.latest, kind="stable")
            self._waiting = deque([events.take(order)])

    def _fill(self, count: int) -> None:
        """Read chunks until `count` events are waiting or the input ends."""
        while self._waiting_events < count and self._next_chunk():
            pass

    def _next_chunk(self) -> bool:
        self.begin()
        if not self._asked:
            return False
        taken = result_of(self._asked.popleft())
        self.begin()
        counts = self.counts
        counts.rows += taken.rows
        counts.rejected += taken.rejected
        counts.filtered += taken.filtered
        counts.first = taken.first | counts.first
        if taken.events is not None:
            counts.events += len(taken.events)
            self._waiting.append(taken.events)
            self._waiting_events += len(taken.events)
        self._on_taken(taken)
        return True

    def _note(self, latest: Int64s) -> None:
        """Advance the watermark of the input, and count its late events."""
        before = latest[0] if self._max is None else self._max
        reached = np.maximum.accumulate(np.concatenate([[before], latest]))
        self.counts.late += int(np.count_nonzero(latest < reached[:-1] - self._delay_us))
        self._max = int(reached[-1])
        self.mark = self._max - self._delay_us


def merge(
    sources: list[Source], crew: Crew, max_pairs: int, merged: Output
) -> Iterator[list[bytes]]:
    """Evaluate the inputs block by block.

    Parameters
    ----------
    sources
        The files or partitions.
    crew
        Workers that evaluate the blocks.
    max_pairs
        After a block with more pairs, the following blocks are smaller.
    merged
        Reads the results that need all slots.

    Yields
    ------
    list of bytes
        The alarms of a block, in order.
    """
    left = list(sources)
    max_events = _FIRST_BLOCK
    while left:
        source = min(left, key=lambda it: it.mark)
        step, is_last = source.take(max_events)
        if is_last:
            left.remove(source)
        found = list(crew.advance(step))
        pairs = sum(part.pairs for part in found)
        alarms = [alarm for part in found for alarm in part.alarms]
        for it in merge_shares([it for part in found for it in part.shares]):
            # The conditions of a replay are not removed.
            if it.evaluation is None:
                continue
            count, others = merged.take(it.evaluation.results)
            merged.count(it.condition, it.evaluation)
            pairs += count
            alarms += others
        # Only the number of pairs decides, not timing, so the blocks are the same in every run.
        if pairs > max_pairs:
            max_events = max(max_events // 2, _MIN_BLOCK)
        elif pairs < max_pairs // 4:
            max_events = min(max_events * 2, _MAX_BLOCK)
        alarms.sort()
        yield [alarm.value for alarm in alarms]
