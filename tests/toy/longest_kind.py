"""A kind of condition that maintains lists: the longest events of a window, for each key or all.

An event takes effect when the watermark has passed its `latest`. It is listed while it is not older
than the window, and is among the longest events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from correlation.buffers.buffer import StreamBuffer
from correlation.buffers.columns import Int64s
from correlation.buffers.segment import Segment
from correlation.condition_kind import ConditionKind, Field, Load
from correlation.engine.heartbeats import CLOSED
from correlation.errors import InvalidFieldError
from correlation.explaining import FindList, GivenRecord, read_given
from correlation.limits import UNKNOWN_WATERMARK
from correlation.lists import Lists, ListUpdates, PresentList, list_types
from correlation.operators import (
    Encode,
    Evaluation,
    Heading,
    OutputRecord,
    View,
    encode_json,
    make_heading,
    result_headers,
)
from correlation.reporting import Gauge
from correlation.resources.records import require
from correlation.resources.schemas import (
    COUNT,
    POSITIVE,
    STRING,
    TIME_US,
    RecordType,
    choice,
    constant,
    object_of,
)
from correlation.resources.streams import Stream
from correlation.resources.topics import Channel
from correlation.result_format import as_text

NAME = "longest_events"
CHANGES = Channel("longest", "Changes of the lists of the longest events.")
PRESENT = Channel("longest.current", "Lists of the longest events.", compacted=True)
CE_TYPE = "coincide.longest.v1"
MICRO = 1_000_000
# Place, from 1, and length of each listed event, by id; and the lists by key.
List = dict[str, tuple[int, int]]
AllLists = dict[bytes | None, List]


@dataclass(frozen=True, slots=True)
class LongestEvents:
    """A registered condition of this kind."""

    name: str
    version: int
    stream: str
    places: int
    window_us: int
    min_length_us: int
    skip: int
    per_key: bool
    output_topic: str | None = None
    kind: str = NAME

    @property
    def streams(self) -> tuple[str, ...]:
        """The one stream."""
        return (self.stream,)


@dataclass(frozen=True, slots=True)
class Change:
    """An event that entered or left a list, or moved in it."""

    key: bytes | None
    id: str
    change: str
    place: int
    length_us: int
    reason: str


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of the lists of a condition, as a result."""

    condition: LongestEvents
    as_of_us: int
    changes: Sequence[Change]

    def heading(self, detected_at_us: int) -> Heading:
        """See `Result.heading`."""
        return make_heading(self.condition, detected_at_us, CE_TYPE, CHANGES)

    def ready_us(self) -> Int64s:
        """See `Result.ready_us`."""
        return np.full(len(self.changes), self.as_of_us)

    def records(
        self, detected_at_us: int | Int64s, encode: Encode = encode_json
    ) -> Iterator[OutputRecord]:
        """See `Result.records`."""
        moments = np.broadcast_to(detected_at_us, len(self.changes)).tolist()
        for found, moment in zip(self.changes, moments, strict=True):
            record = {
                "v": 1,
                "kind": NAME,
                "condition": self.condition.name,
                "version": self.condition.version,
                "change": found.change,
                "place": found.place,
                "id": found.id,
                "length_us": found.length_us,
                "reason": found.reason,
                **({} if found.key is None else {"key": as_text(found.key)}),
                "detected_at": moment,
            }
            key = f"{self.condition.name}/{found.id}"
            yield OutputRecord(key.encode(), encode(record), f"{key}/{found.change}@{moment}")


class LongestEventsOperator:
    """Computes the lists again from the buffer in each block; keeps the events of the window."""

    def __init__(self, condition: LongestEvents, _streams: Mapping[str, Stream]) -> None:
        self._condition = condition
        # Time of the published lists; None: nothing is published.
        self._as_of: int | None = None
        # None after a restart, until the first block.
        self._published: AllLists | None = {}

    def begin(
        self,
        watermarks: Mapping[str, int],  # noqa: ARG002 - as all operators
        held_from: Mapping[str, int],  # noqa: ARG002 - as all operators
        before: bytes,
    ) -> None:
        """See `Operator.begin`."""
        if before:
            self._as_of, self._published = int(before), None

    def evaluate(self, view: View) -> Evaluation:
        """See `Operator.evaluate`."""
        condition, buffer = self._condition, view.buffers[self._condition.stream]
        if self._published is None and self._as_of is not None:
            self._published = lists_of(condition, segments_of(buffer), self._as_of)
        fresh = view.fresh.get(condition.stream)
        segments = [*segments_of(buffer), *([] if fresh is None else [fresh])]
        reached = max([buffer.max_latest, *(it.max_latest for it in segments)])
        watermark = view.watermarks[condition.stream]
        # Time does not pass in a stream that has ended.
        now = reached if watermark >= CLOSED else watermark - 1
        known = UNKNOWN_WATERMARK not in {watermark, reached}
        before, self._published = self._published or {}, {}
        first = self._as_of is None
        if known:
            self._published = lists_of(condition, segments, now)
        self._as_of = now if known else None
        reason = "condition" if first else "progress" if known else "reset"
        results = updates(condition, before, self._published, now, reason)
        changed = sum(len(it.changes) for it in results if isinstance(it, Changes))
        lengths = [length for it in self._published.values() for _, length in it.values()]
        gauges: dict[str, float] = {"longest_listed_events": len(lengths)}
        if lengths:
            gauges["longest_length_seconds"] = max(lengths) / MICRO
        counts = [("longest_changes_total", {"condition": condition.name}, changed)]
        ready_us = np.full(changed, now)
        return Evaluation(results, changed, counts, ready_us, gauges=gauges)

    def keep_values(
        self,
        watermarks: Mapping[str, int],  # noqa: ARG002 - as all operators
    ) -> Mapping[str, int]:
        """See `Operator.keep_values`."""
        # The published lists follow from the buffer after a restart.
        as_of = UNKNOWN_WATERMARK if self._as_of is None else self._as_of
        return {self._condition.stream: max(as_of - self._condition.window_us, UNKNOWN_WATERMARK)}

    def held(self) -> Mapping[str, tuple[int, ...]]:
        """See `Operator.held`."""
        return {}

    def needs_timestamps(self) -> bool:
        """See `Operator.needs_timestamps`."""
        return False

    def dump(self) -> bytes:
        """See `Operator.dump`: the time of the published lists."""
        return b"" if self._as_of is None else str(self._as_of).encode()


def segments_of(buffer: StreamBuffer) -> list[Segment]:
    """Return the segments of a buffer."""
    return [segment for _, segment in buffer.segments]


def lists_of(condition: LongestEvents, segments: Iterable[Segment], as_of_us: int) -> AllLists:
    """Return the lists at a time, without empty lists."""
    found: dict[bytes | None, list[tuple[int, str]]] = {}
    for segment in segments:
        lengths = segment.latest - segment.earliest
        in_window = (as_of_us - condition.window_us <= segment.latest) & (
            segment.latest <= as_of_us
        )
        rows = np.flatnonzero(in_window & (lengths >= condition.min_length_us))
        keys = segment.key_of_rows(rows).to_list() if condition.per_key else [None] * len(rows)
        ids = segment.id.take(rows).to_list()
        for key, name, length in zip(keys, ids, lengths[rows].tolist(), strict=True):
            found.setdefault(key, []).append((-length, as_text(name)))
    first, last = condition.skip, condition.skip + condition.places
    listed = {
        key: {
            name: (place, -length)
            for place, (length, name) in enumerate(sorted(events)[first:last], start=1)
        }
        for key, events in found.items()
    }
    return {key: it for key, it in listed.items() if it}


def updates(
    condition: LongestEvents, before: AllLists, after: AllLists, as_of_us: int, reason: str
) -> list[Changes | ListUpdates]:
    """Return the changes between lists, and the lists that changed; empty lists are withdrawn."""
    keys = sorted(before.keys() | after.keys(), key=lambda key: key or b"")
    changed = [key for key in keys if before.get(key) != after.get(key)]
    if not changed:
        return []
    changes = [
        it
        for key in changed
        for it in compare(key, before.get(key, {}), after.get(key, {}), reason)
    ]
    lists = [PresentList(key, as_of_us, items_of(after.get(key))) for key in changed]
    return [Changes(condition, as_of_us, changes), ListUpdates(condition, PRESENT, lists)]


def compare(key: bytes | None, before: List, after: List, reason: str) -> Iterator[Change]:
    """Yield the changes of one list."""
    for name, (place, length) in before.items():
        if name not in after:
            yield Change(key, name, "left", place, length, reason)
    for name, (place, length) in after.items():
        if name not in before:
            yield Change(key, name, "entered", place, length, reason)
        elif before[name][0] != place:
            yield Change(key, name, "moved", place, length, reason)


def items_of(found: List | None) -> list[dict[str, Any]] | None:
    """Return the items of a list as JSON-able dicts; None withdraws the list."""
    if found is None:
        return None
    return [
        {"place": place, "id": name, "length_us": length} for name, (place, length) in found.items()
    ]


def _withdraw(
    condition: LongestEvents, buffers: Mapping[str, StreamBuffer], state: bytes
) -> Evaluation:
    as_of_us = int(state)
    published = lists_of(condition, segments_of(buffers[condition.stream]), as_of_us)
    return Evaluation(updates(condition, published, {}, as_of_us, "condition"))


def _build(name: str, version: int, values: Mapping[str, Any]) -> LongestEvents:
    found = {
        it: require(values, it)
        for it in ("stream", "places", "window_us", "min_seconds", "skip", "per_key")
    }
    if found["window_us"] <= 0:
        raise InvalidFieldError("window", "must be greater than 0", 'write for example "1min"')
    min_length_us = int(Decimal(found.pop("min_seconds")) * MICRO)
    topic = require(values, "output_topic")
    return LongestEvents(name, version, **found, min_length_us=min_length_us, output_topic=topic)


def _check(condition: LongestEvents, streams: Mapping[str, Stream]) -> None:
    partitioning = streams[condition.stream].partitioning
    if condition.per_key and partitioning.by != "key":
        raise InvalidFieldError("per_key", "requires a stream partitioned by key", "use false")
    if not condition.per_key and (partitioning.by, partitioning.groups) != ("grid", 1):
        raise InvalidFieldError("per_key", "requires a grid with one group", "use true")


def _derive(
    condition: LongestEvents, _streams: Mapping[str, Stream], _load: Load
) -> dict[str, Any]:
    return {"buffer_horizon_us": {condition.stream: condition.window_us}}


def _explain(
    condition: LongestEvents,
    streams: Mapping[str, Stream],
    given: Mapping[str, GivenRecord],
    _find_list: FindList | None = None,
) -> dict[str, Any]:
    event = read_given(streams[condition.stream], given["event"])
    found = event.event is not None and (
        event.event.latest - event.event.earliest >= condition.min_length_us
    )
    return {
        "verdict": "satisfied" if found else "not_satisfied",
        "failed_step": None if found else "threshold",
        "explanation": "the event may be listed" if found else "the event is too short",
        "steps": [{"step": "threshold", "passed": found, "detail": None}],
        "event": event.describe(),
        "notes": [],
    }


_CHANGE = {
    "v": constant(1),
    "kind": constant(NAME),
    "condition": STRING,
    "version": POSITIVE,
    "change": choice(["entered", "left", "moved"]),
    "place": POSITIVE,
    "id": STRING,
    "length_us": COUNT,
    "reason": choice(["condition", "progress", "reset"]),
    "key": STRING,
    "detected_at": TIME_US,
}
KINDS = [
    ConditionKind(
        name=NAME,
        summary="The longest events of a window.",
        fields=(
            Field("stream", "stream", "The stream."),
            Field("places", "count", "Number of places of a list.", maximum=1000),
            Field("window", "duration", "Time for which an event is listed."),
            Field(
                "min_seconds",
                "decimal",
                "Min length of a listed event, in seconds.",
                required=False,
                default="0",
                minimum=0,
            ),
            Field(
                "skip",
                "count",
                "Number of the longest events that are left out.",
                required=False,
                default=0,
                minimum=0,
            ),
            Field("per_key", "flag", "Whether each key has a list.", required=False, default=True),
            Field("output_topic", "topic", "Topic of the changes.", required=False),
        ),
        build=_build,
        check=_check,
        operator=LongestEventsOperator,
        derive=_derive,
        horizon_field=lambda _condition, _stream: "window",
        plan=lambda condition, _streams: {"lists": f"{condition.places} events"},
        roles=lambda condition: {"event": condition.stream},
        explain=_explain,
        example={"kind": NAME, "stream": "acoustic", "places": 3, "window": "1min"},
        metrics={"longest_changes_total": "Changes of the lists."},
        gauges={
            "longest_listed_events": Gauge("Events in the lists."),
            "longest_length_seconds": Gauge("Length of the longest listed event.", "max"),
        },
        channels=(CHANGES, PRESENT),
        lists=Lists(
            PRESENT,
            ("place", "event", "seconds"),
            lambda item: (str(item["place"]), item["id"], f"{item['length_us'] / MICRO:g}"),
            lambda item: str(item["id"]),
        ),
        withdraw=_withdraw,
        records=(
            RecordType(
                "longest_change",
                "Change of the list of the longest events.",
                object_of(_CHANGE, ["key"]),
                "CONDITION/ID",
                result_headers(CE_TYPE),
                CHANGES.name,
            ),
            *list_types(
                NAME,
                PRESENT,
                object_of({"place": POSITIVE, "id": STRING, "length_us": COUNT}),
            ),
        ),
    )
]
