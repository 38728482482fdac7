"""The clock of heartbeats is never ahead of Kafka's, wherever the host's clock jumps."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.driver.heartbeat_clock import HeartbeatClock

HOUR_US = 3_600_000_000


@dataclass
class Host:
    """Clocks of a host, and Kafka's, which all run at the same speed."""

    now_us: int = 50 * HOUR_US
    elapsed_us: int = 7_000
    kafka_us: int = 50 * HOUR_US

    def __post_init__(self) -> None:
        self.clock = HeartbeatClock(lambda: self.now_us, lambda: self.elapsed_us * 1_000)

    def pass_time(self, us: int) -> None:
        self.now_us += us
        self.elapsed_us += us
        self.kafka_us += us

    def append(self, travel_us: int = 0) -> None:
        """Append a record, of which the acknowledgement takes a while."""
        appended_us = self.kafka_us
        self.pass_time(travel_us)
        self.clock.note_append(appended_us)


def test_clock_is_that_of_the_host_until_kafkas_is_known() -> None:
    host = Host(kafka_us=HOUR_US)
    assert host.clock() == host.now_us


def test_clock_that_jumps_forward_is_bounded_by_kafkas() -> None:
    host = Host()
    host.append(travel_us=300)
    host.pass_time(5_000_000)
    assert host.clock() == host.kafka_us - 300
    host.now_us += HOUR_US
    assert host.clock() == host.kafka_us - 300
    host.pass_time(2_000_000)
    assert host.clock() == host.kafka_us - 300


def test_fastest_acknowledgement_of_a_minute_counts() -> None:
    host = Host()
    host.append(travel_us=200)
    host.append(travel_us=900_000)
    assert host.clock() == host.kafka_us - 200
    host.append(travel_us=100)
    host.append(travel_us=400)
    assert host.clock() == host.kafka_us - 100
    host.pass_time(61_000_000)
    host.append(travel_us=700)
    assert host.clock() == host.kafka_us - 700


def test_clock_that_jumps_back_declares_less() -> None:
    host = Host()
    host.append()
    host.now_us -= HOUR_US
    assert host.clock() == host.kafka_us - HOUR_US


def test_clock_of_a_broker_ahead_of_the_host_does_not_count() -> None:
    host = Host()
    host.kafka_us += HOUR_US
    host.append()
    assert host.clock() == host.now_us


def test_clock_of_a_broker_that_was_set_back_counts_from_the_next_append() -> None:
    host = Host()
    host.append()
    host.kafka_us -= HOUR_US
    host.append()
    host.pass_time(1_000_000)
    assert host.clock() == host.kafka_us
