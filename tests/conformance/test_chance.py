"""Simulated alarms of independent streams: the formula predicts the number of reported pairs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from correlation.buffers.events import Events
from correlation.condition_kind import Load
from correlation.engine.program import Block, Control, Program
from correlation.kinds import KINDS, condition_from_document
from correlation.resources.mapping import EventMapping
from correlation.resources.partitioning import Partitioning
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from correlation.resources.template import Template
from tests.support.poisson import draw_poisson
from tests.unit.correlation.timing.histogram_strategies import described

SECOND = 1_000_000
X = Stream("x", "x", max_uncertainty_us=SECOND, max_delay_us=0, clock="replay")
Y = Stream(
    "y",
    "y",
    max_uncertainty_us=3 * SECOND,
    max_delay_us=0,
    min_uncertainty_us=SECOND,
    clock="replay",
)
STAMPED = EventMapping("time", time_path=("t",), before_us=SECOND // 2, after_us=SECOND // 2)
# Once in 16,000 runs a right formula lies farther off; the seeds are fixed.
SIGMAS = 4
EARLY = described((-SECOND, -SECOND // 2, "0.8"), (-SECOND // 2, 0, "0.2"))
SPLIT = described(
    (-2 * SECOND, -SECOND, "0.5"), (-SECOND, -SECOND // 10, "0"), (-SECOND // 10, 0, "0.5")
)
WITH_HISTOGRAMS = replace(
    Y, min_uncertainty_us=0, templates=(Template("early", EARLY), Template("split", SPLIT))
)
# The widest s-windows of the cases below have at most this multiple of the mean width.
_WIDEST = 2


def _near(window_us: int, threshold: str, a: str = "x", b: str = "y") -> dict[str, Any]:
    kind = {"kind": "mutual_deadline", "window_us": window_us}
    return {**kind, "a": a, "b": b, "threshold": threshold}


def _within(lower_us: int, upper_us: int, threshold: str, b: str = "y") -> dict[str, Any]:
    ends = {"lower_us": lower_us, "upper_us": upper_us}
    return {"kind": "within", **ends, "a": "x", "b": b, "threshold": threshold}


def _count_alarms(document: dict[str, Any], parts: list[Events], streams: list[Stream]) -> int:
    program = Program({s.name: s for s in streams}, dict.fromkeys("xy", 1))
    record = Resource("condition", "c", 1, 0, document).to_record()
    control = Control(0, b"condition/c", record)
    found = program.advance(Block([control], parts), lambda: 0).metrics
    return int(sum(value for name, _, value in found["counters"] if name == "alarms_total"))


@pytest.mark.parametrize(
    ("document", "x", "y", "keys"),
    [
        (_near(2 * SECOND, "0.7"), X, Y, 50),
        (_near(2 * SECOND, "1"), X, Y, 50),
        (_near(2 * SECOND, "0.05"), X, Y, 80),
        # Narrower than the events are long: many lengths can never be near enough.
        (_near(SECOND, "0.8"), X, Y, 20),
        (_near(SECOND // 2, "0.5"), X, Y, 20),
        (_within(SECOND, 4 * SECOND, "0.6"), X, Y, 50),
        (
            {
                "kind": "deadline",
                "deadline_us": SECOND,
                "horizon_us": 3 * SECOND,
                "a": "x",
                "b": "y",
                "threshold": "0.9",
            },
            X,
            Y,
            70,
        ),
        (
            {
                "kind": "delay",
                "delay_us": SECOND,
                "horizon_us": 4 * SECOND,
                "a": "x",
                "b": "y",
                "threshold": "0.4",
            },
            X,
            Y,
            70,
        ),
        # All of one length, which is not what the stream declares.
        (_near(SECOND, "0.3"), replace(X, mapping=STAMPED), Y, 50),
        # Without keys all events meet.
        (
            _near(2 * SECOND, "0.7"),
            replace(X, partitioning=Partitioning("grid")),
            replace(Y, partitioning=Partitioning("grid")),
            1,
        ),
        # A stream with itself: either order is enough, both together are one alarm.
        (_near(2 * SECOND, "0.6", b="x"), X, Y, 50),
        (_within(SECOND, 3 * SECOND, "0.6", b="x"), X, Y, 50),
        (_within(-SECOND, 3 * SECOND, "0.6", b="x"), X, Y, 50),
        (_within(-3 * SECOND, SECOND // 2, "0.9", b="x"), X, Y, 50),
        # Templates, each as often as the other, against intervals and among themselves.
        (_near(2 * SECOND, "0.7"), X, WITH_HISTOGRAMS, 50),
        (_within(SECOND, 4 * SECOND, "0.6"), X, WITH_HISTOGRAMS, 50),
        # So narrow that the s-windows have gaps.
        (_near(SECOND // 2, "0.4"), replace(WITH_HISTOGRAMS, name="x"), WITH_HISTOGRAMS, 20),
        (_within(0, 3 * SECOND, "0.6", b="x"), replace(WITH_HISTOGRAMS, name="x"), Y, 50),
    ],
    ids=range(18),
)
def test_p_chance_alarms_are_as_many_as_the_formula_says(
    document: dict[str, Any], x: Stream, y: Stream, keys: int
) -> None:
    # Few events of a key in reach of each other: nearly every pair is a case of its own.
    load = Load({"x": 0.1 * keys, "y": 0.15 * keys}, keys)
    seconds = 8_000 * 50 // keys
    streams = {"x": x, "y": y}
    condition = condition_from_document("c", 1, document)
    derived = KINDS[condition.kind].derive(condition, streams, load)
    expected = derived["chance_alarms_per_hour"] * seconds / 3600
    rng = np.random.default_rng(2010)
    parts = [
        draw_poisson(streams[name], load.rates[name], seconds, rng, load.keys)
        for name in condition.streams
    ]
    found = _count_alarms(document, parts, [x, y])
    # Pairs that share an event come together: that adds the events in reach to the variance.
    rates = [load.rates[document[role]] / keys for role in "ab"]
    reach_seconds = _WIDEST * expected / (seconds * keys * math.prod(rates))
    sigma = math.sqrt(expected * (1 + sum(rates) * reach_seconds))
    assert expected > 1_000
    assert abs(found - expected) < SIGMAS * sigma
