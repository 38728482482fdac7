"""Format of the records of results, as far as all kinds share it; read without numpy and numba."""

from __future__ import annotations

from typing import NamedTuple

# CloudEvents types of alarms, unless a kind has a type of its own, and of present lists.
ALARM_TYPE = "coincide.alarm.v1"
LIST_TYPE = "coincide.list.v1"
# Format version of a list.
LIST_VERSION = 1
# CloudEvents, binary mode: the header with the type of a record.
TYPE_HEADER = "ce_type"
_SEPARATOR = b"/"


class ListName(NamedTuple):
    """Condition of a list, and its join key; None if the condition has a single list."""

    condition: str
    key: bytes | None

    def record_key(self) -> bytes:
        """Return the Kafka key of the list."""
        name = self.condition.encode()
        return name if self.key is None else name + _SEPARATOR + self.key

    @classmethod
    def from_record_key(cls, record_key: bytes) -> ListName:
        """Read a Kafka key that `record_key` returned.

        Raises
        ------
        ValueError
            The name of the condition is not UTF-8.
        """
        name, separator, key = record_key.partition(_SEPARATOR)
        return cls(name.decode(), key if separator else None)


def framed(part: bytes) -> bytes:
    """Return a part prefixed with its length, so that different lists of parts stay different."""
    return len(part).to_bytes(8, "little") + part


def as_text(name: bytes) -> str:
    """Return an id or a key as an alarm contains it; record keys may be any bytes."""
    return name.decode("utf-8", "backslashreplace")
