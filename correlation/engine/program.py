"""Program: evaluation of a slot's conditions over shared buffers.

All operators follow one scheme: the progress of the inputs determines the progress of the results,
this determines the keep values, and these determine which events the shared buffers drop. Progress
of the inputs, the minimum of the keep values over all operators, and the drop are implemented here
and in the modules of this package. The functions from progress to keep values are those of the
kinds: windows and reaches in `timing`, the validity of sets in `topk`, and the relevance analysis
in `event_query.relevance`. A block is evaluated in a fixed order: conditions by config offset, then
events by stream, partition and offset, then progress. So the division of records into blocks
affects when a result appears, but not which results appear.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from correlation.buffers.buffer import StreamBuffer
from correlation.buffers.events import Events
from correlation.buffers.grid import home_copies
from correlation.buffers.segment import Segment
from correlation.buffers.sources import find_sources
from correlation.engine.blocks import Block, Control, Outcome, Snapshot
from correlation.engine.conditions import Conditions
from correlation.engine.origin import Origin
from correlation.engine.progress import Watermarks, time_of_records
from correlation.engine.published import Published, describe_buffered
from correlation.engine.registered import describe_gauges, keep_values
from correlation.engine.totals import Totals
from correlation.engine.widening import Refitting
from correlation.errors import UnknownRecordVersionError
from correlation.operators import TIMESTAMP, Cache, Result, Share, View
from correlation.resources.streams import Stream
from correlation.room import Room

__all__ = ["Block", "Control", "Origin", "Outcome", "Program", "Published", "Snapshot"]

# Format versions of the slot's record and of the manifest.
VERSION = 1
MANIFEST_VERSION = 6
_NO_ORIGIN = Origin()


class Program:
    """The conditions of a slot and their shared buffers.

    Parameters
    ----------
    streams : mapping of name to Stream
        The streams in force.
    partitions : mapping of stream to int
        Number of Kafka partitions of each stream's topic.
    origin : Origin
        Identity of the topics.
    cache : Cache or None
        Cache of tables that conditions compute in advance; it survives restarts.
    """

    def __init__(
        self,
        streams: Mapping[str, Stream],
        partitions: Mapping[str, int],
        origin: Origin = _NO_ORIGIN,
        cache: Cache | None = None,
    ) -> None:
        self._streams = dict(streams)
        self._origin = origin
        delays = {name: stream.max_delay_us for name, stream in streams.items()}
        self._skews_us = {
            name: it.max_skew_us for name, it in streams.items() if it.clock == "live"
        }
        self._watermarks = Watermarks(delays, partitions, self._skews_us)
        self._buffers = {name: StreamBuffer() for name in streams}
        self._totals = Totals()
        self._conditions = Conditions(self._streams, self._buffers, self._watermarks, self._totals)
        self._next_number = 0
        self._stored: set[int] = set()
        self._refitting = Refitting(self._streams, {}, 0)
        self._cache = cache

    def advance(self, block: Block, clock: Callable[[], int], room: Room | None = None) -> Outcome:
        """Evaluate a block.

        Parameters
        ----------
        block : Block
            Records read since the last call.
        clock : callable
            Returns the wall time in µs since 1970; called once, when the correlation is complete.
        room : Room or None
            Room for pairs that are kept in memory until they are written; None: the default.
        """
        self._conditions.apply(block.controls)
        fresh, record_timestamp_us, late = self._sort_in(block)
        changes = self._watermarks.advance(block.progress, block.heartbeats)
        watermarks = self._watermarks.values()
        numbers = {name: self._next_number + place for place, name in enumerate(fresh)}
        self._next_number += len(fresh)
        records_at_us = time_of_records(
            record_timestamp_us.values(), block.heartbeats, self._skews_us
        )
        context = (watermarks, numbers, records_at_us, *changes)
        operators = self._conditions.operators()
        running = [it for _, it in operators]
        reached = {name: self._watermarks.max_latest(name) for name in self._streams}
        view = View(
            fresh,
            record_timestamp_us,
            self._buffers,
            *context,
            reached,
            {},
            running,
            self._cache,
            {it.stream for it in block.progress},
            room or Room(),
            block.flush,
        )
        evaluations = [(entry, operator.evaluate(view)) for entry, operator in operators]
        self._age({name: (numbers[name], fresh[name]) for name in fresh}, watermarks)
        detected_at_us = clock()
        self._totals.count_records(self._streams, block.rejected, block.filtered)
        gauges: list[list[object]] = []
        for entry, evaluation in evaluations:
            name, is_live = entry.resource.name, entry.is_live(self._streams)
            self._totals.count_evaluation(name, evaluation, detected_at_us, is_live=is_live)
            labels = {"condition": name}
            gauges += [[gauge, labels, value] for gauge, value in evaluation.gauges.items()]
            if evaluation.alarms:
                entry.last_alarm_at_us = detected_at_us
        # First: a new version of a condition may write the lists that the previous one withdraws.
        withdrawn = self._conditions.take_withdrawn()
        shares = [it for it in withdrawn if isinstance(it, Share)]
        merged = {it.condition for it in shares if it.blob}
        results: list[Result] = [it for it in withdrawn if not isinstance(it, Share)]
        later: list[Result] = []
        for entry, evaluation in evaluations:
            (later if entry.resource.name in merged else results).extend(evaluation.results)
            if evaluation.shares:
                is_live = entry.is_live(self._streams)
                shares += [it._replace(is_live=is_live) for it in evaluation.shares]
        return Outcome(
            tuple(results),
            late,
            detected_at_us,
            tuple(shares),
            tuple(later),
            self._conditions.config_offset,
            partial(self._describe, detected_at_us, gauges),
        )

    def _sort_in(
        self, block: Block
    ) -> tuple[dict[str, Segment], dict[str, Any], tuple[Events, ...]]:
        """Sort the block's events into one segment per stream and find the late events."""
        fresh: dict[str, Segment] = {}
        record_timestamp_us: dict[str, Any] = {}
        late_events = []
        parts, ranges = block.events, self._watermarks.ranges(block.progress)
        stamped = {
            name
            for entry, operator in self._conditions.operators()
            if operator.needs_timestamps()
            for name in entry.streams
        }
        for name in sorted({part.stream for part in parts if part.stream in self._streams}):
            mine = [part for part in parts if part.stream == name and len(part)]
            if not mine:
                continue
            mine.sort(key=lambda part: (int(part.partition[0]), int(part.offset[0])))
            events = Events.concat(mine)
            late = events.latest < self._watermarks.values()[name]
            home = home_copies(events.key, self._streams[name].partitioning.groups)
            if (late & home).any():
                late_events.append(events.take(np.flatnonzero(late & home)))
            self._totals.count_events(self._streams[name], events, home, late)
            if name in stamped:
                columns = {**events.columns, TIMESTAMP: events.record_timestamp_us}
                events = replace(events, columns=columns)
            sources = find_sources(events, ranges.get(name, {}))
            fresh[name], order = Segment.from_events(events, late, sources)
            record_timestamp_us[name] = events.record_timestamp_us[order]
        return fresh, record_timestamp_us, tuple(late_events)

    def _keep_values(self, watermarks: Mapping[str, int]) -> dict[str, int]:
        return keep_values(self._conditions.values(), watermarks, self._readable())

    def _readable(self) -> set[str]:
        """Return the registered streams that the next run reads."""
        return self._conditions.to_come - self._origin.missing

    def _age(self, fresh: Mapping[str, tuple[int, Segment]], watermarks: Mapping[str, int]) -> None:
        """Add the block's events to the buffers and drop events that are no longer needed."""
        held: dict[str, set[int]] = {name: set() for name in self._streams}
        for _, operator in self._conditions.operators():
            for name, numbers in operator.held().items():
                held[name].update(numbers)
        for name, keep in self._keep_values(watermarks).items():
            # Equal in all slots: whether they have seen the last events or not.
            self._buffers[name].max_latest = self._watermarks.max_latest(name)
            self._next_number = self._buffers[name].age(
                fresh.get(name), keep, self._next_number, held[name]
            )
            collected = self._buffers[name].collected
            self._totals.count("events_collected_total", {"stream": name}, collected)

    def _describe(self, detected_at_us: int, gauges: list[list[object]]) -> dict[str, Any]:
        """Return the slot's record for the metrics topic, with gauges of the operators."""
        watermarks = self._watermarks.values()
        return {
            "v": VERSION,
            "at": detected_at_us,
            "config_offset": self._conditions.config_offset,
            **self._totals.to_record(),
            "gauges": [
                *describe_gauges(
                    self._buffers, self._conditions.by_name(), watermarks, self._readable()
                ),
                *gauges,
            ],
            "conditions": self._conditions.describe(),
            "watermarks": self._watermarks.describe(),
        }

    def watermarks(self) -> dict[str, int]:
        """Return the watermark of each stream, in µs: earlier events of the next block are late."""
        return dict(self._watermarks.values())

    def note_read(self, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """Set the offsets up to which the streams' partitions have been read already.

        Parameters
        ----------
        offsets : mapping of stream to (mapping of partition to int)
            Start offsets, larger than 0 for a new stream on a topic that other streams read.
        """
        for stream, found in offsets.items():
            self._watermarks.note_read(stream, found)

    def snapshot(self) -> Snapshot:
        """Return the changes of the state that `restore` needs to continue from here."""
        live = {
            number: segment
            for buffer in self._buffers.values()
            for number, segment in buffer.segments
        }
        states, blobs = self._conditions.dump_states(self._next_number)
        self._next_number += len(blobs)
        added = {number: live[number].to_bytes() for number in live if number not in self._stored}
        added |= blobs
        kept = {*live, *blobs}
        removed = tuple(sorted(self._stored - kept))
        self._stored = kept
        manifest = {
            "v": MANIFEST_VERSION,
            "next_number": self._next_number,
            "buffers": {
                name: [number for number, _ in buffer.segments]
                for name, buffer in self._buffers.items()
            },
            **self._position(),
            **self._conditions.dump(),
            "operators": states,
            "totals": self._totals.dump(),
        }
        # Streams without tokens keep the form that earlier versions of this software read.
        if tokens := self._refitting.to_record():
            manifest["tokens"] = tokens
        return Snapshot(manifest, added, removed)

    def _position(self) -> dict[str, Any]:
        """Return the fields of the manifest that change with almost every block."""
        return {
            "forgotten": {
                name: [buffer.max_latest, buffer.forgotten_below]
                for name, buffer in self._buffers.items()
            },
            "watermarks": self._watermarks.dump(),
            "topics": {name: stream.topic for name, stream in self._streams.items()},
            "topic_ids": dict(self._origin.topic_ids),
            "config_epoch": self._origin.config_epoch,
            "joined_by": {name: it.joined_by for name, it in self._streams.items()},
            "config_offset": self._conditions.config_offset,
            "to_come": sorted(self._conditions.to_come),
        }

    def publish(self, *, with_totals: bool = True) -> Published:
        """Return what `rebuild_program` needs, beside the events, to continue from here.

        Parameters
        ----------
        with_totals : bool
            Whether `totals` is wanted; it is empty otherwise.
        """
        operators = self._conditions.operators()
        position = {
            **self._position(),
            "operators": {
                entry.resource.name: state.hex()
                for entry, _ in operators
                if (state := entry.dump())
            },
            **describe_buffered(self._buffers, operators),
        }
        if not with_totals:
            return Published(position, {})
        return Published(position, {**self._conditions.dump(), "totals": self._totals.dump()})

    @classmethod
    def restore(
        cls,
        manifest: Mapping[str, Any],
        fetch: Callable[[int], bytes],
        streams: Mapping[str, Stream],
        partitions: Mapping[str, int],
        origin: Origin = _NO_ORIGIN,
        cache: Cache | None = None,
        *,
        is_stored: bool = True,
    ) -> Program:
        """Continue from a snapshot, with the streams in force now.

        Parameters
        ----------
        manifest : mapping
            Manifest of the snapshot.
        fetch : callable
            Returns the blob of a number.
        streams, partitions, origin, cache
            As for the constructor; buffers of removed streams are dropped. Conditions of an earlier
            config topic are dropped unless the next block registers them again.

        Raises
        ------
        UnknownRecordVersionError
            When another version wrote the manifest.
        """
        if manifest["v"] != MANIFEST_VERSION:
            raise UnknownRecordVersionError(
                f"the state has version {manifest['v']!r}; this software reads "
                f"{MANIFEST_VERSION}; use the software that wrote it, or start with an "
                "empty checkpoint"
            )
        program = cls(streams, partitions, origin, cache)
        before, now = manifest["topic_ids"], origin.topic_ids
        recreated = {name for name in before.keys() & now.keys() if before[name] != now[name]}
        moved = {
            name
            for name, topic in manifest["topics"].items()
            if name in streams and (name in recreated or topic != streams[name].topic)
        }
        program._watermarks.load(manifest["watermarks"], moved)
        program._load(manifest, fetch, moved)
        if manifest["config_epoch"] != origin.config_epoch:
            program._conditions.restart_config()
        if not is_stored:
            program._stored = set()
        return program

    def _load(
        self, manifest: Mapping[str, Any], fetch: Callable[[int], bytes], moved: Collection[str]
    ) -> None:
        self._next_number = manifest["next_number"]
        self._totals.load(manifest["totals"])
        self._totals.keep_facts(self._streams)
        self._refitting = Refitting(self._streams, manifest.get("tokens", {}), self._next_number)
        before = manifest["joined_by"]
        dropped = set()
        for name, numbers in manifest["buffers"].items():
            self._stored |= set(numbers)
            if name not in self._streams:
                dropped.add(name)
                continue
            if self._streams[name].joined_by != before[name]:
                # The partitioning changed: the slot does not hold all events that meet in it now.
                dropped.add(name)
                reached = self._watermarks.max_latest(name)
                self._buffers[name] = StreamBuffer((), reached, reached + 1)
            else:
                read = ((it, Segment.from_bytes(fetch(it))) for it in numbers)
                fitted = [(it, self._refitting.fit(name, it, found)) for it, found in read]
                if name in moved:
                    # Their offsets are those of another topic.
                    for _, segment in fitted:
                        segment.sources = None
                self._buffers[name] = StreamBuffer(fitted, *manifest["forgotten"][name])
        self._stored |= self._conditions.load(manifest, fetch, dropped)
