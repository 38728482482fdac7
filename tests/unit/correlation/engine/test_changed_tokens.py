"""Tokens of buffered events over restarts, and when the declaration of their stream changes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from correlation.buffers.columns import SetsColumn
from correlation.buffers.events import Events
from correlation.engine.program import Block, Control, Program
from correlation.engine.progress import Progress
from correlation.parsing.stream_reader import StreamReader
from correlation.resources.attributes import Attribute
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from correlation.resources.tokens import Tokens

CONDITION = Resource(
    "condition",
    "near",
    1,
    0,
    {"kind": "mutual_deadline", "a": "s", "b": "s", "window_us": 10_000, "threshold": "0.5"},
)
PLAIN = Stream("s", "s", 0, 10_000, clock="replay")
WORDS = replace(PLAIN, tokens=Tokens(("m",), "words"))
NGRAMS = replace(PLAIN, tokens=Tokens(("m",), "ngrams:2"))


class Slot:
    """A program that restarts after every block, perhaps with another declaration."""

    def __init__(self) -> None:
        self.blobs: dict[int, bytes] = {}
        self.manifest: dict[str, Any] | None = None
        self.first = 0

    def take(self, stream: Stream, messages: list[str | None]) -> dict[str, set[str] | None]:
        """Restart, advance by events with the messages, and return the buffered sets by id."""
        streams, partitions = {"s": stream}, {"s": 1}
        if self.manifest is None:
            program = Program(streams, partitions)
            controls = [Control(0, CONDITION.key, CONDITION.to_record())]
        else:
            stored = json.loads(json.dumps(self.manifest))
            program = Program.restore(stored, self.blobs.__getitem__, streams, partitions)
            controls = []
        program.advance(Block(controls, *self._read(stream, messages)), lambda: 0)
        snapshot = program.snapshot()
        self.manifest = dict(snapshot.manifest)
        self.blobs |= snapshot.added
        for number in snapshot.removed:
            del self.blobs[number]
        found: dict[str, set[str] | None] = {}
        for _, segment in program._buffers["s"].segments:  # noqa: SLF001 - the state
            column = segment.columns.get("tokens")
            sets: list[set[str] | None] = [None] * len(segment)
            if isinstance(column, SetsColumn):
                sets = [{token.decode() for token in it} for it in column.to_list()]
            names = [it.decode() for it in segment.id.to_list()]
            found |= dict(zip(names, sets, strict=True))
        return dict(sorted(found.items()))

    def _read(
        self, stream: Stream, messages: list[str | None]
    ) -> tuple[list[Events], list[Progress]]:
        taken = StreamReader(stream).begin(0)
        times = range(self.first, self.first + len(messages))
        self.first += len(messages)
        for row, (time, message) in enumerate(zip(times, messages, strict=True)):
            record = {"id": f"e{time}", "time": time, "m": message}
            taken.add(row, record, None, b"k", 0)
        offsets = np.array(times, np.int64)
        events = [taken.to_events(offsets, offsets)] if messages else []
        return events, [Progress("s", 0, self.first, max(times, default=None))]


def test_sets_survive_restarts() -> None:
    slot = Slot()
    assert slot.take(WORDS, ["disk full", None]) == {"e0": {"disk", "full"}, "e1": set()}
    assert slot.take(WORDS, []) == {"e0": {"disk", "full"}, "e1": set()}
    found = slot.take(WORDS, ["full stop"])
    assert found == {"e0": {"disk", "full"}, "e1": set(), "e2": {"full", "stop"}}
    # Another change of the stream leaves the sets.
    other = replace(WORDS, attributes=(Attribute("m", ("m",)),), max_delay_us=10_001)
    assert slot.take(other, []) == found


def test_sets_of_another_declaration_are_empty() -> None:
    slot = Slot()
    assert slot.take(WORDS, ["disk full"]) == {"e0": {"disk", "full"}}
    found = slot.take(NGRAMS, ["abc"])
    assert found in ({"e0": set(), "e1": {"ab", "bc"}}, {"e0": None, "e1": {"ab", "bc"}})
    # The first segment may be stored unchanged: its sets stay empty.
    for _ in range(3):
        assert slot.take(NGRAMS, []) == found
    # Also when the first declaration comes back.
    assert not any(slot.take(WORDS, []).values())
    assert slot.take(WORDS, ["x"])["e2"] == {"x"}
    assert slot.take(WORDS, [])["e2"] == {"x"}


def test_events_from_before_the_declaration_have_empty_sets() -> None:
    slot = Slot()
    assert slot.take(PLAIN, ["disk full"]) == {"e0": None}
    # The small segments are merged.
    assert slot.take(WORDS, ["full stop"]) == {"e0": set(), "e1": {"full", "stop"}}
    assert slot.take(WORDS, []) == {"e0": set(), "e1": {"full", "stop"}}


def test_a_stream_that_declares_tokens_no_longer_loses_them() -> None:
    slot = Slot()
    slot.take(WORDS, ["disk full"])
    assert slot.take(PLAIN, ["a"]) == {"e0": None, "e1": None}
    assert not any(slot.take(WORDS, []).values())


def test_a_large_segment_stays_without_sets_over_restarts() -> None:
    slot = Slot()
    many = ["disk"] * 100
    assert len(slot.take(WORDS, list(many))) == 100
    # A block that is far smaller than the segment is not merged with it.
    found = slot.take(NGRAMS, ["ab"])
    assert [name for name, it in found.items() if it] == ["e100"]
    found = slot.take(NGRAMS, ["cd"])
    assert [name for name, it in found.items() if it] == ["e100", "e101"]
    assert slot.take(NGRAMS, []) == found
