"""Programs for tests: events in order of arrival, their blocks, and a slot that can restart."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from correlation.buffers.columns import DictionaryColumn
from correlation.buffers.events import Events
from correlation.buffers.sources import Sources
from correlation.engine.heartbeats import Heartbeat
from correlation.engine.program import (
    Block,
    Control,
    Origin,
    Outcome,
    Program,
    Published,
    Snapshot,
)
from correlation.engine.progress import Progress
from correlation.engine.published import read_sources
from correlation.engine.rebuilding import rebuild_program
from correlation.resources.histogram import Histogram
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from tests.oracle.emit import best_target
from tests.oracle.filters import matches
from tests.oracle.intervals import Window, is_satisfied
from tests.support.filters import TYPES, columns
from tests.support.records import built_in_checker

LONGEST, DELAY = 12, 9
# Id of the best B of each A, or None.
Verdicts = dict[str, str | None]
PARTITIONS = 2
CONDITIONS: dict[str, dict[str, object]] = {
    "near": {"kind": "mutual_deadline", "a": "x", "b": "y", "window_us": 25, "threshold": "0.7"},
    "tie": {"kind": "mutual_deadline", "a": "y", "b": "x", "window_us": 12, "threshold": "0.5"},
    "narrow": {
        "kind": "within",
        "a": "x",
        "b": "y",
        "lower_us": 2,
        "upper_us": 7,
        "threshold": ".4",
    },
    "sure": {
        "kind": "within",
        "a": "x",
        "b": "y",
        "lower_us": -3,
        "upper_us": 40,
        "threshold": "1",
    },
    "by": {
        "kind": "deadline",
        "a": "x",
        "b": "y",
        "deadline_us": 3,
        "horizon_us": 30,
        "threshold": "0.35",
    },
    "after": {
        "kind": "delay",
        "a": "x",
        "b": "y",
        "delay_us": 5,
        "horizon_us": 30,
        "threshold": "0.9",
    },
    "self": {"kind": "mutual_deadline", "a": "x", "b": "x", "window_us": 15, "threshold": "0.5"},
    "self_within": {
        "kind": "within",
        "a": "x",
        "b": "x",
        "lower_us": -2,
        "upper_us": 20,
        "threshold": "0.3",
    },
}


def judged_window(document: dict[str, object]) -> Window:
    """Convert a condition's document to a window of the oracle."""

    def us(name: str) -> int:
        value = document[f"{name}_us"]
        assert isinstance(value, int)
        return value

    threshold = Fraction(str(document["threshold"]))
    if document["kind"] == "mutual_deadline":
        return (-us("window"), us("window"), None, None, threshold)
    if document["kind"] == "within":
        return (us("lower"), us("upper"), None, None, threshold)
    if document["kind"] == "deadline":
        return (None, us("deadline"), -us("horizon"), None, threshold)
    return (us("delay"), None, None, us("horizon"), threshold)


@dataclass(frozen=True)
class Arrival:
    """An event with its partition and offset in Kafka."""

    stream: str
    partition: int
    key: str
    id: str
    earliest: int
    latest: int
    offset: int = 0
    shape: Histogram | None = None
    attributes: dict[str, Any] | None = None

    @property
    def interval(self) -> tuple[int, int]:
        """The event in the oracle's form."""
        return (self.earliest, self.latest)

    @property
    def histogram(self) -> Histogram:
        """Distribution of the event's time."""
        if self.shape is None:
            return Histogram.from_interval(self.earliest, self.latest)
        return self.shape.moved(self.latest)


def passes(arrival: Arrival, document: dict[str, Any], role: str) -> bool:
    """Return whether an event passes the condition's filter of a role."""
    wanted = (document.get("where") or {}).get(role)
    return wanted is None or matches(wanted, arrival.attributes or {}, TYPES)


def judged_pairs(arrivals: list[Arrival], document: dict[str, object]) -> set[tuple[str, str]]:
    """Find, with the oracle, the ids of the pairs that a condition must report."""
    window = judged_window(document)

    def is_pair(a: Arrival, b: Arrival) -> bool:
        passing = passes(a, document, "a") and passes(b, document, "b")
        return passing and is_satisfied(a.interval, b.interval, window)

    pairs = set()
    for a in arrivals:
        for b in arrivals:
            if (a.stream, b.stream) != (document["a"], document["b"]) or a.key != b.key:
                continue
            if a.id == b.id or not is_pair(a, b):
                continue
            if document["a"] == document["b"]:
                order_a, order_b = (a.latest, a.earliest, a.id), (b.latest, b.earliest, b.id)
                if order_a > order_b and is_pair(b, a):
                    continue
            pairs.add((a.id, b.id))
    return pairs


def draw_arrivals(rng: random.Random, count: int) -> list[Arrival]:
    """Draw events of two streams in order of arrival, between latest and latest + max_delay."""
    found = []
    for number in range(count):
        stream = rng.choice("xy")
        latest = rng.randint(-40, 60)
        length = rng.choice([0, 4, 4, LONGEST, rng.randint(0, LONGEST)])
        found.append(
            (
                latest + rng.randint(0, DELAY),
                Arrival(
                    stream,
                    rng.randrange(PARTITIONS),
                    rng.choice("kq"),
                    f"{stream}{number:03}",
                    latest - length,
                    latest,
                ),
            )
        )
    found.sort(key=lambda entry: entry[0])
    offsets = dict.fromkeys([(s, p) for s in "xy" for p in range(PARTITIONS)], 0)
    ordered = []
    for _, arrival in found:
        place = (arrival.stream, arrival.partition)
        ordered.append(replace(arrival, offset=offsets[place]))
        offsets[place] += 1
    return ordered


def draw_late_arrivals(rng: random.Random, count: int) -> list[Arrival]:
    """Draw arrivals of which some are late."""
    arrivals = draw_arrivals(rng, count)
    order = [
        (place + rng.choice([0, 0, 0, rng.randint(5, 40)]), a) for place, a in enumerate(arrivals)
    ]
    order.sort(key=lambda entry: entry[0])
    counts: Counter[tuple[str, int]] = Counter()
    moved = []
    for _, arrival in order:
        place = (arrival.stream, arrival.partition)
        moved.append(replace(arrival, offset=counts[place]))
        counts[place] += 1
    return moved


def make_block(arrivals: list[Arrival], controls: list[Control]) -> Block:
    """Build a block of events with their progress."""
    parts, progress = [], []
    for place in sorted({(arrival.stream, arrival.partition) for arrival in arrivals}):
        mine = [arrival for arrival in arrivals if (arrival.stream, arrival.partition) == place]
        rows = [
            (a.key.encode(), a.id.encode(), a.earliest, a.latest, a.partition, a.offset, a.latest)
            for a in mine
        ]
        shapes = [None if a.shape is None else a.shape.shape_bytes for a in mine]
        column = DictionaryColumn.from_list(shapes) if any(shapes) else None
        events = replace(Events.from_rows(place[0], rows), shape=column)
        if any(a.attributes is not None for a in mine):
            events = replace(events, columns=columns([a.attributes or {} for a in mine]))
        parts.append(events)
        max_latest = max(arrival.latest for arrival in mine)
        progress.append(Progress(*place, mine[-1].offset + 1, max_latest))
    return Block(controls, parts, progress)


class Slot:
    """A program that is stored and restored as in the Spark job."""

    def __init__(self) -> None:
        self.streams = {
            name: Stream(name, name, LONGEST, DELAY, clock="replay") for name in ("x", "y")
        }
        self.partitions = dict.fromkeys(self.streams, PARTITIONS)
        self.origin = Origin()
        self.program = Program(self.streams, self.partitions)
        self.blobs: dict[int, bytes] = {}
        self.manifest: dict[str, Any] = {}
        # The log: all events so far, by stream.
        self.log: dict[str, list[Events]] = {}
        self.restarts = 0
        # Whether every second restart rebuilds the program: not in tests of what it cannot keep,
        # such as the mark `late`, or whose events have no offsets.
        self.rebuilds = True

    def advance(self, block: Block) -> Outcome:
        """Evaluate a block at wall time 100."""
        for events in block.events:
            self.log.setdefault(events.stream, []).append(events)
        return self.program.advance(block, lambda: 100)

    def restart(self) -> None:
        """Restart from the state and from the log, alternately (docs/proofs.md, P-REBUILD)."""
        self.restarts += 1
        if self.rebuilds and self.restarts % 2 == 0:
            self.rebuild()
        else:
            self.restore()

    def rebuild(self) -> None:
        """Rebuild the program from its published state and the log, as without a checkpoint.

        Of the log, events before the first offsets of the buffers are not used.
        """
        snapshot = self.program.snapshot()
        published = Published(*map(as_json, self.program.publish()))
        known = read_sources(published.position)
        if None in known.values():
            # The job refuses to rebuild buffers with events of a topic that was created again.
            self._restore(snapshot)
            return
        events = {
            name: list(since(parts, known[name] or ()))
            for name, parts in self.log.items()
            if name in known
        }
        self.program = rebuild_program(
            published, events, self.streams, self.partitions, self.origin
        )
        self.manifest, self.blobs = snapshot.manifest, {}

    def restore(self) -> None:
        """Store the program and restore it with the current streams and origin."""
        self._restore(self.program.snapshot())

    def _restore(self, snapshot: Snapshot) -> None:
        self.manifest = snapshot.manifest
        self.blobs |= snapshot.added
        for number in snapshot.removed:
            del self.blobs[number]
        self.program = Program.restore(
            snapshot.manifest, self.blobs.__getitem__, self.streams, self.partitions, self.origin
        )


def as_json(value: dict[str, Any]) -> dict[str, Any]:
    """Return a value as it is read after it was written as JSON."""
    found: dict[str, Any] = json.loads(json.dumps(value))
    return found


def since(parts: Iterable[Events], sources: Sources) -> Iterator[Events]:
    """Yield the events from the first offset of each partition of the sources on."""
    firsts: dict[int, int] = {}
    for partition, begin, _, _ in sources:
        firsts[partition] = min(begin, firsts.get(partition, begin))
    for events in parts:
        first = firsts.get(int(events.partition[0]), 2**62)
        yield events.take(np.flatnonzero(events.offset >= first))


def rivals_of(a: Arrival, arrivals: list[Arrival], document: dict[str, object]) -> list[Arrival]:
    """Return the events that could be the B of an A."""
    return [
        b
        for b in arrivals
        if b.stream == document["b"]
        and b.key == a.key
        and b.id != a.id
        and passes(b, document, "b")
    ]


def judged_verdicts(arrivals: list[Arrival], document: dict[str, object]) -> Verdicts:
    """Find, with the oracle, the id of the best B of every A, or None."""
    window = judged_window(document)
    verdicts: Verdicts = {}
    for a in arrivals:
        if a.stream == document["a"] and passes(a, document, "a"):
            rivals = rivals_of(a, arrivals, document)
            targets = [(b.interval, b.id.encode()) for b in rivals]
            best = best_target(a.interval, targets, window)
            verdicts[a.id] = None if best is None else rivals[best].id
    return verdicts


def control_record(
    offset: int, name: str, document: dict[str, object], version: int = 1, *, paused: bool = False
) -> Control:
    """Build a condition's record of the config topic."""
    resource = Resource("condition", name, version, 0, document, paused)
    return Control(offset, resource.key, resource.to_record())


def control_records(algorithm: str) -> list[Control]:
    """Build the records of all CONDITIONS."""
    return [
        control_record(offset, name, {**document, "algorithm": algorithm})
        for offset, (name, document) in enumerate(CONDITIONS.items())
    ]


def read_alarms(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the alarms that an outcome would publish; their schemas are checked."""
    records = built_in_checker().records_of(outcome)
    return [json.loads(record.value or b"") for _, record in records]


def point(name: str, time: int, offset: int = 0) -> Arrival:
    """Build an event with an exact time; the first letter of its name is its stream."""
    return Arrival(name[0], 0, "k", name, time, time, offset)


def beat(stream: str, mark: int) -> Heartbeat:
    """Build a heartbeat that sets the watermark of a stream to `mark`."""
    return Heartbeat(stream, None, mark + DELAY, None)


def slot_of_points(*controls: Control) -> Slot:
    """Build a slot of exact times, where a pair is satisfied iff its times are in the window."""
    slot = Slot()
    slot.streams = {name: replace(it, max_uncertainty_us=0) for name, it in slot.streams.items()}
    slot.program = Program(slot.streams, slot.partitions)
    slot.advance(make_block([], list(controls)))
    slot.restart()
    return slot


Found = tuple[str, str | None, bool]


def advance_slot(
    slot: Slot,
    arrivals: Sequence[Arrival] = (),
    beats: Sequence[Heartbeat] = (),
    controls: Sequence[Control] = (),
) -> list[Found]:
    """Advance and restart a slot; return a, b and late of each alarm of the condition c."""
    block = replace(make_block(list(arrivals), list(controls)), heartbeats=beats)
    alarms = read_alarms(slot.advance(block))
    slot.restart()
    mine = [alarm for alarm in alarms if alarm["condition"] == "c"]
    return sorted((a["a"]["id"], a["b"] and a["b"]["id"], a["late"]) for a in mine)
