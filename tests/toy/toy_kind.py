"""A kind of condition with one stream: events that last at least a given time.

If the stream declares tokens, a result also has those of the events that were buffered before.

The entry point in `toy_kind-1.dist-info` registers it, as for a kind of another package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from correlation.buffers.columns import Int64s, SetsColumn
from correlation.buffers.segment import Segment
from correlation.condition_kind import ConditionKind, Field, Load
from correlation.drawing import Line
from correlation.errors import InvalidFieldError
from correlation.explaining import GivenRecord, Step, read_given
from correlation.operators import (
    Encode,
    Evaluation,
    Heading,
    OutputRecord,
    View,
    encode_json,
    make_heading,
)
from correlation.reporting import ReplaySummary, ResultObjects, ShownRecord
from correlation.resources.streams import Stream
from correlation.resources.tokens import TOKENS_COLUMN
from correlation.warming import Algorithms, WarmUp

NAME = "long_event"


@dataclass(frozen=True, slots=True)
class LongEvents:
    """A registered condition of this kind."""

    name: str
    version: int
    stream: str
    min_length_us: int
    output_topic: str | None = None
    memory_us: int = 0
    kind: str = NAME

    @property
    def streams(self) -> tuple[str, ...]:
        """The one stream."""
        return (self.stream,)


@dataclass(frozen=True, slots=True)
class LongEventsFound:
    """Rows of a segment as results."""

    condition: LongEvents
    segment: Segment
    rows: Int64s
    # Tokens of the events buffered before, by id; None: the stream declares none.
    earlier: Mapping[str, list[str]] | None = None

    def heading(self, detected_at_us: int) -> Heading:
        """See `Result.heading`."""
        return make_heading(self.condition, detected_at_us, "coincide.long_event.v1")

    def ready_us(self) -> Int64s:
        """See `Result.ready_us`."""
        return self.segment.latest[self.rows]

    def records(
        self, detected_at_us: int | Int64s, encode: Encode = encode_json
    ) -> Iterator[OutputRecord]:
        """See `Result.records`."""
        earliest = self.segment.earliest[self.rows]
        lengths = self.segment.latest[self.rows] - earliest
        ids = self.segment.id.take(self.rows).to_list()
        moments = np.broadcast_to(detected_at_us, lengths.shape)
        columns = (ids, earliest.tolist(), lengths.tolist(), moments.tolist())
        for event_id, began, length, moment in zip(*columns, strict=True):
            result = {
                "kind": NAME,
                "condition": self.condition.name,
                "detected_at": moment,
                "id": event_id.decode(),
                "length_us": length,
                "began": began,
                **({} if self.earlier is None else {"earlier": self.earlier}),
            }
            yield OutputRecord(event_id, encode(result), event_id.decode())


def _tokens_by_id(segment: Segment) -> Iterator[tuple[str, list[str]]]:
    column = segment.columns.get(TOKENS_COLUMN)
    sets = column.to_list() if isinstance(column, SetsColumn) else [frozenset()] * len(segment)
    for event_id, tokens in zip(segment.id.to_list(), sets, strict=True):
        yield event_id.decode(), sorted(token.decode() for token in tokens)


class LongEventsOperator:
    """Compares the length of each fresh event; keeps events only if `memory` is not 0."""

    def __init__(self, condition: LongEvents, streams: Mapping[str, Stream]) -> None:
        self._condition = condition
        self._shows_tokens = streams[condition.stream].tokens is not None

    def begin(
        self, watermarks: Mapping[str, int], held_from: Mapping[str, int], before: bytes
    ) -> None:
        """See `Operator.begin`."""

    def evaluate(self, view: View) -> Evaluation:
        """See `Operator.evaluate`."""
        fresh = view.fresh.get(self._condition.stream)
        if fresh is None:
            return Evaluation()
        lengths = fresh.latest - fresh.earliest
        rows = np.flatnonzero(lengths >= self._condition.min_length_us)
        if not len(rows):
            return Evaluation()
        buffered = view.buffers[self._condition.stream].segments
        earlier = None
        if self._shows_tokens:
            earlier = {name: it for _, part in buffered for name, it in _tokens_by_id(part)}
        found = LongEventsFound(self._condition, fresh, rows, earlier)
        counts = [("long_events_total", {"condition": self._condition.name}, len(rows))]
        arrived = view.record_timestamp_us[self._condition.stream][rows]
        return Evaluation([found], len(rows), counts, found.ready_us(), arrived)

    def keep_values(self, watermarks: Mapping[str, int]) -> Mapping[str, int]:
        """See `Operator.keep_values`."""
        name, memory_us = self._condition.stream, self._condition.memory_us
        return {name: watermarks[name] - memory_us} if memory_us else {}

    def held(self) -> Mapping[str, tuple[int, ...]]:
        """See `Operator.held`."""
        return {}

    def needs_timestamps(self) -> bool:
        """See `Operator.needs_timestamps`."""
        return False

    def dump(self) -> bytes:
        """See `Operator.dump`."""
        return b""


class LongEventsReader(ResultObjects):
    """Reads the results; the console draws the event."""

    _COMMON = ResultObjects._COMMON | {"began"}  # noqa: SLF001 - of the base class

    def __init__(self) -> None:
        super().__init__(NAME)

    def show(self, record: Mapping[str, Any]) -> ShownRecord:
        """See `ResultReader.show`."""
        began = record["began"]
        times = {"earliest": began, "latest": began + record["length_us"]}
        event = {"stream": "doors", "id": record["id"], **times}
        return ShownRecord(self.describe(record), {"long": event})


def _build(name: str, version: int, values: Mapping[str, Any]) -> LongEvents:
    if values["min_length_us"] < 0:
        raise InvalidFieldError("min_length", "must not be negative", "use 0s or more")
    return LongEvents(
        name,
        version,
        values["stream"],
        values["min_length_us"],
        values["output_topic"],
        values.get("memory_us", 0),
    )


def _derive(condition: LongEvents, streams: Mapping[str, Stream], load: Load) -> dict[str, Any]:  # noqa: ARG001 - as all kinds
    return {"buffer_horizon_us": {condition.stream: 0}}


def _explain(
    condition: LongEvents, streams: Mapping[str, Stream], given: Mapping[str, GivenRecord]
) -> dict[str, Any]:
    event = read_given(streams[condition.stream], given["event"])
    found = event.event is not None and (
        event.event.latest - event.event.earliest >= condition.min_length_us
    )
    step = {"step": "threshold", "passed": found, "detail": None}
    return {
        "verdict": "satisfied" if found else "not_satisfied",
        "failed_step": None if found else "threshold",
        "explanation": "the event is long enough" if found else "the event is too short",
        "steps": [step],
        "event": event.describe(),
        "notes": [],
    }


def _draw(answer: Mapping[str, Any]) -> list[Line]:
    event = answer["event"]
    if event["latest"] is None:
        return []
    seconds = (event["latest"] - event["earliest"]) // 1_000_000
    return [
        Line("▇" * seconds),
        Line("▇ is 1s", "legend"),
        Line(f"{event['id']} is {seconds}s long", "sentence"),
    ]


def _warm_up(algorithms: Algorithms, shapes: str) -> WarmUp:  # noqa: ARG001 - as all kinds
    doors = Stream("doors", "doors", 10_000, 0, min_uncertainty_us=1_000)
    return WarmUp({"doors": doors}, [{"kind": NAME, "stream": "doors", "min_length_us": 1_000}])


KINDS = [
    ConditionKind(
        name=NAME,
        summary="Events that last at least a given time.",
        fields=(
            Field("stream", "stream", "The stream."),
            Field("min_length", "duration", "Minimum length of the event's interval."),
            Field("output_topic", "topic", "Topic of the results.", required=False),
            Field("memory", "duration", "Time to keep events.", required=False, default=0),
        ),
        build=_build,
        check=lambda _condition, _streams: None,
        operator=LongEventsOperator,
        derive=_derive,
        horizon_field=lambda _condition, _stream: "min_length",
        plan=lambda condition, _streams: {"compares": f"{condition.min_length_us} us"},
        roles=lambda condition: {"event": condition.stream},
        explain=_explain,
        open_reader=LongEventsReader,
        events_to_explain=lambda _condition, _streams, record: {"event": {"id": record["id"]}},
        draw_explanation=_draw,
        steps=(Step("threshold", "the event is too short", "length"),),
        example={"kind": NAME, "stream": "acoustic", "min_length": "1s"},
        warm_up=_warm_up,
        metrics={"long_events_total": "Events that are long enough."},
        replay_summary=ReplaySummary(
            "long_events",
            lambda count: {"counted": count("long_events_total")},
            {"counted by its operator": lambda facts: str(facts["counted"])},
        ),
    )
]
