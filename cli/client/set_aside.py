"""What the headers of a record that was set aside say: a dead letter, or a late event."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import Message

_TOLD = "coincide.error."


def headers_of(message: Message) -> dict[str, str | None]:
    """Give the headers that tell of it, by name without their common prefix.

    Parameters
    ----------
    message
        Of the dead letter topic, or of the one for late events; of any other it is empty.
    """
    return {
        name.removeprefix(_TOLD): as_text(value)
        for name, value in dict(message.headers() or ()).items()
        if name.startswith(_TOLD)
    }


def as_text(value: str | bytes | None) -> str | None:
    """Give a key, a value or a header as text; bytes that are none are escaped."""
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
