"""Channels and lists of kinds: names of topics, keys of lists, and records."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.errors import CorrelationError, UnknownChannelError
from correlation.kinds import KINDS, channels_of
from correlation.lists import Lists, ListUpdates, PresentList
from correlation.operators import encode_json, make_heading
from correlation.resources.topics import Channel, Topics
from correlation.result_format import ListName
from tests.support.messages import naming
from tests.support.workload import NearCondition

if TYPE_CHECKING:
    from correlation.operators import Condition

CHANGES = Channel("best", "Changes.")
PRESENT = Channel("best.current", "Lists.", compacted=True)
KIND = replace(
    KINDS["within"],
    name="best_of",
    channels=(CHANGES, PRESENT),
    lists=Lists(PRESENT, (), lambda _: (), str),
)
TOPICS = Topics("p", (CHANGES, PRESENT))


def condition() -> Condition:
    document = NearCondition("near", "a", "b", 5, "0.5").resource.document
    found: Any = KINDS["mutual_deadline"].build("near", 3, document)
    return replace(found, output_topic="own")  # type: ignore[no-any-return]


def test_channels_of_kinds_are_listed_once() -> None:
    assert channels_of([KIND, replace(KIND, name="other")]) == (CHANGES, PRESENT)


@pytest.mark.parametrize(
    ("channel", "problem"),
    [
        (Channel("alarms"), "another topic or channel"),
        (Channel("dead-letter"), "another topic or channel"),
        (Channel("state"), "another topic or channel"),
        (Channel("best"), "another topic or channel"),
        # Kafka's metrics do not distinguish the two names.
        (Channel("best_current"), "another topic or channel"),
        (Channel("a b"), "valid topic name"),
        (Channel("x" * 33), "33 characters; use at most 32"),
    ],
)
def test_channel_whose_topic_is_taken_is_refused(channel: Channel, problem: str) -> None:
    with pytest.raises(CorrelationError, match=naming(problem)):
        channels_of([KIND, replace(KIND, name="other", channels=(channel,), lists=None)])


@pytest.mark.parametrize("channels", [(), (CHANGES,), (Channel("best.current"),)])
def test_lists_without_a_compacted_channel_are_refused(channels: tuple[Channel, ...]) -> None:
    with pytest.raises(CorrelationError, match=naming("best_of", "compacted channel")):
        channels_of([replace(KIND, channels=channels)])


def test_topics_include_the_channels() -> None:
    assert set(TOPICS.all()) - set(TOPICS.common()) == {
        "p.audit",
        "p.best",
        "p.best.current",
    }
    assert {"p.best", "p.best.current"} < TOPICS.reserved()
    assert TOPICS.compacted_channels() == {"p.best.current"}
    assert TOPICS.channel_topic("alarms") == "p.alarms"
    assert TOPICS.channel_topic("best") == "p.best"
    with pytest.raises(UnknownChannelError, match=naming("channel 'worst'", "unknown")):
        TOPICS.channel_topic("worst")


def test_output_topic_of_a_condition_replaces_channels_that_are_not_compacted() -> None:
    changes, present = (make_heading(condition(), 0, "t", it) for it in (CHANGES, PRESENT))
    assert (changes.channel, changes.topic) == ("best", "own")
    assert (present.channel, present.topic) == ("best.current", None)


@given(st.from_regex(r"[a-z0-9][a-z0-9._-]{0,62}", fullmatch=True), st.none() | st.binary())
def test_key_of_a_list_names_condition_and_join_key(name: str, key: bytes | None) -> None:
    assert ListName.from_record_key(ListName(name, key).record_key()) == ListName(name, key)


def test_updates_are_whole_lists_and_tombstones() -> None:
    lists = [
        PresentList(None, 7, [{"id": "x"}]),
        PresentList(b"k/1", 8, []),
        PresentList(b"\xff", 9, None),
    ]
    found = ListUpdates(condition(), PRESENT, lists)
    records = list(found.records(50, encode_json))
    assert [it.key for it in records] == [b"near", b"near/k/1", b"near/\xff"]
    assert records[2].value is None
    common = {"v": 1, "kind": "mutual_deadline", "condition": "near", "version": 3}
    assert [json.loads(it.value or b"") for it in records[:2]] == [
        {**common, "as_of": 7, "detected_at": 50, "items": [{"id": "x"}]},
        {**common, "key": "k/1", "as_of": 8, "detected_at": 50, "items": []},
    ]
    assert found.ready_us().tolist() == [7, 8, 9]
    assert found.heading(50).channel == "best.current"
