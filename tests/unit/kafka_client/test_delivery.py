"""Waits for deliveries consist of short calls, so that Ctrl-C ends them."""

from __future__ import annotations

import time
from typing import Any

from kafka_client.delivery import flush


class Producer:
    """A producer with records that are delivered after a number of calls."""

    def __init__(self, calls: float) -> None:
        self._calls = calls
        self.asked: list[float] = []

    def flush(self, seconds: float) -> int:
        self.asked.append(seconds)
        time.sleep(seconds)
        return 3 if len(self.asked) < self._calls else 0


def test_flush_ends_when_all_records_are_delivered() -> None:
    producer: Any = Producer(3)
    assert flush(producer, 60) == 0
    assert len(producer.asked) == 3
    assert max(producer.asked) <= 0.1


def test_flush_returns_the_number_of_records_that_are_left() -> None:
    producer: Any = Producer(float("inf"))
    assert flush(producer, 0.3) == 3
    assert flush(producer, 0) == 3
