"""Keys, values and headers of records, as confluent-kafka returns them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import methodcaller
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import Message

# Names and values of a record's headers, in the order of the record.
Headers = Sequence[tuple[str, bytes | None]]

# A plain call would pass over an exception that the client has set.
_read_headers = methodcaller("headers")


def as_bytes(value: str | bytes | None) -> bytes | None:
    """Return a key or value as bytes; the client's types also allow strings."""
    return value.encode() if isinstance(value, str) else value


def read_headers(messages: Iterable[Message]) -> list[Headers | None]:
    """Return the headers of each record; None without headers, or if a name is not UTF-8.

    May be called once for a message: after a name that is not UTF-8, confluent-kafka returns a list
    with a null pointer, which ends the process when it is read.
    """
    found: list[Headers | None] = []
    reads = map(_read_headers, messages)
    while True:
        try:
            found.extend(reads)
        except SystemError:
            # The headers before the error are in the list; the next read is of the next message.
            found.append(None)
        else:
            return found


def message_headers(message: Message) -> Headers:
    """Return the headers of a record; none if a name is not UTF-8. May be called once."""
    (headers,) = read_headers([message])
    return headers or ()
