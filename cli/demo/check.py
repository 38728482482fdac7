"""Check of the demo: all events in one block through the reference algorithm; comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import orjson

from cli.errors import VerificationError
from correlation.engine.program import Block, Control, Program
from correlation.errors import RejectedEventError
from correlation.parsing.stream_reader import StreamReader
from correlation.resources.records import Resource, stream_from_document

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Mapping, Sequence

    from cli.demo.events import DemoEvent
    from cli.demo.judge import Grounded
    from correlation.buffers.columns import Int64s
    from correlation.buffers.events import Events
    from correlation.resources.streams import Stream

Document = dict[str, Any]
Found = TypeVar("Found", "Pair", "Grounded")
_SHOWN = 5


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
        Documents of streams and of timing conditions by name, as the service stores them.
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
            _events(stream, [event for event in sent if event.topic == stream.topic])
            for stream in declared.values()
        ],
    )
    outcome = program.advance(block, lambda: 0)
    return {
        pair_of(orjson.loads(record.value or b""))
        for result in outcome.results
        for record in result.records(0)
    }


def verify(found: Counter[Found], expected: set[Found], compared: str) -> None:
    """Compare reported pairs or results with the expected ones.

    Parameters
    ----------
    found
        Pairs or results, and how often each was reported.
    expected
        The expected ones.
    compared
        What is compared, for the error message: "the pairs differ from the reference".

    Raises
    ------
    VerificationError
        Pairs or results are missing, unexpected or repeated.
    """
    differences = {
        "missing": expected - set(found),
        "too many": set(found) - expected,
        "twice": {it for it, times in found.items() if times > 1},
    }
    said = [
        f"{len(different)} {what}, for instance {sorted(different)[:_SHOWN]}"
        for what, different in differences.items()
        if different
    ]
    if said:
        raise VerificationError(f"{compared}: " + "; ".join(said))


def _events(stream: Stream, sent: list[DemoEvent]) -> Events:
    """Parse the records of the stream's topic to its events, as the job does."""
    intake = StreamReader(stream).begin(0)
    for row, event in enumerate(sent):
        # The arrival time, here the event's latest time, has no effect on recorded data.
        intake.add(row, orjson.loads(event.value), event.value, event.key, event.latest_us)
    for _, problem in intake.settle(_positions):
        raise RejectedEventError(problem.reason, problem.detail)
    return intake.to_events(*_positions(intake.rows))


def _positions(rows: Sequence[int]) -> tuple[Int64s, Int64s]:
    """Return the offsets and Kafka timestamps of records."""
    return np.array(rows, np.int64), np.zeros(len(rows), np.int64)
