"""Messages of the demo: complete, in order of time."""

from __future__ import annotations

from itertools import pairwise

from cli.demo.messages import load_messages


def test_messages_are_complete_and_in_order_of_time() -> None:
    messages = load_messages()
    assert len(messages) == 258_145
    assert len({it.id for it in messages}) == 258_145
    assert len({it.conversation for it in messages}) == 7_168
    assert all(one.time_us <= other.time_us for one, other in pairwise(messages))
    first = messages[0]
    assert first.text == "What do you want to talk about?"
    assert first.time_us == 1_523_383_337 * 1_000_000
    assert load_messages(3) == messages[:3]
