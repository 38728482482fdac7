"""Names that both sides of Kafka use: topics and the headers of records that were set aside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from correlation.reasons import Reason


# Of `__consumer_offsets` and `__transaction_state`; also of what tools keep for themselves.
_INTERNAL = "__"


def is_internal(topic: str) -> bool:
    """Return whether the name says that a topic belongs to Kafka itself."""
    return topic.startswith(_INTERNAL)


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one installation.

    Parameters
    ----------
    prefix : str
        Put before every name, with a dot.
    """

    prefix: str = "coincide"

    @property
    def config(self) -> str:
        """Streams and conditions (compacted, one partition)."""
        return f"{self.prefix}.config"

    @property
    def heartbeats(self) -> str:
        """Progress of streams that are idle or recorded."""
        return f"{self.prefix}.heartbeats"

    @property
    def alarms(self) -> str:
        """Alarms of conditions that name no topic of their own."""
        return f"{self.prefix}.alarms"

    @property
    def late(self) -> str:
        """Events that came later than their stream declares."""
        return f"{self.prefix}.late"

    @property
    def dead_letter(self) -> str:
        """Records that could not be processed."""
        return f"{self.prefix}.dead-letter"

    @property
    def metrics(self) -> str:
        """Totals and facts of the slots and of the job (compacted)."""
        return f"{self.prefix}.metrics"

    def reserved(self) -> frozenset[str]:
        """Return the topics that no condition may name: all but that of the alarms."""
        return frozenset(self.all()) - {self.alarms}

    def all(self) -> tuple[str, ...]:
        """Every topic of the installation."""
        return (
            self.config,
            self.heartbeats,
            self.alarms,
            self.late,
            self.dead_letter,
            self.metrics,
        )


def error_headers(
    reason: Reason, detail: str, stream: str, topic: str, partition: int, offset: int
) -> dict[str, bytes]:
    """Headers that a late or dead-letter record carries beside its own.

    Parameters
    ----------
    reason : Reason
        Why it was set aside.
    detail : str
        What was found, for a person to read.
    stream : str
        The stream it was read for; empty when it belongs to none.
    topic, partition, offset
        Where the record stands.
    """
    return {
        **refusal_headers(reason, detail, topic),
        "coincide.error.stream": stream.encode(),
        "coincide.error.partition": str(partition).encode(),
        "coincide.error.offset": str(offset).encode(),
    }


def refusal_headers(reason: Reason, detail: str, topic: str) -> dict[str, bytes]:
    """Headers that a record carries beside its own when its topic could not be written.

    Parameters
    ----------
    reason : Reason
        Why it was set aside.
    detail : str
        What was found, for a person to read.
    topic : str
        Where the record belongs.
    """
    return {
        "coincide.error.reason": reason.value.encode(),
        "coincide.error.detail": detail.encode("utf-8", "backslashreplace"),
        "coincide.error.topic": topic.encode(),
    }
