"""The records that a replay of topics rejected, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import orjson

from cli.client.set_aside import as_text, headers_of

if TYPE_CHECKING:
    from confluent_kafka import Message


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that was rejected.

    Parameters
    ----------
    stream, reason, detail
        For which stream it was read, and what is wrong with it.
    topic, partition, offset
        Where it stands.
    key, record
        Its key and value as text; bytes that are none are escaped.
    """

    stream: str
    reason: str
    detail: str
    topic: str
    partition: int
    offset: int
    key: str | None = field(default=None)
    record: str | None = field(default=None)

    @classmethod
    def from_message(cls, message: Message) -> DeadLetter:
        """Read a record of the dead letter topic.

        Parameters
        ----------
        message
            With the headers that say why it is there.
        """
        told = {name: text or "" for name, text in headers_of(message).items()}
        return cls(
            told.get("stream", ""),
            told["reason"],
            told["detail"],
            told["topic"],
            int(told.get("partition", 0)),
            int(told.get("offset", 0)),
            as_text(message.key()),
            as_text(message.value()),
        )

    @property
    def told(self) -> str:
        """Where it stands and what is wrong with it."""
        return f"{self.topic}-{self.partition}@{self.offset}: {self.detail}"

    def to_line(self) -> bytes:
        """Write it as a line of JSON."""
        return orjson.dumps(self)
