"""Topics that are missing from an answer of the broker."""

from __future__ import annotations

from spark_jobs.event_topics import EventTopics


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_topic_stays_while_single_answers_leave_it_out() -> None:
    clock = Clock()
    topics = EventTopics(clock)
    both = {"a": 1, "b": 2}
    assert topics.take(both) == both
    for clock.seconds in (5.0, 14.9):
        assert topics.take({"b": 2}) == both
    assert topics.take({"a": 3, "b": 2}) == {"a": 3, "b": 2}
    # Missing again: the time begins anew.
    clock.seconds = 20.0
    assert topics.take({"b": 2}) == {"a": 3, "b": 2}


def test_topic_that_stays_away_is_gone_and_may_come_back() -> None:
    clock = Clock()
    topics = EventTopics(clock)
    topics.take({"a": 1, "b": 2})
    topics.take({"b": 2})
    clock.seconds = 10.0
    assert topics.take({"b": 2}) == {"b": 2}
    assert topics.take({"a": 4, "b": 2}) == {"a": 4, "b": 2}
    clock.seconds = 15.0
    assert topics.take({"b": 2}) == {"a": 4, "b": 2}
