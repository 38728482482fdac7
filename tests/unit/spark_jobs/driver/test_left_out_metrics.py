"""A batch follows the last one, in which all slots write their metrics."""

from __future__ import annotations

import pytest

from spark_jobs.driver.left_out_metrics import LeftOutMetrics
from spark_jobs.worker.metrics_pace import MetricsPace


class Clock:
    """A clock that the test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_one_batch_follows_when_the_pause_of_every_slot_has_ended(clock: Clock) -> None:
    metrics = LeftOutMetrics(clock)
    assert not metrics.needs_batch()
    metrics.complete(250)
    assert not metrics.needs_batch()
    pace = MetricsPace()
    pace.note_written(1, int(clock.now * 1_000_000), 10**9)
    clock.now += 11
    assert pace.is_due(1, int(clock.now * 1_000_000))
    assert metrics.needs_batch()
    assert not metrics.needs_batch()
    metrics.complete(1)
    clock.now += 3_600
    assert not metrics.needs_batch()


def test_batch_with_other_records_is_followed_by_another(clock: Clock) -> None:
    metrics = LeftOutMetrics(clock)
    for records in (1, 2, 250):
        metrics.complete(records)
        clock.now += 11
        assert metrics.needs_batch()
    # Nothing was read yet: it is asked for again.
    clock.now += 11
    assert metrics.needs_batch()
    metrics.complete(1)
    clock.now += 11
    assert not metrics.needs_batch()
