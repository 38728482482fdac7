"""Heartbeats after a partition has been read to its end, and their times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from correlation.engine.heartbeats import Heartbeat
from correlation.resources.streams import Stream
from kafka_client.partition_offsets import Place
from spark_jobs.driver.heartbeats import Ticker

LIVE = Stream("live", "events", max_uncertainty_us=0, max_delay_us=0, max_skew_us=100)
P0, P1 = ("events", 0), ("events", 1)


@dataclass
class Kafka:
    """A broker that ends where the test says."""

    ends_at: dict[Place, int]
    begins_at: dict[Place, int] = field(default_factory=dict)
    marks_behind: dict[Place, int] = field(default_factory=dict)
    now_us: int = 0

    def clock(self) -> int:
        self.now_us += 1_000
        return self.now_us

    def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        return {place: self.ends_at[place] for place in places if place in self.ends_at}

    def begins(self, places: Iterable[Place]) -> dict[Place, int]:
        return {place: self.begins_at.get(place, 0) for place in places}

    def after_last_records(
        self, ends: Mapping[Place, int], begins: Mapping[Place, int]
    ) -> dict[Place, int]:
        return {
            place: 0 if begins[place] == end else end - self.marks_behind.get(place, 0)
            for place, end in ends.items()
        }

    def ticker(self, *streams: Stream) -> Ticker:
        named = {stream.name: stream for stream in streams or (LIVE,)}
        return Ticker(named, dict.fromkeys(named, 2), self, self.clock)


def beat(partition: int, read_up_to_us: int, offset: int | None) -> Heartbeat:
    return Heartbeat("live", partition, read_up_to_us, offset)


def test_partition_read_to_its_end_gives_a_heartbeat_of_the_time_before_it_was_asked() -> None:
    ticker = Kafka({P0: 5, P1: 0}).ticker()
    assert ticker.tick({P0: 5}).heartbeats == [beat(0, 900, 5), beat(1, 900, None)]
    assert ticker.tick({P0: 5}).heartbeats == [beat(0, 1_900, 5), beat(1, 1_900, None)]


def test_time_is_taken_before_the_ends_are_asked() -> None:
    """Records appended during the request are after the end offset and may have any later time."""

    class Slow(Kafka):
        def ends(self, places: Iterable[Place]) -> dict[Place, int]:
            self.now_us += 300
            return super().ends(places)

    ticker = Slow({P0: 5, P1: 0}).ticker()
    assert ticker.tick({P0: 5}).heartbeats == [beat(0, 900, 5), beat(1, 900, None)]


def test_partition_with_backlog_gives_none_until_what_was_there_is_read() -> None:
    kafka = Kafka({P0: 5, P1: 8})
    ticker = kafka.ticker()
    assert ticker.tick({P0: 4, P1: 8}).heartbeats == [beat(1, 900, 8)]
    kafka.ends_at[P0] = 9
    assert ticker.tick({P0: 4, P1: 8}).heartbeats == [beat(1, 1_900, 8)]
    # The end of the first tick is reached, that of the second is not: the first time counts.
    assert ticker.tick({P0: 7, P1: 8}).heartbeats == [beat(0, 900, 5), beat(1, 2_900, 8)]
    assert ticker.tick({P0: 9, P1: 8}).heartbeats == [beat(0, 3_900, 9), beat(1, 3_900, 8)]


def test_partition_under_steady_load_comes_true_again_and_again() -> None:
    kafka = Kafka({P0: 0, P1: 0})
    ticker = kafka.ticker()
    found = []
    for tick in range(1, 10):
        kafka.ends_at[P0] = 10 * tick
        found += [one for one in ticker.tick({P0: 10 * tick - 5}).heartbeats if one.partition == 0]
    assert [one.at_offset for one in found] == [10 * tick for tick in range(1, 9)]
    assert [one.read_up_to_us for one in found] == [1_000 * tick - 100 for tick in range(1, 9)]


def test_heartbeat_names_the_last_record_where_marks_of_transactions_follow_it() -> None:
    kafka = Kafka({P0: 5, P1: 0}, marks_behind={P0: 1})
    assert kafka.ticker().tick({P0: 5}).heartbeats[0] == beat(0, 900, 4)


def test_recorded_stream_gets_no_heartbeat_beside_a_live_one_on_the_same_topic() -> None:
    replay = replace(LIVE, name="replay", clock="replay")
    found = Kafka({P0: 5, P1: 0}).ticker(LIVE, replay).tick({P0: 5}).heartbeats
    assert {one.stream for one in found} == {"live"}


def test_two_live_streams_on_one_topic_both_get_theirs() -> None:
    other = replace(LIVE, name="other", max_skew_us=0)
    found = Kafka({P0: 5, P1: 0}).ticker(LIVE, other).tick({P0: 5}).heartbeats
    assert sorted(one[:3] for one in found) == [
        ("live", 0, 900),
        ("live", 1, 900),
        ("other", 0, 1_000),
        ("other", 1, 1_000),
    ]


def test_tick_and_ticker_tell_where_the_partitions_begin() -> None:
    ticker = Kafka({P0: 50, P1: 0}, begins_at={P0: 20}).ticker()
    assert ticker.begins() == {P0: 20, P1: 0}
    assert ticker.tick({}).begins == {P0: 20, P1: 0}
