"""Keys and values of records, as confluent-kafka returns them."""

from __future__ import annotations


def as_bytes(value: str | bytes | None) -> bytes | None:
    """Return a key or value as bytes; the client's types also allow strings."""
    return value.encode() if isinstance(value, str) else value
