"""Topics that are missing from an answer of the broker."""

from __future__ import annotations

from spark_jobs.event_topics import GONE_SECONDS, EventTopics


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def is_deleted(topic: str) -> bool:
    return topic != "hidden"


def test_topic_stays_while_single_answers_leave_it_out() -> None:
    clock = Clock()
    topics = EventTopics({}, is_deleted, clock)
    both = {"a": 1, "b": 2}
    assert topics.take(both) == both
    assert topics.is_certain
    for clock.seconds in (5.0, 14.9):
        assert topics.take({"b": 2}) == both
        assert not topics.is_certain
    assert topics.take({"a": 3, "b": 2}) == {"a": 3, "b": 2}
    # Missing again: the time begins anew.
    clock.seconds = 20.0
    assert topics.take({"b": 2}) == {"a": 3, "b": 2}


def test_topic_that_stays_away_is_gone_and_may_come_back() -> None:
    clock = Clock()
    topics = EventTopics({}, is_deleted, clock)
    topics.take({"a": 4, "b": 2})
    topics.take({"b": 2})
    clock.seconds = GONE_SECONDS
    assert topics.take({"b": 2}) == {"b": 2}
    assert topics.is_certain
    # It is another topic, with fewer partitions.
    assert topics.take({"a": 1, "b": 2}) == {"a": 1, "b": 2}
    clock.seconds = GONE_SECONDS + 5
    assert topics.take({"b": 2}) == {"a": 1, "b": 2}


def test_topic_known_from_an_earlier_run_is_not_gone_for_one_answer() -> None:
    topics = EventTopics({"a": 3}, is_deleted, Clock())
    assert topics.take({"b": 1}) == {"a": 3, "b": 1}


def test_topic_that_may_not_be_seen_is_not_gone() -> None:
    clock = Clock()
    topics = EventTopics({"hidden": 3}, is_deleted, clock)
    topics.take({})
    clock.seconds = GONE_SECONDS
    assert topics.take({}) == {"hidden": 3}
    # Nothing is waited for any more.
    assert topics.is_certain


def test_older_answer_takes_no_partitions_away() -> None:
    topics = EventTopics({}, is_deleted, Clock())
    topics.take({"a": 4})
    assert topics.take({"a": 2}) == {"a": 4}
