"""The records that a replay of topics rejected, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from confluent_kafka import Message

_TOLD = "coincide.error."


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
        told = {
            name.removeprefix(_TOLD): _as_text(value) or ""
            for name, value in dict(message.headers() or ()).items()
            if name.startswith(_TOLD)
        }
        return cls(
            told.get("stream", ""),
            told["reason"],
            told["detail"],
            told["topic"],
            int(told.get("partition", 0)),
            int(told.get("offset", 0)),
            _as_text(message.key()),
            _as_text(message.value()),
        )

    @property
    def told(self) -> str:
        """Where it stands and what is wrong with it."""
        return f"{self.topic}-{self.partition}@{self.offset}: {self.detail}"

    def to_line(self) -> bytes:
        """Write it as a line of JSON."""
        return orjson.dumps(self)


def _as_text(value: str | bytes | None) -> str | None:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
