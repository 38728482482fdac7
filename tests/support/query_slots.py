"""Programs with event queries for tests: streams, events in order of arrival, and their blocks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from correlation.buffers.columns import BytesColumn, DictionaryColumn
from correlation.buffers.events import Events
from correlation.engine.blocks import Block, Control
from correlation.engine.heartbeats import CLOSED, Heartbeat
from correlation.engine.program import Outcome, Program
from correlation.engine.progress import Progress
from correlation.event_query.language.documents import query_to_document
from correlation.event_query.query import Query
from correlation.event_query.relevance.closure import StreamTimes
from correlation.resources.attributes import Attribute, AttributeType, column_name, encode_value
from correlation.resources.histogram import Histogram
from correlation.resources.mapping import EventMapping
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from tests.oracle.event_queries import Event, JudgedQuery
from tests.support.event_queries import ALARM_STREAMS, judged
from tests.support.slots import PARTITIONS, Slot, control_record, read_alarms

DELAY = 4
LASTING = EventMapping("lasting", begin_path=("begin",), end_path=("end",))
# Attributes of all streams of random queries.
ATTRIBUTES: Mapping[str, AttributeType] = {"k": "string", "m": "string", "n": "number"}
# Attribute of the oracle's events that has the join key.
KEY = "$key"


def judged_with_key(query: Query, types: Mapping[str, StreamTimes], *, keyed: bool) -> JudgedQuery:
    """Return the query in the form of the oracle; a join key is one more variable."""
    found = judged(query, types)
    if not keyed:
        return found
    positive, negated = (
        [replace(it, variables=(*it.variables, (KEY, KEY))) for it in patterns]
        for patterns in (found.positive, found.negated)
    )
    return replace(found, positive=positive, negated=negated)


@dataclass(frozen=True)
class Arrival:
    """An event with its position in Kafka; the events of a keyed stream have the attribute KEY."""

    event: Event
    partition: int
    offset: int = 0
    shape: Histogram | None = None

    @property
    def key(self) -> bytes:
        """Its join key."""
        return str(dict(self.event.attributes).get(KEY, "0")).encode()


def make_streams(
    types: Mapping[str, StreamTimes],
    *,
    keyed: bool,
    attributes: Mapping[str, AttributeType] = ATTRIBUTES,
) -> dict[str, Stream]:
    """Return the streams of some event types."""
    return {
        it.stream: Stream(
            it.stream,
            it.stream,
            it.uncertainty_us,
            DELAY,
            mapping=EventMapping() if it.max_length_us == 0 else LASTING,
            partitioning=Partitioning() if keyed else Partitioning("grid"),
            clock="replay",
            attributes=tuple(Attribute(name, (name,), kind) for name, kind in attributes.items()),
            min_length_us=None if it.max_length_us == 0 else it.min_length_us,
            max_length_us=None if it.max_length_us == 0 else it.max_length_us,
            histograms=it.uncertain,
        )
        for it in types.values()
    }


def query_control(
    offset: int,
    query: Query,
    types: Mapping[str, StreamTimes],
    version: int = 1,
    name: str = "q",
    *,
    paused: bool = False,
    threshold: str | None = None,
) -> Control:
    """Return the record of a query in the config topic."""
    used = {event.type for event in query.events}
    document: dict[str, object] = {
        "kind": "event_query",
        "query": query_to_document(query),
        "types": {name: it.stream for name, it in types.items() if name in used},
    }
    if threshold is not None:
        document["threshold"] = threshold
    return control_record(offset, name, document, version, paused=paused)


def make_query_block(
    arrivals: Sequence[Arrival],
    controls: Sequence[Control] = (),
    heartbeats: Sequence[Heartbeat] = (),
) -> Block:
    """Return a block of events with their progress."""
    parts, progress = [], []
    for place in sorted({(it.event.stream, it.partition) for it in arrivals}):
        mine = [it for it in arrivals if (it.event.stream, it.partition) == place]
        parts.append(make_events(mine))
        reached = max(it.event.end for it in mine)
        progress.append(Progress(*place, mine[-1].offset + 1, reached))
    return Block(controls, parts, progress, heartbeats=heartbeats)


def make_events(arrivals: Sequence[Arrival]) -> Events:
    """Return events of one partition in columns, with a column for each attribute."""
    rows = [
        (
            it.key,
            str(it.event.id).encode(),
            it.event.begin,
            it.event.end,
            it.partition,
            it.offset,
            it.event.end,
        )
        for it in arrivals
    ]
    values = [dict(it.event.attributes) for it in arrivals]
    names = {name for found in values for name in found} - {KEY}
    columns = {
        column_name(name): DictionaryColumn.from_list(
            [encode_value(found[name]) if name in found else None for found in values]  # type: ignore[arg-type]
        )
        for name in names
    }
    shapes = [None if it.shape is None else it.shape.shape_bytes for it in arrivals]
    shape = DictionaryColumn.from_list(shapes) if any(shapes) else None
    events = Events.from_rows(arrivals[0].event.stream, rows)
    return replace(events, columns=columns, shape=shape)


class QuerySlot(Slot):
    """A slot with other streams."""

    def __init__(self, streams: Mapping[str, Stream]) -> None:
        super().__init__()
        self.streams = dict(streams)
        self.partitions = dict.fromkeys(self.streams, PARTITIONS)
        self.program = Program(self.streams, self.partitions)

    def forgotten_below(self, stream: str) -> int:
        """Return the time from which on the buffer of a stream holds all events."""
        return self.program._buffers[stream].forgotten_below  # noqa: SLF001 - not in any output


def watermarks_of(outcome: Outcome) -> dict[str, int]:
    """Return the watermarks after a block."""
    found = outcome.metrics["watermarks"].items()
    return {name: -(10**9) if it["watermark"] is None else it["watermark"] for name, it in found}


def read_results(outcome: Outcome, name: str = "q") -> list[tuple[int, ...]]:
    """Return the ids of the events of each result of a query."""
    return [
        tuple(int(event["id"]) for event in alarm["events"].values())
        for alarm in read_alarms(outcome)
        if alarm["condition"] == name
    ]


def counters_of(outcome: Outcome, name: str = "q") -> dict[str, int]:
    """Return the counters of a query."""
    return {
        metric: value
        for metric, labels, value in outcome.metrics["counters"]
        if labels.get("condition") == name
    }


def draw_events(
    rng: random.Random, count: int, streams: Mapping[str, Stream], *, span: int, keyed: bool
) -> list[Event]:
    """Draw events, of which some share times and values."""
    found = []
    for number in range(count):
        stream = streams[rng.choice(sorted(streams))]
        end, length = rng.randint(0, span), 0
        if stream.lasts:
            longest = 6 if stream.max_length_us is None else stream.max_length_us
            length = rng.randint(stream.min_length_us or 0, longest)
        values: dict[str, object] = {}
        if rng.random() < 0.9:
            values["k"] = rng.choice("xyz")
        if rng.random() < 0.9:
            values["m"] = rng.choice("xyz")
        if rng.random() < 0.9:
            values["n"] = rng.choice([0, 1, 1.5, 2, 0.1])
        if keyed:
            values[KEY] = rng.choice("ab")
        found.append(Event(stream.name, end - length, end, tuple(values.items()), number))
    return found


def order_of_arrival(rng: random.Random, events: Iterable[Event]) -> list[Arrival]:
    """Return events in an order in which no event is late."""
    order = sorted((it.end + rng.randint(0, DELAY), rng.random(), it) for it in events)
    offsets: Counter[tuple[str, int]] = Counter()
    found = []
    for _, _, event in order:
        place = (event.stream, rng.randrange(PARTITIONS))
        found.append(Arrival(event, place[1], offsets[place]))
        offsets[place] += 1
    return found


def delayed(rng: random.Random, arrivals: Iterable[Arrival]) -> tuple[list[Arrival], set[int]]:
    """Return events some of which arrive after events behind them, and the ids of these."""
    order = list(arrivals)
    late = [it for it in order if rng.random() < 0.2]
    found = [it for it in order if it not in late]
    for it in late:
        found.insert(rng.randint(0, len(found)), it)
    numbers: Counter[tuple[str, int]] = Counter()
    for place, it in enumerate(found):
        key = (it.event.stream, it.partition)
        found[place] = replace(it, offset=numbers[key])
        numbers[key] += 1
    return found, {it.event.id for it in late}


def true_heartbeat(rng: random.Random, stream: str, rest: Sequence[Arrival]) -> Heartbeat:
    """Return a true heartbeat of a stream: its highest watermark, or a lower one."""
    first = min((it.event.end for it in rest if it.event.stream == stream), default=10**6)
    return Heartbeat(stream, None, first + DELAY - rng.choice([0, 0, 1, 3]), None)


def closing_heartbeats(streams: Iterable[str]) -> list[Heartbeat]:
    """Return heartbeats that close streams."""
    return [Heartbeat(name, None, CLOSED, None) for name in streams]


class AlarmSlot(QuerySlot):
    """A slot of the streams `smoke` and `report`, whose events are instants with an area.

    It restarts after every block.
    """

    def __init__(self, *controls: Control, keyed: bool = False) -> None:
        super().__init__(make_streams(ALARM_STREAMS, keyed=keyed, attributes={"area": "string"}))
        self._offsets: Counter[str] = Counter()
        self.last = self.advance(make_query_block([], controls))

    def send(
        self,
        *events: tuple[str, int, str],
        marks: Mapping[str, int] | None = None,
        beats: Sequence[Heartbeat] = (),
        controls: Sequence[Control] = (),
        name: str = "q",
    ) -> list[tuple[tuple[str, ...], bool]]:
        """Advance by a block; return ids and `late` of each result of a query.

        Parameters
        ----------
        *events : (str, int, str)
            Stream, time and area; the id of an event has all three.
        marks : mapping of stream to int
            Watermarks to set.
        beats, controls
            Further heartbeats, and records of the config topic.
        name : str
            Name of the query.
        """
        arrivals: list[Arrival] = []
        for stream, time, area in events:
            event = Event(stream, time, time, (("area", area),), len(arrivals))
            arrivals.append(Arrival(event, 0, self._offsets[stream]))
            self._offsets[stream] += 1
        found = [Heartbeat(it, None, mark + DELAY, None) for it, mark in (marks or {}).items()]
        block = make_query_block(arrivals, controls, [*beats, *found])
        self.last = self.advance(_with_names(block))
        self.restart()
        return [
            (tuple(event["id"] for event in alarm["events"].values()), alarm["late"])
            for alarm in read_alarms(self.last)
            if alarm["condition"] == name
        ]

    def buffered(self) -> dict[str, int]:
        """Return the number of buffered events of each stream."""
        gauges = self.advance(make_query_block([])).metrics["gauges"]
        return {it["stream"]: value for name, it, value in gauges if name == "buffered_events"}


def _with_names(block: Block) -> Block:
    """Return a block whose events are named by the letter of their stream, time and area."""
    parts = []
    for part in block.events:
        areas = part.columns[column_name("area")].to_list()  # type: ignore[union-attr]
        names = [
            part.stream[:1].encode() + str(time).encode() + (area or b"").strip(b'"')
            for time, area in zip(part.latest.tolist(), areas, strict=True)
        ]
        parts.append(replace(part, id=BytesColumn.from_list(names)))
    return replace(block, events=parts)
