"""Real texts of the demo: 258,145 chat messages of 2018 (MIT licence), in the order of their times.

Students at Brigham Young University talked to each other in pairs, in 7,168 conversations, for the
Chit-Chat Challenge of its Perception, Control and Cognition Lab (Myers, Etchart & Fulda,
"Conversational Scaffolding", 2020). Messages are short and often repeated: greetings, "yeah",
"what about you". Times are in whole seconds (UTC).
"""

from __future__ import annotations

from datetime import datetime
from importlib.resources import files
from typing import NamedTuple

import orjson


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
                    second * 1_000_000,
                )
            )
    messages.sort(key=lambda it: it.time_us)
    return messages[:limit]
