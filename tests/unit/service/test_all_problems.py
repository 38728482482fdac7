"""An answer names every problem of a document and of its request, not only the first."""

from __future__ import annotations

from typing import Any

import pytest

from correlation.errors import InvalidFieldError
from correlation.kinds import condition_from_document
from correlation.resources.records import stream_from_document

PAIR = {"kind": "within", "a": "x", "b": "y", "lower_us": 0, "upper_us": 5, "threshold": "0.7"}
STREAM = {"topic": "t", "max_uncertainty_us": 10, "max_delay_us": 0}
FAR_US = 2**60


def fields_of(error: InvalidFieldError) -> list[str]:
    return [problem.field for problem in error.problems]


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"upper_us": -5, "threshold": "1.2"}, ["upper", "threshold"]),
        ({"lower_us": -FAR_US, "upper_us": FAR_US}, ["lower", "upper"]),
        ({"a": "A", "b": "B", "emit": "all"}, ["a", "b", "emit"]),
        (
            {"output": "factored", "emit": "best", "algorithm": "simple", "b": "x"},
            ["emit", "algorithm", "output"],
        ),
        (
            {"block_size": 0, "emit": "best", "block_interval_us": -1},
            ["block_size", "block_size", "block_interval"],
        ),
        ({"output_topic": "no spaces", "threshold": None}, ["threshold", "output_topic"]),
        ({"kind": "delay", "delay_us": FAR_US, "horizon_us": -1}, ["horizon", "delay"]),
    ],
)
def test_condition_names_every_wrong_value(changes: dict[str, Any], fields: list[str]) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        condition_from_document("c", 1, PAIR | changes)
    assert fields_of(caught.value) == fields
    assert caught.value.field == fields[0]
    assert all(f"{problem}" in str(caught.value) for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        (
            {"topic": "no spaces", "max_delay_us": -1, "clock": "sun"},
            ["topic", "max_delay", "clock"],
        ),
        ({"min_uncertainty_us": 11, "clock": "sun"}, ["min_uncertainty", "clock"]),
        (
            {"mapping": {"time": "t", "latest": "l", "timezone": "Mars"}, "max_skew_us": -1},
            ["mapping.timezone", "mapping.latest", "max_skew"],
        ),
        (
            {"mapping": {"time": "t", "before_us": -1, "after_us": FAR_US, "format": "words"}},
            ["mapping.format", "mapping.before", "mapping.after"],
        ),
        (
            {"partitioning": {"by": "name"}, "mapping": {"template": "t"}, "max_delay_us": -1},
            ["partitioning.by", "mapping.detected", "max_delay"],
        ),
        ({"mapping": {"histogram": "h", "key": ""}}, ["mapping.key"]),
    ],
)
def test_stream_names_every_wrong_value(changes: dict[str, Any], fields: list[str]) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        stream_from_document("s", STREAM | changes)
    assert fields_of(caught.value) == fields
