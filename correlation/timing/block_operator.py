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

Cost. O(n log n) for n events of a block to put it together; what waits is stored twice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from correlation.buffers.buffer import StreamBuffer
from correlation.buffers.columns import pack_columns, unpack_columns
from correlation.buffers.segment import Segment
from correlation.operators import Evaluation, View

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from correlation.buffers.columns import Column, Int64s
    from correlation.operators import Operator
    from correlation.timing.conditions import TimingCondition

# What waits, as it is stored; with the version of its form.
_PREFIX = b"CoinBlk1"
# So many micro-batches wait at most: what waits is stored with each of them, and in pieces that
# other conditions search one by one.
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
        # By stream the segments that wait: their numbers in its buffer, with Kafka's timestamps.
        self._waiting: dict[str, dict[int, Int64s]] = {name: {} for name in condition.streams}
        # Least `latest` of what waits, and the least watermarks since the last evaluation.
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
        columns, meta = unpack_columns(before[len(_PREFIX) :])
        for name in self._condition.streams:
            for number in meta["waiting"].get(name, ()):
                self._waiting[name][number] = cast("Int64s", columns[f"{name}/{number}"])
            if self._waiting[name]:
                self._min_waiting[name] = meta["min_waiting"][name]
            self._watermarks[name] = min(
                self._watermarks[name], meta["watermarks"].get(name, self._watermarks[name])
            )
        self._waiting_since_us = meta["waiting_since_us"]

    def dump(self) -> bytes:
        """See `Operator.dump`."""
        columns: dict[str, Column] = {
            f"{name}/{number}": record_timestamp_us
            for name, waiting in self._waiting.items()
            for number, record_timestamp_us in waiting.items()
        }
        if not columns:
            return self._operator.dump()
        meta = {
            "waiting": {name: list(waiting) for name, waiting in self._waiting.items()},
            "min_waiting": self._min_waiting,
            "watermarks": self._watermarks,
            "waiting_since_us": self._waiting_since_us,
        }
        return _PREFIX + pack_columns(columns, meta)

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
        waiting = sum(len(it) for found in self._waiting.values() for it in found.values())
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
                waiting[view.numbers[name]] = view.record_timestamp_us[name]
                least = self._min_waiting.get(name, segment.min_latest)
                self._min_waiting[name] = min(least, segment.min_latest)

    def _parts(self, view: View) -> Iterator[View]:
        """Cut what waits and what is fresh into views of one part each."""
        evaluated: dict[str, list[tuple[int, Segment]]] = {}
        blocks: dict[str, tuple[Segment, Int64s]] = {}
        for name, waiting in self._waiting.items():
            segments = view.buffers[name].segments
            evaluated[name] = [entry for entry in segments if entry[0] not in waiting]
            gathered = [(entry[1], waiting[entry[0]]) for entry in segments if entry[0] in waiting]
            if name in view.fresh:
                gathered.append((view.fresh[name], view.record_timestamp_us[name]))
            if gathered:
                joined, order = Segment.join([segment for segment, _ in gathered])
                stamps = np.concatenate(
                    [record_timestamp_us for _, record_timestamp_us in gathered]
                )
                blocks[name] = (joined, stamps[order])
        if not blocks:
            return
        record_timestamp_us = {name: stamps for name, (_, stamps) in blocks.items()}
        for rows in cut_blocks(record_timestamp_us, self._size()):
            fresh = {name: blocks[name][0].take(mine) for name, mine in rows.items()}
            stamps_of = {name: record_timestamp_us[name][mine] for name, mine in rows.items()}
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
