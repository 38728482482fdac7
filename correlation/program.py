"""Program: the conditions of a slot over shared buffers.

One idea runs through all operators: progress of the inputs -> progress of the result -> keep
values -> what the shared buffer may drop. This is its one implementation. A block is evaluated in
a fixed order (conditions by config offset, then events by stream, partition and offset, then
progress), so that how records are cut into blocks decides when a result appears, never which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from correlation.blocks import Block, Control, Outcome, Snapshot
from correlation.buffer import StreamBuffer, describe_buffers
from correlation.contract import ContractFacts, declaration
from correlation.errors import CorrelationError, UnknownRecordVersionError
from correlation.events import Events
from correlation.kinds import KINDS
from correlation.limits import KEEP_NOTHING
from correlation.operators import Cache, Condition, Operator, View
from correlation.progress import LowMarks, time_of_records
from correlation.records import Resource
from correlation.segment import Segment
from correlation.streams import Stream
from correlation.totals import Totals

__all__ = ["Block", "Control", "Outcome", "Program", "Snapshot"]

# Of the slot's record, and of the manifest.
VERSION = 1
MANIFEST_VERSION = 3
# What an operator keeps beside the buffers stands in the manifest itself up to this size: a blob of
# its own costs more than its bytes.
_SMALL_STATE_BYTES = 1024


@dataclass(slots=True)
class _Registered:
    """A condition with its operator; without one, `detail` says why it is not evaluated."""

    resource: Resource
    config_offset: int
    condition: Condition | None = None
    operator: Operator | None = None
    state: str = "running"
    detail: str | None = None
    last_alarm_at_us: int | None = None


class Program:
    """The conditions of a slot over shared buffers.

    Parameters
    ----------
    streams : mapping of name to Stream
        The streams in force.
    partitions : mapping of stream to int
        Number of Kafka partitions of each stream's topic.
    cache : Cache or None
        Keeps what conditions compute beforehand, across restarts.
    """

    def __init__(
        self,
        streams: Mapping[str, Stream],
        partitions: Mapping[str, int],
        cache: Cache | None = None,
    ) -> None:
        self._streams = dict(streams)
        delays = {name: stream.max_delay_us for name, stream in streams.items()}
        self._marks = LowMarks(delays, partitions)
        self._buffers = {name: StreamBuffer() for name in streams}
        self._conditions: dict[str, _Registered] = {}
        self._totals = Totals()
        self._config_offset = -1
        self._next_number = 0
        self._skews_us = {
            name: it.max_skew_us for name, it in streams.items() if it.clock == "live"
        }
        self._stored: set[int] = set()
        self._cache = cache

    def advance(self, block: Block, clock: Callable[[], int]) -> Outcome:
        """Evaluate a block.

        Parameters
        ----------
        block : Block
            Records read since the last call.
        clock : callable
            Gives the wall time in µs since 1970; asked once, when the correlation is complete.
        """
        for control in sorted(block.controls, key=lambda control: control.offset):
            self._apply(control)
        fresh, appended_us, late = self._sort_in(block.events)
        closed = self._marks.advance(block.progress, block.heartbeats)
        marks = self._marks.values()
        numbers = {name: self._next_number + place for place, name in enumerate(fresh)}
        self._next_number += len(fresh)
        now_us = time_of_records(appended_us.values(), block.heartbeats, self._skews_us)
        told = (marks, numbers, now_us, closed)
        view = View(fresh, appended_us, self._buffers, *told, cache=self._cache)
        evaluations = [
            (entry, entry.operator.evaluate(view))
            for entry in self._conditions.values()
            if entry.operator is not None
        ]
        self._age({name: (numbers[name], fresh[name]) for name in fresh}, marks)
        now_us = clock()
        for (stream, reason), count in block.rejected.items():
            self._totals.count("events_rejected_total", {"stream": stream, "reason": reason}, count)
            if stream in self._streams:
                declared = declaration(self._streams[stream])
                self._totals.add_facts(stream, ContractFacts(declared, rejected={reason: count}))
        for entry, evaluation in evaluations:
            labels = {"condition": entry.resource.name}
            self._totals.count("alarms_total", labels, evaluation.alarms)
            for name, count_labels, increase in evaluation.counts:
                self._totals.count(name, count_labels, increase)
            if evaluation.alarms:
                entry.last_alarm_at_us = now_us
                if self._is_live(entry):
                    waited = now_us - evaluation.ready_us
                    self._totals.observe("response_time_seconds", labels, waited)
                waited = now_us - evaluation.appended_us
                self._totals.observe("pipeline_latency_seconds", labels, waited)
        results = tuple(result for _, found in evaluations for result in found.results)
        return Outcome(results, late, now_us, self._describe(now_us))

    def _is_live(self, entry: _Registered) -> bool:
        """Whether wall time says something about the condition's streams."""
        names = entry.condition.streams if entry.condition is not None else ()
        return all(self._streams[name].clock == "live" for name in names)

    def _apply(self, control: Control) -> None:
        """Take in a record of the config topic; streams come with the program's constructor."""
        if control.offset <= self._config_offset:
            return  # it is in already
        self._config_offset = control.offset
        kind, _, name = control.key.decode().partition("/")
        if kind != "condition":
            return
        if control.record is None:
            if self._conditions.pop(name, None) is not None:
                self._totals.forget("condition", name)
            return
        entry = _Registered(Resource.from_record(control.record), control.offset)
        previous = self._conditions.get(name)
        before = b""
        if previous is not None:
            entry.last_alarm_at_us = previous.last_alarm_at_us
            before = previous.operator.dump() if previous.operator is not None else b""
        self._start(entry, before)
        self._conditions[name] = entry

    def _start(self, entry: _Registered, before: bytes) -> None:
        """Give a condition its operator, or say why it has none.

        `before` is what the operator kept that did its work until now.
        """
        resource = entry.resource
        try:
            entry.condition = resource.to_condition()
            missing = [name for name in entry.condition.streams if name not in self._streams]
            if resource.paused:
                entry.state = "paused"
            elif missing:
                entry.state, entry.detail = "waiting", f"for stream {', '.join(missing)}"
            else:
                kind = KINDS[entry.condition.kind]
                kind.check(entry.condition, self._streams)
                entry.operator = kind.operator(entry.condition, self._declared_streams())
        except CorrelationError as error:
            entry.state, entry.detail = "failed", str(error)
        if entry.operator is not None:
            held_from = {name: buffer.forgotten_below for name, buffer in self._buffers.items()}
            entry.operator.begin(self._marks.values(), held_from, before)

    def _declared_streams(self) -> dict[str, Stream]:
        """Give the streams, widened to what was buffered before a change."""
        return {name: self._buffers[name].widened(stream) for name, stream in self._streams.items()}

    def _sort_in(
        self, parts: Sequence[Events]
    ) -> tuple[dict[str, Segment], dict[str, Any], tuple[Events, ...]]:
        """Sort the block's events into one segment per stream and find the late ones."""
        fresh: dict[str, Segment] = {}
        appended_us: dict[str, Any] = {}
        late_events = []
        for name in sorted({part.stream for part in parts if part.stream in self._streams}):
            mine = [part for part in parts if part.stream == name and len(part)]
            if not mine:
                continue
            mine.sort(key=lambda part: (int(part.partition[0]), int(part.offset[0])))
            events = Events.concat(mine)
            late = events.latest < self._marks.values()[name]
            home = self._streams[name].partitioning.home_copies(events.key)
            if (late & home).any():
                late_events.append(events.take(np.flatnonzero(late & home)))
            self._count_events(events, home, late_count=int((late & home).sum()))
            fresh[name], order = Segment.from_events(events, late)
            appended_us[name] = events.appended_us[order]
        return fresh, appended_us, tuple(late_events)

    def _count_events(self, events: Events, home: NDArray[np.bool_], late_count: int) -> None:
        """Count the events whose home copies are here: each counts once."""
        if not home.any():
            return
        labels = {"stream": events.stream}
        self._totals.count("events_consumed_total", labels, int(home.sum()))
        self._totals.count("events_late_total", labels, late_count)
        lengths, delays = (events.latest - events.earliest)[home], None
        self._totals.observe("interval_length_seconds", labels, lengths)
        stream = self._streams[events.stream]
        if stream.clock == "live":
            delays = (events.appended_us - events.latest)[home]
            self._totals.observe("transmission_delay_seconds", labels, delays)
        facts = ContractFacts.of_events(stream, lengths, delays, late_count)
        self._totals.add_facts(events.stream, facts)

    def _keep_values(self, marks: Mapping[str, int]) -> dict[str, int]:
        """Least `latest` that any condition still needs, per stream."""
        keep = dict.fromkeys(self._streams, KEEP_NOTHING)
        for entry in self._conditions.values():
            if entry.operator is not None:
                for stream, value in entry.operator.keep_values(marks).items():
                    keep[stream] = min(keep[stream], value)
        return keep

    def _age(self, fresh: Mapping[str, tuple[int, Segment]], marks: Mapping[str, int]) -> None:
        """Add the block's events to the buffers and drop what nothing needs any more."""
        held: dict[str, set[int]] = {name: set() for name in self._streams}
        for entry in self._conditions.values():
            if entry.operator is not None:
                for name, numbers in entry.operator.held().items():
                    held[name].update(numbers)
        for name, keep in self._keep_values(marks).items():
            self._next_number = self._buffers[name].age(
                fresh.get(name), keep, self._next_number, held[name]
            )

    def _describe(self, now_us: int) -> dict[str, Any]:
        """Write the slot's record for the metrics topic."""
        marks = self._marks.values()
        return {
            "v": VERSION,
            "at": now_us,
            "config_offset": self._config_offset,
            **self._totals.to_record(),
            "gauges": describe_buffers(self._buffers, self._keep_values(marks)),
            "conditions": {
                name: {
                    "version": entry.resource.version,
                    "state": entry.state,
                    "detail": entry.detail,
                    "config_offset": entry.config_offset,
                    "last_alarm_at": entry.last_alarm_at_us,
                }
                for name, entry in self._conditions.items()
            },
            "low_marks": self._marks.describe(),
        }

    def note_read(self, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """Say up to where the streams' partitions have been read already.

        Parameters
        ----------
        offsets : mapping of stream to (mapping of partition to int)
            A stream that joins on a topic which is read already begins there, not at 0.
        """
        for stream, found in offsets.items():
            self._marks.note_read(stream, found)

    def snapshot(self) -> Snapshot:
        """Give what must be stored so that `restore` continues from here."""
        live = {
            number: segment
            for buffer in self._buffers.values()
            for number, segment in buffer.segments
        }
        operators: dict[str, int | str] = {}
        added = {number: live[number].to_bytes() for number in live if number not in self._stored}
        kept = set(live)
        for name, entry in self._conditions.items():
            state = entry.operator.dump() if entry.operator is not None else b""
            if 0 < len(state) <= _SMALL_STATE_BYTES:
                operators[name] = state.hex()
            elif state:
                operators[name] = self._next_number
                added[self._next_number] = state
                kept.add(self._next_number)
                self._next_number += 1
        removed = tuple(sorted(self._stored - kept))
        self._stored = kept
        manifest = {
            "v": MANIFEST_VERSION,
            "config_offset": self._config_offset,
            "next_number": self._next_number,
            "buffers": {
                name: [number for number, _ in buffer.segments]
                for name, buffer in self._buffers.items()
            },
            "forgotten": {
                name: [buffer.greatest_latest, buffer.forgotten_below]
                for name, buffer in self._buffers.items()
            },
            "marks": self._marks.dump(),
            "topics": {name: stream.topic for name, stream in self._streams.items()},
            "joined_by": {name: it.joined_by for name, it in self._streams.items()},
            "conditions": [
                [entry.config_offset, entry.last_alarm_at_us, entry.resource.to_record()]
                for entry in self._conditions.values()
            ],
            "operators": operators,
            "totals": self._totals.dump(),
        }
        return Snapshot(manifest, added, removed)

    @classmethod
    def restore(
        cls,
        manifest: Mapping[str, Any],
        fetch: Callable[[int], bytes],
        streams: Mapping[str, Stream],
        partitions: Mapping[str, int],
        cache: Cache | None = None,
    ) -> Program:
        """Continue from a snapshot, with the streams in force now.

        Parameters
        ----------
        manifest : mapping
            Of the snapshot.
        fetch : callable
            Gives the blob of a number.
        streams, partitions
            As for the constructor; buffers of streams that are gone are dropped.
        cache : Cache or None
            As for the constructor.

        Raises
        ------
        UnknownRecordVersionError
            When another version wrote the manifest.
        """
        if manifest["v"] != MANIFEST_VERSION:
            raise UnknownRecordVersionError(
                f"state of version {manifest['v']!r}, this software reads {MANIFEST_VERSION}: "
                "use the one that wrote it, or begin with an empty checkpoint"
            )
        program = cls(streams, partitions, cache)
        moved = {
            name
            for name, topic in manifest["topics"].items()
            if name in streams and topic != streams[name].topic
        }
        program._marks.load(manifest["marks"], moved)
        program._load(manifest, fetch)
        return program

    def _load(self, manifest: Mapping[str, Any], fetch: Callable[[int], bytes]) -> None:
        self._config_offset = manifest["config_offset"]
        self._next_number = manifest["next_number"]
        self._totals.load(manifest["totals"])
        self._totals.keep_facts(self._streams)
        before = manifest["joined_by"]
        for name, numbers in manifest["buffers"].items():
            self._stored |= set(numbers)
            if name not in self._streams:
                continue
            if self._streams[name].joined_by != before[name]:
                self._buffers[name] = self._begin_buffer(name)
            else:
                self._buffers[name] = StreamBuffer(
                    [(number, Segment.from_bytes(fetch(number))) for number in numbers],
                    *manifest["forgotten"][name],
                )
        for config_offset, last_alarm_at_us, record in manifest["conditions"]:
            entry = _Registered(Resource.from_record(record), config_offset)
            entry.last_alarm_at_us = last_alarm_at_us
            name = entry.resource.name
            kept = manifest["operators"].get(name, "")
            if isinstance(kept, int):
                self._stored.add(kept)
                self._start(entry, fetch(kept))
            else:
                self._start(entry, bytes.fromhex(kept))
            self._conditions[name] = entry

    def _begin_buffer(self, name: str) -> StreamBuffer:
        """Begin anew where events of a stream meet otherwise now: no slot holds all it should."""
        mark = max(self._marks.partition_values(name).values())
        reached = mark + self._streams[name].max_delay_us
        return StreamBuffer((), reached, reached + 1)
