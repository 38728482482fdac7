"""Tests of the pace at which a slot writes its metrics."""

from __future__ import annotations

import pytest

from spark_jobs.worker.metrics_pace import MetricsPace

NOW = 1_000_000_000


@pytest.mark.parametrize(
    ("size", "pause_us"),
    [
        (10, 0),
        (32_768, 0),
        (50_000, 500_000),
        (500_000, 5_000_000),
        (1_000_000, 10_000_000),
        (16_000_000, 10_000_000),
    ],
)
def test_record_is_due_after_a_pause_that_grows_with_its_size(size: int, pause_us: int) -> None:
    pace = MetricsPace()
    assert pace.is_due(7, NOW)
    pace.note_written(7, NOW, size)
    assert pace.is_due(7, NOW + pause_us)
    assert pace.is_due(7, NOW + max(pause_us - 1, 0)) == (pause_us == 0)


def test_record_is_due_at_once_after_a_registration_and_when_the_clock_was_set_back() -> None:
    pace = MetricsPace()
    pace.note_written(7, NOW, 10**6)
    assert not pace.is_due(7, NOW + 1)
    assert pace.is_due(8, NOW + 1)
    assert pace.is_due(7, NOW - 1)
