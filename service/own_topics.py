"""Coincide's own topics and the settings that they need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from correlation.limits import CONFIG_RECORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.settings import Settings

CLEANUP, RETENTION, TIMESTAMPS = "cleanup.policy", "retention.ms", "message.timestamp.type"
UNLIMITED = "-1"
_COMPACTED = {
    CLEANUP: "compact",
    # Small segments and an eager cleaner: these topics are read from the beginning at every start.
    "segment.bytes": str(16 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
}
# Tombstones are kept for ten years: a job that was stopped must not miss a deletion.
_TEN_YEARS = {"delete.retention.ms": str(10 * 365 * 24 * 3600 * 1000)}
# Each batch of each slot is a transaction, whose end marker of about 80 bytes is kept this long:
# 16 slots at 5 batches a second leave about 25 MB in an hour. A reader of the whole topic must
# reach the end within this time, which takes seconds. Older tombstones are not needed, because the
# record of a slot is replaced and hardly ever deleted.
_AN_HOUR = {"delete.retention.ms": str(3600 * 1000)}
# Events and heartbeats dated in the future are detected by Kafka's clock, not the producer's.
STAMPED_BY_KAFKA = {TIMESTAMPS: "LogAppendTime"}
# A record of an event is not replaced by a later one with the same key.
NOT_COMPACTED = {CLEANUP: "delete"}
# The owner of the installation decides when audit records may be removed.
_FOR_EVER = {RETENTION: UNLIMITED}
# A record of 10 MB must fit, with the headers of a dead-letter record.
_ANY_RECORD = {"max.message.bytes": str(CONFIG_RECORD_BYTES)}


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """Required properties of a topic.

    Parameters
    ----------
    name : str
        Name of the topic.
    partitions : int
        Number of partitions at creation.
    settings : mapping
        Kafka settings at creation.
    checked : frozenset of str
        Settings that an existing topic must have too; numbers may be larger.
    one_partition : bool
        Whether an existing topic must have exactly one partition.
    outdated : mapping
        Values that an earlier version of this software set at creation: on an existing topic,
        they are altered to the values in `settings`.
    """

    name: str
    partitions: int
    settings: Mapping[str, str] = field(default_factory=dict)
    checked: frozenset[str] = frozenset()
    one_partition: bool = False
    outdated: Mapping[str, str] = field(default_factory=dict)


def own_topics(settings: Settings) -> tuple[TopicSpec, ...]:
    """Return the required properties of Coincide's own topics."""
    topics, many = settings.topics, settings.event_partitions
    # Every batch writes to the lists and the state in a transaction, as it does to the metrics.
    compacted = _COMPACTED | _ANY_RECORD | _AN_HOUR
    policy = frozenset({CLEANUP})
    any_record = policy | frozenset(_ANY_RECORD)
    remembered = any_record | {"delete.retention.ms"}
    return (
        TopicSpec(
            topics.config, 1, _COMPACTED | _ANY_RECORD | _TEN_YEARS, remembered, one_partition=True
        ),
        TopicSpec(
            topics.metrics,
            1,
            compacted,
            any_record,
            one_partition=True,
            outdated=_TEN_YEARS,
        ),
        TopicSpec(topics.state, 1, compacted, any_record, one_partition=True),
        TopicSpec(
            topics.heartbeats,
            1,
            NOT_COMPACTED | STAMPED_BY_KAFKA,
            policy | frozenset(STAMPED_BY_KAFKA),
            one_partition=True,
        ),
        TopicSpec(
            topics.audit,
            1,
            NOT_COMPACTED | _ANY_RECORD | _FOR_EVER,
            any_record,
            one_partition=True,
        ),
        TopicSpec(topics.alarms, many, NOT_COMPACTED, policy),
        TopicSpec(topics.late, many, NOT_COMPACTED | _ANY_RECORD, any_record),
        TopicSpec(topics.dead_letter, many, NOT_COMPACTED | _ANY_RECORD, any_record),
        *(
            TopicSpec(topics.of(it), 1, compacted, any_record, one_partition=True)
            if it.compacted
            else TopicSpec(topics.of(it), many, NOT_COMPACTED, policy)
            for it in topics.channels
        ),
    )
