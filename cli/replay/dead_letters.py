"""Records that a replay of topics rejected, with the reason."""

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
        Stream for which the record was read, and reason of the rejection.
    topic, partition, offset
        Position of the record.
    key, record
        Key and value of the record as strings; bytes that are not UTF-8 are escaped.
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
        """Read a record of the dead-letter topic.

        Parameters
        ----------
        message
            Record with the error headers.
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
        """Position of the record, and detail of the rejection."""
        return f"{self.topic}-{self.partition}@{self.offset}: {self.detail}"

    def to_line(self) -> bytes:
        """Return the dead letter as a line of JSON."""
        return orjson.dumps(self)
