"""Blocks of a set size: when the events of a condition are evaluated (LL10, lazy evaluation).

Problem. A block is due when `block_size` events of a condition's streams wait for it, or
`block_interval` after the first of them came. Spark brings micro-batches, which may hold less than
a block, or more.

Definitions. Events *wait* from the micro-batch that brought them to their evaluation. Meanwhile
they are in the shared buffers like all others, other conditions find them there, and their segments
are neither merged nor rewritten, so that they can be told from those that were evaluated before.
Time is what the records of a micro-batch say: the greatest of the timestamps that Kafka gave them
and of the wall times in heartbeats. The wall clock itself would have a batch that Spark repeats end
otherwise. Where it goes back by more than `block_interval`, one of two clocks was wrong: the block
is due, for nobody knows how long it has waited.

Algorithm. A block that is not due adds its segments to those that wait. One that is due is put
together from all of them, cut at every `block_size` events in order of arrival, and given to the
condition's operator part by part, with what was evaluated before in place of the buffers. Every
pair is looked at once: in the part that holds the later of its events. For the buffers, what waits
is still to come: the watermarks are those of the last evaluation, or less after a reset
(docs/proofs.md, P-BLOCKS).

Reference. Lee and Lee 2010, section 4.2: lazy evaluation, block size and block interval.

Cost. O(n log n) for n events of a block to put it together, and 8 bytes an event for Kafka's
timestamps, which are buffered with the events.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from correlation.buffers.buffer import StreamBuffer
from correlation.buffers.segment import Segment
from correlation.operators import TIMESTAMP, Evaluation, View

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from correlation.buffers.columns import Int64s
    from correlation.operators import Operator
    from correlation.timing.conditions import TimingCondition

# What waits, as it is stored; with the version of its form.
_PREFIX = b"CoinBlk2"
# Maximum number of micro-batches that wait: other conditions search each of them on its own.
_MOST_PARTS = 64


class BlockOperator:
    """Gives an operator its events in blocks.

    Parameters
    ----------
    condition : TimingCondition
        Says how large blocks are; without a size every micro-batch is one.
    operator : Operator
        Evaluates them.
    """

    def __init__(self, condition: TimingCondition, operator: Operator) -> None:
        self._condition = condition
        self._operator = operator
        # By stream the segments that wait: their numbers in its buffer, with their events.
        self._waiting: dict[str, dict[int, int]] = {name: {} for name in condition.streams}
        # Minimum `latest` of what waits, and the minimum watermarks since the last evaluation.
        self._min_waiting: dict[str, int] = {}
        self._watermarks: dict[str, int] = {}
        self._waiting_since_us: int | None = None

    def begin(
        self, watermarks: Mapping[str, int], held_from: Mapping[str, int], before: bytes
    ) -> None:
        """See `Operator.begin`; what waited for the condition's last version waits for this one."""
        self._watermarks = {name: watermarks[name] for name in self._condition.streams}
        if before.startswith(_PREFIX):
            self._load(before)
            before = b""
        self._operator.begin(watermarks, held_from, before)

    def _load(self, before: bytes) -> None:
        found = json.loads(before[len(_PREFIX) :])
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
        return _PREFIX + json.dumps(state).encode()

    def needs_timestamps(self) -> bool:
        """See `Operator.needs_timestamps`: blocks are cut by them."""
        return self._condition.block_size is not None or any(self._waiting.values())

    def keep_values(self, watermarks: Mapping[str, int]) -> dict[str, int]:
        """See `Operator.keep_values`."""
        if not any(self._waiting.values()):
            return dict(self._operator.keep_values(watermarks))
        keep = self._operator.keep_values({**watermarks, **self._watermarks})
        # What waits is a base event yet to come, also if it came late.
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
            # With events that wait the watermarks stay, unless a reset makes them fall.
            self._watermarks = {
                name: min(view.watermarks[name], watermark) if count else view.watermarks[name]
                for name, watermark in self._watermarks.items()
            }
            return Evaluation()
        evaluations = [self._operator.evaluate(part) for part in self._parts(view)]
        self._waiting = {name: {} for name in self._condition.streams}
        self._min_waiting = {}
        self._watermarks = {name: view.watermarks[name] for name in self._condition.streams}
        return _join(evaluations)

    def _is_due(self, count: int, view: View) -> bool:
        if not count:
            return False
        parts = max(map(len, self._waiting.values()))
        is_closed = any(name in view.closed for name in self._condition.streams)
        if count >= self._size() or is_closed or parts >= _MOST_PARTS:
            return True
        if view.now_us is None or self._waiting_since_us is None:
            return False
        return abs(view.now_us - self._waiting_since_us) >= self._condition.block_interval_us

    def _wait(self, view: View) -> None:
        """Let the events of the block wait."""
        for name, waiting in self._waiting.items():
            segment = view.fresh.get(name)
            if segment is not None:
                waiting[view.numbers[name]] = len(segment)
                least = self._min_waiting.get(name, segment.min_latest)
                self._min_waiting[name] = min(least, segment.min_latest)

    def _parts(self, view: View) -> Iterator[View]:
        """Cut what waits and what is fresh into views of one part each."""
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
    """Cut the events of some streams into parts of a size, by Kafka's timestamps.

    Yields, for each part, the rows of every stream that has any in it, ascending.
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


def _join(evaluations: list[Evaluation]) -> Evaluation:
    """Put the evaluations of a block's parts into one."""
    none = np.zeros(0, np.int64)
    return Evaluation(
        results=[result for found in evaluations for result in found.results],
        alarms=sum(found.alarms for found in evaluations),
        counts=[count for found in evaluations for count in found.counts],
        ready_us=np.concatenate([none, *(found.ready_us for found in evaluations)]),
        record_timestamp_us=np.concatenate(
            [none, *(found.record_timestamp_us for found in evaluations)]
        ),
    )
