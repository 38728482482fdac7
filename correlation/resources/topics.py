"""Names of Coincide's topics, and headers of late and dead-letter records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from correlation.errors import UnknownChannelError
from correlation.reasons import Reason
from correlation.resources.schemas import (
    ANY_BYTES,
    NULL,
    STRING,
    RecordType,
    choice,
    constant,
    described,
    headers_of,
)

if TYPE_CHECKING:
    from correlation.resources.schemas import Schema


# Prefix of `__consumer_offsets` and `__transaction_state`, and of internal topics of other tools.
_INTERNAL = "__"


def is_internal(topic: str) -> bool:
    """Return whether a topic has the name of an internal topic of Kafka."""
    return topic.startswith(_INTERNAL)


@dataclass(frozen=True, slots=True)
class Channel:
    """A topic of the installation for results of conditions.

    Parameters
    ----------
    name : str
        Name of the topic, without the prefix of the installation.
    description : str
        Content of the topic, for documentation.
    compacted : bool
        Whether the topic is compacted: it keeps the newest record of each key. Conditions with an
        output topic of their own write to a compacted channel nevertheless.
    """

    name: str
    description: str = ""
    compacted: bool = False


ALARMS = Channel("alarms", "Alarms.")


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of an installation.

    Parameters
    ----------
    prefix : str
        Prefix of every name, followed by a dot.
    channels : tuple of Channel
        Channels of the kinds of conditions, beside the topic of alarms.
    """

    prefix: str = "coincide"
    channels: tuple[Channel, ...] = ()

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
        return self.of(ALARMS)

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

    @property
    def state(self) -> str:
        """Topic of the positions and totals of the slots, to rebuild their state (compacted)."""
        return f"{self.prefix}.state"

    @property
    def audit(self) -> str:
        """Topic of the writes by REST, which only the service writes."""
        return f"{self.prefix}.audit"

    def of(self, channel: Channel) -> str:
        """Return the topic of a channel."""
        return f"{self.prefix}.{channel.name}"

    def channel_topic(self, name: str) -> str:
        """Return the topic of the channel with a name.

        Raises
        ------
        UnknownChannelError
            When no kind of condition declares the channel.
        """
        found = next((it for it in (ALARMS, *self.channels) if it.name == name), None)
        if found is None:
            raise UnknownChannelError(
                f"channel {name!r} is unknown; add it to `channels` of the kind of condition"
            )
        return self.of(found)

    def compacted_channels(self) -> frozenset[str]:
        """Return the topics of the compacted channels."""
        return frozenset(self.of(it) for it in self.channels if it.compacted)

    def reserved(self) -> frozenset[str]:
        """Return the topics that no condition may name: all except the alarms topic."""
        return frozenset(self.all()) - {self.alarms}

    def common(self) -> tuple[str, ...]:
        """Return the topics that service and job share, whatever kinds of conditions exist."""
        return (
            self.config,
            self.heartbeats,
            self.alarms,
            self.late,
            self.dead_letter,
            self.metrics,
            self.state,
        )

    def all(self) -> tuple[str, ...]:
        """Return all topics of the installation."""
        return (*self.common(), self.audit, *map(self.of, self.channels))


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


_NUMERAL: Schema = {"type": "string", "pattern": "^[0-9]+$"}
_REFUSAL: dict[str, Schema] = {
    "coincide.error.reason": choice([it.value for it in Reason]),
    "coincide.error.detail": described(STRING, "Description of the problem."),
    "coincide.error.topic": described(STRING, "Topic that could not be written."),
}
_ERROR: dict[str, Schema] = {
    **_REFUSAL,
    "coincide.error.topic": described(STRING, "Topic of the record."),
    "coincide.error.stream": described(STRING, "Stream of the record; empty if unknown."),
    "coincide.error.partition": described(_NUMERAL, "Partition of the record."),
    "coincide.error.offset": described(_NUMERAL, "Offset of the record."),
}
_LATE = {**_ERROR, "coincide.error.reason": choice([Reason.LATE.value])}
LATE = RecordType(
    "late_event",
    "Record of an event that is older than the watermark of its stream, unchanged.",
    ANY_BYTES,
    "The key of the record.",
    headers_of(_LATE, others=True),
    "late",
    "application/octet-stream",
)
# Header of a late event whose record Kafka had removed before it was copied.
MISSING_HEADER = "coincide.error.missing"
LATE_MISSING = RecordType(
    "missing_late_event",
    "Late event whose record was removed from its topic before it was copied: it has no key, no "
    "value and no headers of its own.",
    NULL,
    "No key.",
    headers_of({**_LATE, MISSING_HEADER: constant("true")}),
    "late",
)
DEAD_LETTER = RecordType(
    "dead_letter",
    "Record that could not be processed, unchanged.",
    ANY_BYTES,
    "The key of the record.",
    headers_of(_ERROR, others=True),
    "dead-letter",
    "application/octet-stream",
)
REFUSED_RESULT = RecordType(
    "refused_result",
    "Result that could not be written to its topic, unchanged.",
    ANY_BYTES,
    "The key of the result.",
    headers_of(
        {
            **_REFUSAL,
            "coincide.error.reason": choice([Reason.OUTPUT_REFUSED.value, Reason.TOO_LARGE.value]),
        },
        others=True,
    ),
    "dead-letter",
    "application/octet-stream",
)
# Header with the size of a record whose value was left out because it exceeds every limit.
OMITTED_HEADER = "coincide.error.omitted_bytes"
OMITTED_BYTES = described(_NUMERAL, "Size of the whole record, in bytes.")


def omitted_value(topic: str) -> RecordType:
    """Return the type of the records of a topic that is not compacted whose value was left out."""
    return RecordType(
        "omitted_value",
        "Record without its value, which exceeds the size limit of the topic. A key or header of "
        "64 KiB or more is left out too.",
        NULL,
        "The key of the record.",
        headers_of({OMITTED_HEADER: OMITTED_BYTES}, others=True),
        topic,
    )
