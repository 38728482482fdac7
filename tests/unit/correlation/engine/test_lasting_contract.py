"""Observed limits and advice for streams of events that last."""

from __future__ import annotations

import json

import numpy as np
import pytest

from correlation.buffers.buffer import StreamBuffer
from correlation.buffers.events import Events
from correlation.buffers.segment import Segment
from correlation.engine.advice import advise
from correlation.engine.contract import ContractFacts
from correlation.engine.widening import widen
from correlation.resources.mapping import EventMapping
from correlation.resources.streams import Stream

LASTING = EventMapping("lasting", begin_path=("b",), end_path=("e",))
SECOND = 1_000_000


def stream(low: int | None, high: int | None) -> Stream:
    lengths = {"min_length_us": low, "max_length_us": high}
    return Stream("s", "s", 0, 0, mapping=LASTING, clock="replay", **lengths)  # type: ignore[arg-type]


def facts(declared: Stream, *lengths_us: int) -> ContractFacts:
    found = ContractFacts.of_events(declared, np.array(lengths_us, np.int64), None, 0)
    restored = ContractFacts.from_record(json.loads(json.dumps(found.to_record())))
    assert restored == found
    return restored


@pytest.mark.parametrize(
    ("low", "high", "ratios"),
    [
        (None, None, {}),
        (10, None, {"min_length": 0.5}),
        (None, 100, {"max_length": 0.25}),
        (10, 100, {"min_length": 0.5, "max_length": 0.25}),
    ],
)
def test_only_declared_limits_are_compared(
    low: int | None, high: int | None, ratios: dict[str, float]
) -> None:
    assert facts(stream(low, high), 10, 11, 50, 95).near_ratios() == ratios


@pytest.mark.parametrize(
    ("declared", "lengths", "rejected", "parts"),
    [
        (stream(None, None), [SECOND] * 2_000, {}, []),
        (stream(None, 10 * SECOND), [5 * SECOND, 9_500_000], {}, ["raise max_length"]),
        (stream(None, 10 * SECOND), [SECOND] * 2_000, {}, ["lower max_length"]),
        (stream(SECOND, 4 * SECOND), [SECOND, 2 * SECOND], {}, ["lower min_length"]),
        (
            stream(SECOND, 4 * SECOND),
            [3 * SECOND],
            {"longer_than_declared": 2, "shorter_than_declared": 1, "bad_attribute": 3},
            ["raise max_length", "lower min_length", "correct attributes"],
        ),
    ],
)
def test_advice_names_the_limits_of_lengths(
    declared: Stream, lengths: list[int], rejected: dict[str, int], parts: list[str]
) -> None:
    found = facts(declared, *lengths)
    seen = ContractFacts(
        found.declared, found.events, 0, rejected, found.near, found.lengths, found.delays
    )
    advice = advise(declared, seen)
    assert len(advice) == len(parts)
    assert all(part in sentence for part, sentence in zip(parts, advice, strict=True))
    assert not any("uncertainty" in sentence for sentence in advice)


def test_limits_are_widened_to_buffered_events() -> None:
    rows = [(b"k", b"e", begin, end, 0, 0, 0) for begin, end in ((0, 3), (0, 70))]
    segment, _ = Segment.from_events(Events.from_rows("s", rows), np.zeros(2, np.bool_))
    buffer = StreamBuffer([(0, segment)])
    for declared, limits in (
        (stream(10, 50), (3, 70)),
        (stream(None, 90), (0, 90)),
        (stream(2, None), (2, None)),
    ):
        held = widen(declared, buffer)
        assert (held.min_length_us, held.max_length_us) == limits
        assert (held.lasts, held.max_uncertainty_us) == (True, 0)
