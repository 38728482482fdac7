"""Headers of a dead letter or a late event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_client.messages import message_headers

if TYPE_CHECKING:
    from confluent_kafka import Message

_TOLD = "coincide.error."


def headers_of(message: Message) -> dict[str, str | None]:
    """Return the error headers of a record, by name without their common prefix.

    Parameters
    ----------
    message
        Record of the dead-letter topic or the late topic; other records have no such headers.
    """
    return {
        name.removeprefix(_TOLD): as_text(value)
        for name, value in dict(message_headers(message)).items()
        if name.startswith(_TOLD)
    }


def as_text(value: str | bytes | None) -> str | None:
    """Return a key, value or header as a string; bytes that are not UTF-8 are escaped."""
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
