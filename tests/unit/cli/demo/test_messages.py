"""Messages of the demo: complete, in order of time, with their words; spread over the flights."""

from __future__ import annotations

from itertools import pairwise

import orjson

from cli.demo.events import DemoEvent, interleave
from cli.demo.messages import Message, load_messages, message_events, split_words


def _event(name: str) -> DemoEvent:
    return DemoEvent("t", name, b"", b"", 0)


def test_messages_are_complete_and_in_order_of_time() -> None:
    messages = load_messages()
    assert len(messages) == 258_145
    assert len({it.id for it in messages}) == 258_145
    assert len({it.conversation for it in messages}) == 7_168
    assert all(one.time_us <= other.time_us for one, other in pairwise(messages))
    first = messages[0]
    assert first.text.startswith("What do you want ")
    assert first.time_us == 1_523_383_337 * 1_000_000
    assert load_messages(3) == messages[:3]


def test_words_of_a_message_are_a_set_in_lower_case() -> None:
    assert split_words("Don't KNOW, don't know! 42") == {"don", "t", "know", "42"}
    assert split_words("?!") == frozenset()


def test_records_have_the_number_of_words_and_whether_they_are_repeated() -> None:
    texts = ("Hello you", "you, hello!", "you", "Hello you")
    messages = [
        Message(f"c/{number}", "c", "s", text, number * 1_000_000)
        for number, text in enumerate(texts)
    ]
    events = message_events(messages)
    assert [(it.topic, it.id, it.key, it.latest_us) for it in events] == [
        ("messages", it.id, b"c", it.time_us) for it in messages
    ]
    records = [orjson.loads(it.value) for it in events]
    assert records[1] == {
        "message": "c/1",
        "conversation": "c",
        "sent": 1,
        "text": "you, hello!",
        "words": 2,
        "repeated": True,
    }
    assert [(it["words"], it["repeated"]) for it in records] == [
        (2, False),
        (2, True),
        (1, False),
        (2, True),
    ]


def test_parts_are_spread_evenly_in_their_order() -> None:
    few, many = [*map(_event, "ab")], [*map(_event, "12345")]
    assert "".join(it.id for it in interleave(many, few)) == "1a23b45"
    assert interleave([], few) == few
