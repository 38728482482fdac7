"""Simulated A with and without a B by chance: the formula predicts the number of reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from correlation.condition_kind import Load
from correlation.engine.heartbeats import CLOSED, Heartbeat
from correlation.engine.program import Block, Program
from correlation.kinds import KINDS, condition_from_document
from correlation.resources.streams import Stream
from correlation.resources.template import Template
from tests.support.poisson import draw_poisson
from tests.support.slots import control_record
from tests.unit.correlation.timing.histogram_strategies import described

SECOND = 1_000_000
HOURS = 12
RATES = {"x": 0.7, "y": 1.1}
STREAMS = {
    "x": Stream("x", "x", max_uncertainty_us=SECOND, max_delay_us=0, clock="replay"),
    "y": Stream(
        "y",
        "y",
        max_uncertainty_us=3 * SECOND,
        max_delay_us=0,
        min_uncertainty_us=SECOND,
        clock="replay",
    ),
}
_TEMPLATES = (
    Template("early", described((-SECOND, -SECOND // 2, "0.8"), (-SECOND // 2, 0, "0.2"))),
    Template("long", described((-3 * SECOND, -SECOND, "0.5"), (-SECOND, 0, "0.5"))),
)
WITH_HISTOGRAMS = {
    name: replace(it, min_uncertainty_us=0, max_uncertainty_us=3 * SECOND, templates=_TEMPLATES)
    for name, it in STREAMS.items()
}
# The seed is fixed; about 30,000 events, of which neighbours share their B.
TOLERANCE = 0.05


def _within(lower: float, upper: float, threshold: str, b: str = "y") -> dict[str, Any]:
    ends = {"lower_us": int(lower * SECOND), "upper_us": int(upper * SECOND)}
    return {"kind": "within", "a": "x", "b": b, **ends, "threshold": threshold}


@pytest.mark.parametrize(
    ("document", "streams"),
    [
        (_within(-1, 1, "0.5"), STREAMS),
        (_within(0, 2, "0.45"), STREAMS),
        # Only short events are near enough for certain: most A have none, by their length.
        (_within(-0.9, 0.9, "0.75"), STREAMS),
        (_within(-1.5, 0.2, "0.7", b="x"), STREAMS),
        # Most A of one template have a B, most of the other none.
        (_within(-1, 1, "0.5"), WITH_HISTOGRAMS),
        (_within(-0.4, 0.4, "0.4"), WITH_HISTOGRAMS),
        (_within(-1.5, 0.2, "0.7", b="x"), WITH_HISTOGRAMS),
    ],
)
def test_p_alone_alarms_are_as_many_as_the_formula_says(
    document: dict[str, Any], streams: dict[str, Stream]
) -> None:
    rng = np.random.default_rng(1837)
    parts = [
        draw_poisson(stream, RATES[name], HOURS * 3600, rng) for name, stream in streams.items()
    ]
    documents = {emit: {**document, "emit": emit} for emit in ("best", "unmatched")}
    program = Program(streams, dict.fromkeys(streams, 1))
    controls = [control_record(n, name, it) for n, (name, it) in enumerate(documents.items())]
    closed = [Heartbeat(name, None, CLOSED, None) for name in streams]
    metrics = program.advance(Block(controls, parts, heartbeats=closed), lambda: 0).metrics
    for name, it in documents.items():
        condition = condition_from_document(name, 1, it)
        derived = KINDS[condition.kind].derive(condition, streams, Load(RATES))
        found = next(
            value
            for metric, labels, value in metrics["counters"]
            if metric == "alarms_total" and labels == {"condition": name}
        )
        expected = derived["chance_alarms_per_hour"] * HOURS
        assert expected > 500
        assert found == pytest.approx(expected, rel=TOLERANCE)
