"""Choices of `auto`, and their description in /plan and in the metrics."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from correlation.buffers.buffer import StreamBuffer
from correlation.buffers.events import Events
from correlation.buffers.segment import Segment
from correlation.errors import InvalidFieldError
from correlation.operators import View
from correlation.resources.streams import Stream
from correlation.timing.conditions import (
    ALGORITHM_CHOICES,
    DEFAULT_ALGORITHM,
    TimingCondition,
    build_condition,
)
from correlation.timing.intervals.choosing import AUTO, choose_algorithm, choose_by_events
from correlation.timing.intervals.pairs import Side
from correlation.timing.intervals.window import TimingWindow
from correlation.timing.kinds import TIMING_KINDS
from correlation.timing.operator import TimingOperator
from correlation.timing.plan import plan_condition
from tests.unit.correlation.timing.sides import one_group, random_side, side

WIDE = TimingWindow(-1000, 1000, None, None, Fraction(7, 10))
NARROW = TimingWindow(-60, 60, None, None, Fraction(1, 2))


def condition(algorithm: str | None, window_us: int = 1000) -> TimingCondition:
    values = {"a": "x", "b": "y", "window_us": window_us, "threshold": "0.7"}
    if algorithm is not None:
        values["algorithm"] = algorithm
    return build_condition("mutual_deadline", "near", 1, values)


def streams(shortest: int, longest: int) -> dict[str, Stream]:
    return {name: Stream(name, name, longest, 1000, shortest) for name in "xy"}


def choose(base: Side, target: Side, window: TimingWindow) -> str:
    lengths = target.latest - target.earliest
    found = (int(lengths.min()), int(lengths.max()))
    return choose_by_events(base, target, one_group(base, target), window, found)


def test_choices_are_auto_and_every_algorithm() -> None:
    assert ALGORITHM_CHOICES == (
        "auto",
        "simple",
        "ssort",
        "eager",
        "lazy",
        "lazy_lookup",
        "indexed",
    )
    assert condition(None).algorithm == DEFAULT_ALGORITHM == "lazy_lookup"
    for kind in TIMING_KINDS:
        (field,) = (it for it in kind.fields if it.name == "algorithm")
        assert (field.choices, field.default) == (ALGORITHM_CHOICES, "lazy_lookup")
    with pytest.raises(InvalidFieldError, match="auto, simple, ssort"):
        condition("lazy-lookup")


@pytest.mark.parametrize("asked", ALGORITHM_CHOICES[1:])
def test_asked_for_algorithm_is_taken_and_explained(asked: str) -> None:
    plan = plan_condition(condition(asked), streams(100, 100))
    assert plan["algorithm"] == asked
    assert plan["why"].startswith("the default" if asked == DEFAULT_ALGORITHM else "requested")


@pytest.mark.parametrize(
    ("lengths", "window_us", "chosen", "reason"),
    [
        # A window of 2000 is as wide as both lengths together.
        ((1000, 1000), 1000, "lazy_lookup", "same declared length"),
        ((1001, 1001), 1000, "indexed", "narrower"),
        ((0, 0), 0, "lazy_lookup", "same declared length"),
        ((999, 1000), 1000, AUTO, "several lengths"),
    ],
)
def test_auto_goes_by_what_streams_declare(
    lengths: tuple[int, int], window_us: int, chosen: str, reason: str
) -> None:
    plan = plan_condition(condition(AUTO, window_us), streams(*lengths))
    assert plan["algorithm"] == chosen
    assert plan["why"].startswith("auto: ")
    assert reason in plan["why"]
    window = condition(AUTO, window_us).window
    assert choose_algorithm(AUTO, window, lengths, lengths).algorithm == chosen


def test_auto_takes_indexed_where_few_lengths_meet_many_probes() -> None:
    rng = np.random.default_rng(1)
    base, target = (random_side(rng, 4000, 10_000, [80, 120, 200]) for _ in range(2))
    assert choose(base, target, NARROW) == "indexed"
    # Some twenty probes an event: fewer than three lengths cost.
    assert choose(base, target, WIDE) == "lazy_lookup"
    base, target = (random_side(rng, 16_000, 10_000, [80, 120, 200]) for _ in range(2))
    assert choose(base, target, WIDE) == "indexed"


def test_auto_takes_lazy_lookup_where_lengths_are_many() -> None:
    rng = np.random.default_rng(2)
    base, target = (random_side(rng, 2000, 10_000) for _ in range(2))
    assert choose(base, target, NARROW) == "lazy_lookup"
    # The base events' own lengths may be many.
    assert choose(base, random_side(rng, 2000, 10_000, [120]), NARROW) == "indexed"


def test_auto_takes_lazy_lookup_where_nothing_is_probed() -> None:
    rng = np.random.default_rng(3)
    base, target = (random_side(rng, 50, 1_000_000, [80, 120]) for _ in range(2))
    assert choose(base, target, NARROW) == "lazy_lookup"
    base, target = (random_side(rng, 2000, 10_000, [100]) for _ in range(2))
    assert choose(base, target, WIDE) == "lazy_lookup"
    groups = np.zeros((0, 4), np.int64)
    assert choose_by_events(side((0, 1)), side((0, 1)), groups, WIDE, (1, 1)) == "lazy_lookup"


def test_auto_looks_at_lengths_key_by_key() -> None:
    """Every key a length of its own: many in all, one where events meet."""
    latest = np.tile(np.sort(np.random.default_rng(4).integers(0, 1000, 100)), 50)
    events = Side(latest - np.repeat(np.arange(100, 150), 100), latest)
    begin = np.arange(50) * 100
    groups = np.column_stack([begin, begin + 100, begin, begin + 100])
    assert choose_by_events(events, events, groups, NARROW, (100, 149)) == "indexed"


@pytest.mark.parametrize("lengths", [[80, 120, 200], None])
@pytest.mark.parametrize("algorithm", [AUTO, "ssort"])
def test_operator_counts_searches_by_algorithm(algorithm: str, lengths: list[int] | None) -> None:
    rng = np.random.default_rng(5)
    segments = []
    for name in "xy":
        drawn = random_side(rng, 1000, 1000, lengths)
        rows = [
            (b"k", b"%d" % i, earliest, latest, 0, i, latest)
            for i, (earliest, latest) in enumerate(zip(*drawn, strict=True))
        ]
        events = Events.from_rows(name, rows)
        segments.append(Segment.from_events(events, np.zeros(len(rows), np.bool_))[0])
    fresh = dict(zip("xy", segments, strict=True))
    view = View(
        fresh=fresh,
        record_timestamp_us=dict.fromkeys("xy", np.zeros(1000, np.int64)),
        buffers={"x": StreamBuffer(), "y": StreamBuffer()},
        watermarks=dict.fromkeys("xy", -10_000),
    )
    operator = TimingOperator(condition(algorithm, 60), streams(20, 200))
    counts = operator.evaluate(view).counts
    chosen = algorithm if algorithm != AUTO else "indexed" if lengths else "lazy_lookup"
    searched = [entry[1:] for entry in counts if entry[0] == "searches_total"]
    assert searched == [({"condition": "near", "algorithm": chosen}, 1)]
