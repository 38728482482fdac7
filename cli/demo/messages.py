"""Real texts of the demo: 258,145 chat messages of 2018 (MIT licence), in the order of their times.

Students at Brigham Young University talked to each other in pairs, in 7,168 conversations, for the
Chit-Chat Challenge of its Perception, Control and Cognition Lab (Myers, Etchart & Fulda,
"Conversational Scaffolding", 2020). Messages are short and often repeated: greetings, "yeah",
"what about you". Times are in whole seconds (UTC).
"""

from __future__ import annotations

import re
from datetime import datetime
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

import orjson

from cli.demo.events import DemoEvent

if TYPE_CHECKING:
    from collections.abc import Iterable

_SECOND_US = 1_000_000
_WORD = re.compile(r"\w+")


class Message(NamedTuple):
    """A message: its id, conversation, sender, text, and time in µs."""

    id: str
    conversation: str
    sender: str
    text: str
    time_us: int


def load_messages(limit: int | None = None) -> list[Message]:
    """Return the messages by time; those of one second in the order of their conversation.

    Parameters
    ----------
    limit : int or None
        Number of messages; None: all.
    """
    # Imported here: the package is an optional dependency.
    import chitchat_dataset  # noqa: PLC0415

    path = files(chitchat_dataset) / "dataset.json"
    messages = []
    for conversation, content in orjson.loads(path.read_bytes()).items():
        turns = [message for turn in content["messages"] for message in turn]
        for number, it in enumerate(turns):
            second = int(datetime.fromisoformat(it["timestamp"]).timestamp())
            messages.append(
                Message(
                    f"{conversation}/{number}",
                    conversation,
                    it["sender"],
                    it["text"],
                    second * _SECOND_US,
                )
            )
    messages.sort(key=lambda it: it.time_us)
    return messages[:limit]


def split_words(text: str) -> frozenset[str]:
    """Return the words of a message in lower case."""
    return frozenset(_WORD.findall(text.casefold()))


def message_events(messages: Iterable[Message]) -> list[DemoEvent]:
    """Return messages as events.

    A record contains the number of different words of the message, and whether an earlier message
    has the same words.

    Parameters
    ----------
    messages
        Messages by time.
    """
    seen: set[frozenset[str]] = set()
    events = []
    for message in messages:
        words = split_words(message.text)
        record = {
            "message": message.id,
            "conversation": message.conversation,
            "sent": message.time_us // _SECOND_US,
            "text": message.text,
            "words": len(words),
            "repeated": words in seen,
        }
        seen.add(words)
        key, value = message.conversation.encode(), orjson.dumps(record)
        events.append(DemoEvent("messages", message.id, key, value, message.time_us))
    return events
