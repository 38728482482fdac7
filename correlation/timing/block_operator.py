"""Blocks of a fixed size: when the events of a condition are evaluated (LL10, lazy evaluation).

Problem. A block is due when `block_size` events of a condition's streams wait for it, or
`block_interval` after the first waiting event arrived. A Spark micro-batch may hold fewer or more
events than a block.

Definitions. Events *wait* from their micro-batch until their evaluation. Waiting events are in the
shared buffers, where other conditions find them. Their segments are neither merged nor rewritten,
so that they remain distinct from the segments evaluated before. The current time is the maximum of
the Kafka timestamps and the heartbeat wall times in the records of the micro-batch; with the wall
clock, a batch that Spark repeats could have a different result. If this time goes back by more than
`block_interval`, one of two clocks was wrong and the waiting time is unknown, so the block is due.
Before the number of slots changes, every block is due: waiting events belong to one slot.

Algorithm. A block that is not due adds its segments to the waiting segments. A block that is due is
joined from all of them, cut after every `block_size` events in order of arrival, and passed to the
condition's operator part by part; the operator's buffers hold only the events evaluated before.
Every pair is evaluated once: in the part that holds the later of its events. For the buffers,
waiting events count as future events: the watermarks are those of the last evaluation, or lower
after a reset (docs/proofs.md, P-BLOCKS).

Reference. Lee and Lee 2010, section 4.2: lazy evaluation, block size and block interval.

Cost. O(n log n) to join a block of n events, and 8 bytes an event for Kafka's timestamps, which are
buffered with the events.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from correlation.buffers.buffer import StreamBuffer
from correlation.buffers.segment import Segment
from correlation.errors import UnknownRecordVersionError
from correlation.operators import TIMESTAMP, Evaluation, View, join_evaluations

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from correlation.buffers.columns import Int64s
    from correlation.operators import Operator
    from correlation.timing.conditions import TimingCondition

# Prefix of the stored state of waiting events, followed by the format version.
_PREFIX, _VERSION = b"CoinBlk", b"2"
# Maximum number of micro-batches that wait: other conditions search each one separately.
_MAX_PARTS = 64


class BlockOperator:
    """Operator that passes events to another operator in blocks.

    Parameters
    ----------
    condition : TimingCondition
        Sets the block size; without a block size every micro-batch is one block.
    operator : Operator
        Evaluates the blocks.
    """

    def __init__(self, condition: TimingCondition, operator: Operator) -> None:
        self._condition = condition
        self._operator = operator
        # By stream: numbers of the waiting segments in the buffer, with their event counts.
        self._waiting: dict[str, dict[int, int]] = {name: {} for name in condition.streams}
        # By stream: min `latest` of waiting events, and min watermark since the last evaluation.
        self._min_waiting: dict[str, int] = {}
        self._watermarks: dict[str, int] = {}
        self._waiting_since_us: int | None = None

    def begin(
        self, watermarks: Mapping[str, int], held_from: Mapping[str, int], before: bytes
    ) -> None:
        """See `Operator.begin`; events that waited for the previous version still wait.

        Raises
        ------
        UnknownRecordVersionError
            Another version of this software wrote the state.
        """
        self._watermarks = {name: watermarks[name] for name in self._condition.streams}
        if before.startswith(_PREFIX):
            self._load(before)
            before = b""
        self._operator.begin(watermarks, held_from, before)

    def _load(self, before: bytes) -> None:
        version, text = before[len(_PREFIX) :][:1], before[len(_PREFIX) + 1 :]
        if version != _VERSION:
            shown = version.decode(errors="replace")
            raise UnknownRecordVersionError(
                f"the state of events that wait for a block has version {shown}; this "
                f"software reads {_VERSION.decode()}"
            )
        found = json.loads(text)
        for name in self._condition.streams:
            self._waiting[name] = dict(found["waiting"].get(name, ()))
            if self._waiting[name]:
                self._min_waiting[name] = found["min_waiting"][name]
            self._watermarks[name] = min(
                self._watermarks[name], found["watermarks"].get(name, self._watermarks[name])
            )
        self._waiting_since_us = found["waiting_since_us"]

    def dump(self) -> bytes:
        """See `Operator.dump`."""
        if not any(self._waiting.values()):
            return self._operator.dump()
        state = {
            "waiting": {name: list(waiting.items()) for name, waiting in self._waiting.items()},
            "min_waiting": self._min_waiting,
            "watermarks": self._watermarks,
            "waiting_since_us": self._waiting_since_us,
        }
        return _PREFIX + _VERSION + json.dumps(state).encode()

    def needs_timestamps(self) -> bool:
        """See `Operator.needs_timestamps`: blocks are cut in order of Kafka's timestamps."""
        return self._condition.block_size is not None or any(self._waiting.values())

    def keep_values(self, watermarks: Mapping[str, int]) -> dict[str, int]:
        """See `Operator.keep_values`."""
        if not any(self._waiting.values()):
            return dict(self._operator.keep_values(watermarks))
        keep = self._operator.keep_values({**watermarks, **self._watermarks})
        # Every waiting event, even a late one, will still be a base event.
        return {
            name: min(value, self._min_waiting.get(name, value)) for name, value in keep.items()
        }

    def held(self) -> Mapping[str, Collection[int]]:
        """See `Operator.held`."""
        return self._waiting

    def evaluate(self, view: View) -> Evaluation:
        """See `Operator.evaluate`."""
        waiting = sum(sum(found.values()) for found in self._waiting.values())
        size = self._condition.block_size
        if size is None and not waiting:
            return self._operator.evaluate(view)
        count = waiting + sum(len(view.fresh.get(name, ())) for name in self._waiting)
        if self._waiting_since_us is None or not waiting:
            self._waiting_since_us = view.now_us
        if size is not None and not self._is_due(count, view):
            self._wait(view)
            # While events wait, the watermarks stay as they are or fall after a reset.
            self._watermarks = {
                name: min(view.watermarks[name], watermark) if count else view.watermarks[name]
                for name, watermark in self._watermarks.items()
            }
            return Evaluation()
        evaluations = [self._operator.evaluate(part) for part in self._parts(view)]
        self._waiting = {name: {} for name in self._condition.streams}
        self._min_waiting = {}
        self._watermarks = {name: view.watermarks[name] for name in self._condition.streams}
        return join_evaluations(evaluations)

    def _is_due(self, count: int, view: View) -> bool:
        if not count or view.flush:
            return count > 0
        parts = max(map(len, self._waiting.values()))
        is_closed = any(name in view.closed for name in self._condition.streams)
        if count >= self._size() or is_closed or parts >= _MAX_PARTS:
            return True
        if view.now_us is None or self._waiting_since_us is None:
            return False
        return abs(view.now_us - self._waiting_since_us) >= self._condition.block_interval_us

    def _wait(self, view: View) -> None:
        """Add the events of the block to the waiting events."""
        for name, waiting in self._waiting.items():
            segment = view.fresh.get(name)
            if segment is not None:
                waiting[view.numbers[name]] = len(segment)
                waiting_min = self._min_waiting.get(name, segment.min_latest)
                self._min_waiting[name] = min(waiting_min, segment.min_latest)

    def _parts(self, view: View) -> Iterator[View]:
        """Cut the waiting and the fresh events into blocks; yield a view of each."""
        evaluated: dict[str, list[tuple[int, Segment]]] = {}
        blocks: dict[str, Segment] = {}
        for name, waiting in self._waiting.items():
            segments = view.buffers[name].segments
            evaluated[name] = [entry for entry in segments if entry[0] not in waiting]
            gathered = [segment for number, segment in segments if number in waiting]
            if name in view.fresh:
                gathered.append(view.fresh[name])
            if gathered:
                blocks[name] = Segment.join(gathered)[0]
        if not blocks:
            return
        stamps = {name: cast("Int64s", it.columns[TIMESTAMP]) for name, it in blocks.items()}
        for rows in cut_blocks(stamps, self._size()):
            fresh = {name: blocks[name].take(mine) for name, mine in rows.items()}
            stamps_of = {name: stamps[name][mine] for name, mine in rows.items()}
            buffers = {name: StreamBuffer(found) for name, found in evaluated.items()}
            yield replace(
                view, fresh=fresh, record_timestamp_us=stamps_of, buffers=buffers, shared={}
            )
            for name, segment in fresh.items():
                evaluated[name] = [*evaluated[name], (-1, segment)]

    def _size(self) -> int:
        size = self._condition.block_size
        return 2**62 if size is None else size


def cut_blocks(stamps: Mapping[str, Int64s], size: int) -> Iterator[dict[str, Int64s]]:
    """Cut the events of some streams into parts of `size` events, by Kafka's timestamps.

    Yields, for each part, the ascending rows of every stream that has events in it.
    """
    names = sorted(stamps)
    lengths = [len(stamps[name]) for name in names]
    everything = np.concatenate([stamps[name] for name in names])
    rank = np.empty(len(everything), np.int64)
    rank[np.argsort(everything, kind="stable")] = np.arange(len(everything))
    part_of = dict(zip(names, np.split(rank // size, np.cumsum(lengths)[:-1]), strict=True))
    for part in range(-(-len(everything) // size)):
        rows = {name: np.flatnonzero(part_of[name] == part) for name in names}
        yield {name: mine for name, mine in rows.items() if len(mine)}
