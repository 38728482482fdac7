"""Topics that are missing from a response of the broker."""

from __future__ import annotations

import pytest

from correlation.resources.streams import Stream
from kafka_client.topic_offsets import FoundTopic
from spark_jobs.driver.event_topics import GONE_SECONDS, EventTopics, check_topics
from spark_jobs.errors import MissingTopicError
from tests.support.messages import naming


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


WANTED = {"a", "b", "hidden"}


def is_deleted(topic: str) -> bool:
    return topic != "hidden"


def test_topic_stays_while_single_answers_leave_it_out() -> None:
    clock = Clock()
    topics = EventTopics({}, is_deleted, clock)
    both = {"a": FoundTopic(1), "b": FoundTopic(2)}
    assert topics.take(both, both) == both
    assert topics.is_certain
    for clock.seconds in (5.0, 14.9):
        assert topics.take({"b": FoundTopic(2)}, WANTED) == both
        assert not topics.is_certain
    assert topics.take({"a": FoundTopic(3), "b": FoundTopic(2)}, WANTED) == {
        "a": FoundTopic(3),
        "b": FoundTopic(2),
    }
    # Missing again: the time begins again.
    clock.seconds = 20.0
    assert topics.take({"b": FoundTopic(2)}, WANTED) == {"a": FoundTopic(3), "b": FoundTopic(2)}


def test_topic_that_stays_away_is_gone_and_may_come_back() -> None:
    clock = Clock()
    topics = EventTopics({}, is_deleted, clock)
    topics.take({"a": FoundTopic(4), "b": FoundTopic(2)}, WANTED)
    topics.take({"b": FoundTopic(2)}, WANTED)
    clock.seconds = GONE_SECONDS
    assert topics.take({"b": FoundTopic(2)}, WANTED) == {"b": FoundTopic(2)}
    assert topics.is_certain
    # It is another topic, with fewer partitions.
    assert topics.take({"a": FoundTopic(1), "b": FoundTopic(2)}, WANTED) == {
        "a": FoundTopic(1),
        "b": FoundTopic(2),
    }
    clock.seconds = GONE_SECONDS + 5
    assert topics.take({"b": FoundTopic(2)}, WANTED) == {"a": FoundTopic(1), "b": FoundTopic(2)}


def test_topic_known_from_an_earlier_run_is_not_gone_for_one_answer() -> None:
    topics = EventTopics({"a": FoundTopic(3)}, is_deleted, Clock())
    assert topics.take({"b": FoundTopic(1)}, WANTED) == {"a": FoundTopic(3), "b": FoundTopic(1)}


def test_topic_that_may_not_be_seen_is_not_gone() -> None:
    clock = Clock()
    topics = EventTopics({"hidden": FoundTopic(3)}, is_deleted, clock)
    topics.take({}, WANTED)
    clock.seconds = GONE_SECONDS
    assert topics.take({}, WANTED) == {"hidden": FoundTopic(3)}
    # Nothing is waited for any more.
    assert topics.is_certain


def test_older_answer_takes_no_partitions_away() -> None:
    topics = EventTopics({}, is_deleted, Clock())
    topics.take({"a": FoundTopic(4)}, WANTED)
    assert topics.take({"a": FoundTopic(2)}, WANTED) == {"a": FoundTopic(4)}


def test_topics_of_no_stream_are_nobodys_business() -> None:
    clock = Clock()
    asked: list[str] = []

    def ask(topic: str) -> bool:
        asked.append(topic)
        return True

    topics = EventTopics({"a": FoundTopic(1)}, ask, clock)
    assert topics.take({"a": FoundTopic(1), "other": FoundTopic(3)}, {"a"}) == {"a": FoundTopic(1)}
    clock.seconds = GONE_SECONDS
    assert topics.take({"a": FoundTopic(1)}, {"a"}) == {"a": FoundTopic(1)}
    # Nor is one whose stream is deleted, before its topic is.
    assert topics.take({"a": FoundTopic(1)}, {"b"}) == {}
    clock.seconds = 3 * GONE_SECONDS
    assert topics.take({}, {"b"}) == {}
    assert not asked


def test_topic_that_was_created_again_is_another() -> None:
    old, new = FoundTopic(4, "old"), FoundTopic(1, "new")
    topics = EventTopics({"a": old}, is_deleted, Clock())
    assert topics.take({"a": new}, WANTED) == {"a": new}
    # An answer that names the former id is an older one.
    assert topics.take({"a": old}, WANTED) == {"a": new}
    assert topics.take({"a": FoundTopic(2, "new")}, WANTED) == {"a": FoundTopic(2, "new")}


def test_id_is_adopted_and_kept_while_an_answer_has_none() -> None:
    topics = EventTopics({"a": FoundTopic(1)}, is_deleted, Clock())
    found = {"a": FoundTopic(1, "id")}
    assert topics.take(found, WANTED) == found
    assert topics.take({"a": FoundTopic(1)}, WANTED) == found
    assert topics.take({}, WANTED) == found


def test_job_that_ends_waits_for_no_topic() -> None:
    streams = {name: Stream(name, f"t{name}", 0, 0) for name in "ab"}
    check_topics(streams, {"ta", "tb", "more"})
    with pytest.raises(MissingTopicError, match=naming("missing", "tb of stream b")):
        check_topics(streams, {"ta"})
    with pytest.raises(MissingTopicError, match="no stream is registered"):
        check_topics({}, {"ta"})
