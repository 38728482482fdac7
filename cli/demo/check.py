"""Check of the demo: all events in one block through the reference algorithm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson

from correlation.buffers.columns import BytesColumn
from correlation.buffers.events import Events
from correlation.engine.program import Block, Control, Program
from correlation.parsing.event_reader import compile_mapping
from correlation.resources.records import Resource, stream_from_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cli.demo.data import DemoEvent
    from correlation.resources.streams import Stream

Document = dict[str, Any]


class Pair(NamedTuple):
    """A pair of a condition: the ids of its events, sorted for a self-correlation."""

    condition: str
    a: str
    b: str


def pair_of(alarm: Mapping[str, Any]) -> Pair:
    """Return the pair of an alarm."""
    a, b = alarm["a"], alarm["b"]
    ids = (str(a["id"]), str(b["id"]))
    if a["stream"] == b["stream"]:
        ids = (min(ids), max(ids))
    return Pair(alarm["condition"], *ids)


def reference_pairs(
    streams: Mapping[str, Document], conditions: Mapping[str, Document], events: Iterable[DemoEvent]
) -> set[Pair]:
    """Return the pairs that the reference algorithm finds, without Kafka or Spark.

    Parameters
    ----------
    streams, conditions
        Documents by name, as the service stores them.
    events
        The events that were sent.
    """
    declared = {name: stream_from_document(name, found) for name, found in streams.items()}
    sent = list(events)
    program = Program(declared, dict.fromkeys(declared, 1))
    controls = []
    for offset, (name, document) in enumerate(conditions.items()):
        resource = Resource("condition", name, 1, 0, {**document, "algorithm": "simple"})
        controls.append(Control(offset, resource.key, resource.to_record()))
    block = Block(
        controls=controls,
        events=[
            _events(stream, [event for event in sent if event.stream == name])
            for name, stream in declared.items()
        ],
    )
    outcome = program.advance(block, lambda: 0)
    return {
        pair_of(orjson.loads(record.value or b""))
        for result in outcome.results
        for record in result.records(0)
    }


def _events(stream: Stream, sent: list[DemoEvent]) -> Events:
    """Parse the sent records to events, as the job does."""
    read = compile_mapping(stream)
    # The arrival time, here the event's latest time, has no effect on recorded data.
    mapped = [
        read(orjson.loads(event.value), event.value, event.key, event.latest_us) for event in sent
    ]
    count = len(mapped)
    return Events(
        stream=stream.name,
        key=BytesColumn.from_list([event.key for event in mapped]),
        id=BytesColumn.from_list([event.id or b"" for event in mapped]),
        earliest=np.array([event.earliest for event in mapped], np.int64),
        latest=np.array([event.latest for event in mapped], np.int64),
        partition=np.zeros(count, np.int32),
        offset=np.arange(count, dtype=np.int64),
        record_timestamp_us=np.zeros(count, np.int64),
    )
