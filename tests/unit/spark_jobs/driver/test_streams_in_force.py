"""The streams that a run of the query reads, and their stored form."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from correlation.errors import UnknownRecordVersionError
from correlation.resources.histogram import Histogram
from correlation.resources.mapping import EventMapping
from correlation.resources.streams import Stream
from correlation.resources.template import Template
from correlation.resources.topics import Topics
from kafka_client.topic_offsets import FoundTopic
from spark_jobs.driver.streams_in_force import StreamsInForce, streams_in_force

TOPICS = Topics("p")
A = Stream("a", "events-a", max_uncertainty_us=10, max_delay_us=5)
B = Stream(
    "b",
    "events-a",
    max_uncertainty_us=60_000_000,
    max_delay_us=5,
    clock="replay",
    mapping=EventMapping("time", time_path=("when", "at"), after_us=60_000_000),
)


def test_streams_wait_for_their_topics_and_share_them() -> None:
    later = replace(A, name="later", topic="not-yet")
    topics = {"events-a": FoundTopic(3, "id-a"), "else": FoundTopic(1, "id-e")}
    found = streams_in_force({"b": B, "a": A, "later": later}, topics, TOPICS)
    ids = {"a": "id-a", "b": "id-a"}
    assert found == StreamsInForce({"a": A, "b": B}, {"a": 3, "b": 3}, ids)
    assert found.topics == {"events-a": FoundTopic(3, "id-a")}
    assert found.places == {("events-a", number) for number in range(3)}


@pytest.mark.parametrize("topic", [*TOPICS.all(), "__consumer_offsets"])
def test_topics_of_the_installation_and_of_kafka_are_no_event_topics(topic: str) -> None:
    stream = replace(A, topic=topic)
    assert streams_in_force({"a": stream}, {topic: FoundTopic(1)}, TOPICS) == StreamsInForce({}, {})


@pytest.mark.parametrize("ids", [{}, {"b": "id-b"}, {"a": "id-a", "b": "id-b"}])
def test_stored_streams_come_back_equal(ids: dict[str, str]) -> None:
    found = StreamsInForce({"a": A, "b": B}, {"a": 3, "b": 3}, ids)
    assert StreamsInForce.from_bytes(found.to_bytes()) == found
    assert set(found.without({"events-a"}).topic_ids) == set()


def test_streams_of_the_first_version_come_back_without_ids() -> None:
    found = StreamsInForce({"a": A}, {"a": 3}, {"a": "id-a"})
    document = json.loads(found.to_bytes())
    document["v"] = 1
    document["streams"]["a"].pop()
    before = StreamsInForce.from_bytes(json.dumps(document).encode())
    assert before == StreamsInForce({"a": A}, {"a": 3})
    # An id that is not known yet is adopted.
    assert before.recreated({"events-a": FoundTopic(3, "id-a")}) == {}


def test_topic_with_another_id_is_recreated() -> None:
    other = replace(A, name="other", topic="events-o")
    streams = {"a": A, "b": B, "other": other}
    ids = dict.fromkeys("ab", "old") | {"other": "o"}
    found = StreamsInForce(streams, dict.fromkeys(streams, 1), ids)
    same = {"events-a": FoundTopic(1, "old"), "events-o": FoundTopic(2, "o")}
    assert found.recreated(same) == {}
    assert found.recreated({"events-a": FoundTopic(1, None)}) == {}
    assert found.recreated(same | {"events-a": FoundTopic(1, "new")}) == {
        "events-a": ("old", "new")
    }


def test_stored_streams_keep_the_versions_of_their_templates() -> None:
    halves = Template("t", Histogram.from_buckets([[0, 4, "0.5"], [4, 9, "0.5"]]), 2)
    with_histograms = replace(A, templates=(halves,), histograms=True)
    found = StreamsInForce({"a": with_histograms}, {"a": 3})
    assert StreamsInForce.from_bytes(found.to_bytes()) == found
    # A new version is another stream: the job restarts its query for it.
    newer = replace(with_histograms, templates=(replace(halves, version=3),))
    assert StreamsInForce({"a": newer}, {"a": 3}) != found


def test_run_that_evaluates_all_events_is_marked() -> None:
    found = StreamsInForce({"a": A, "b": B}, {"a": 3, "b": 3})
    marked = replace(found, is_flushing=True)
    stored = StreamsInForce.from_bytes(marked.to_bytes())
    assert stored == marked != found
    assert stored.without({"else"}).is_flushing
    # Earlier versions read the file of any other run, but must not repeat the batch of this one.
    assert [json.loads(it.to_bytes())["v"] for it in (found, marked)] == [2, 3]


def test_streams_of_another_version_are_refused() -> None:
    with pytest.raises(UnknownRecordVersionError):
        StreamsInForce.from_bytes(b'{"v":4,"streams":{}}')
