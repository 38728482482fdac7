"""Which streams a run of the query reads, and how they are stored."""

from __future__ import annotations

from dataclasses import replace

import pytest

from correlation.errors import UnknownRecordVersionError
from correlation.histogram import Histogram
from correlation.mapping import EventMapping
from correlation.streams import Stream
from correlation.template import Template
from correlation.topics import Topics
from spark_jobs.streams_in_force import StreamsInForce, streams_in_force

TOPICS = Topics("p")
A = Stream("a", "events-a", longest_us=10, max_delay_us=5)
B = Stream(
    "b",
    "events-a",
    longest_us=60_000_000,
    max_delay_us=5,
    clock="replay",
    mapping=EventMapping("time", time_path=("when", "at"), after_us=60_000_000),
)


def test_streams_wait_for_their_topics_and_share_them() -> None:
    later = replace(A, name="later", topic="not-yet")
    found = streams_in_force({"b": B, "a": A, "later": later}, {"events-a": 3, "else": 1}, TOPICS)
    assert found == StreamsInForce({"a": A, "b": B}, {"a": 3, "b": 3})
    assert found.topics == {"events-a": 3}


@pytest.mark.parametrize("topic", [*TOPICS.all(), "__consumer_offsets"])
def test_topics_of_the_installation_and_of_kafka_are_no_event_topics(topic: str) -> None:
    stream = replace(A, topic=topic)
    assert streams_in_force({"a": stream}, {topic: 1}, TOPICS) == StreamsInForce({}, {})


def test_stored_streams_come_back_equal() -> None:
    found = StreamsInForce({"a": A, "b": B}, {"a": 3, "b": 3})
    assert StreamsInForce.from_bytes(found.to_bytes()) == found


def test_stored_streams_keep_the_versions_of_their_templates() -> None:
    halves = Template("t", Histogram.from_buckets([[0, 4, "0.5"], [4, 9, "0.5"]]), 2)
    shaped = replace(A, templates=(halves,), histograms=True)
    found = StreamsInForce({"a": shaped}, {"a": 3})
    assert StreamsInForce.from_bytes(found.to_bytes()) == found
    # A new version is another stream: the job restarts its query for it.
    newer = replace(shaped, templates=(replace(halves, version=3),))
    assert StreamsInForce({"a": newer}, {"a": 3}) != found


def test_streams_of_another_version_are_refused() -> None:
    with pytest.raises(UnknownRecordVersionError):
        StreamsInForce.from_bytes(b'{"v":2,"streams":{}}')
