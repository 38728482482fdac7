"""Names of Coincide's topics, and headers of late and dead-letter records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from correlation.reasons import Reason


# Prefix of `__consumer_offsets` and `__transaction_state`, and of internal topics of other tools.
_INTERNAL = "__"


def is_internal(topic: str) -> bool:
    """Return whether a topic has the name of an internal topic of Kafka."""
    return topic.startswith(_INTERNAL)


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of an installation.

    Parameters
    ----------
    prefix : str
        Prefix of every name, followed by a dot.
    """

    prefix: str = "coincide"

    @property
    def config(self) -> str:
        """Topic of streams, conditions and templates (compacted, one partition)."""
        return f"{self.prefix}.config"

    @property
    def heartbeats(self) -> str:
        """Topic of heartbeats, the progress of idle or recorded streams."""
        return f"{self.prefix}.heartbeats"

    @property
    def alarms(self) -> str:
        """Topic of the alarms of conditions without an output topic."""
        return f"{self.prefix}.alarms"

    @property
    def late(self) -> str:
        """Topic of late events."""
        return f"{self.prefix}.late"

    @property
    def dead_letter(self) -> str:
        """Topic of records that could not be processed."""
        return f"{self.prefix}.dead-letter"

    @property
    def metrics(self) -> str:
        """Topic of totals and facts of the slots and the job (compacted)."""
        return f"{self.prefix}.metrics"

    def reserved(self) -> frozenset[str]:
        """Return the topics that conditions must not write to: all except the alarms topic."""
        return frozenset(self.all()) - {self.alarms}

    def all(self) -> tuple[str, ...]:
        """Return all topics of the installation."""
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
    """Build the headers that are added to a late or dead-letter record.

    Parameters
    ----------
    reason : Reason
        Reason code.
    detail : str
        Readable description of the problem.
    stream : str
        Stream of the record; empty if unknown.
    topic, partition, offset
        Position of the record.
    """
    return {
        **refusal_headers(reason, detail, topic),
        "coincide.error.stream": stream.encode(),
        "coincide.error.partition": str(partition).encode(),
        "coincide.error.offset": str(offset).encode(),
    }


def refusal_headers(reason: Reason, detail: str, topic: str) -> dict[str, bytes]:
    """Build the headers that are added to a record whose topic could not be written.

    Parameters
    ----------
    reason : Reason
        Reason code.
    detail : str
        Readable description of the problem.
    topic : str
        Topic that could not be written.
    """
    return {
        "coincide.error.reason": reason.value.encode(),
        "coincide.error.detail": detail.encode("utf-8", "backslashreplace"),
        "coincide.error.topic": topic.encode(),
    }
