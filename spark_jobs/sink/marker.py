"""The mark of the written batches: a committed offset of a group, and a record of the state topic.

A transaction contains both. The offset can be read while other transactions are open, but Kafka
removes it a while after the job has stopped (`offsets.retention.minutes`). The record remains. The
driver reads it once, at the start of the job, when no transaction is open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from spark_jobs.sink.committed import CommittedOffset
from spark_jobs.worker.envelope import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import TopicPartition

    from spark_jobs.settings import Properties

_VERSION = 1
_GROUP, _NEXT = "group", "next_batch"


class Marker:
    """The marker partition, for which a partition of the sink commits its batches.

    It is partition 0 of a topic. Offsets are committed for it; the sink writes no records to it.

    Parameters
    ----------
    topic : str
        Name of the topic.
    group : str
        Consumer group that commits, one per checkpoint and partition of the sink. It has no
        members.
    properties : mapping
        librdkafka properties.
    stored : int
        First batch that is not written yet, according to the state topic.
    decided : bool
        As of `CommittedOffset`.
    """

    def __init__(
        self,
        topic: str,
        group: str,
        properties: Properties,
        *,
        stored: int = 0,
        decided: bool = True,
    ) -> None:
        self._offset = CommittedOffset(topic, group, properties, decided=decided)
        self._stored = stored

    @property
    def topic(self) -> str:
        """Topic of the marker partition."""
        return self._offset.topic

    @property
    def name(self) -> str:
        """Name of the group."""
        return self._offset.name

    @property
    def group(self) -> object:
        """Metadata of the group, for commits in a transaction."""
        return self._offset.group

    def of(self, batch: int) -> TopicPartition:
        """Return the mark of a written batch."""
        return self._offset.at(batch + 1)

    def next_batch(self) -> int:
        """Return the first batch that is not written yet.

        Raises
        ------
        KafkaException
            When Kafka does not answer in time, or the right to the group is missing.
        """
        found = self._offset.read()
        return max(self._stored, 0 if found is None else int(found.offset))

    def close(self) -> None:
        """Close the connection."""
        self._offset.close()


def mark_record(topic: str, transactional_id: str, group: str, batch: int) -> Record:
    """Return the record that marks a batch as written.

    Parameters
    ----------
    topic : str
        The state topic.
    transactional_id : str
        Id of the part of the sink; the key of the record.
    group : str
        Group of the marks of the part and of the checkpoint.
    batch : int
        Number of the batch.
    """
    value = orjson.dumps({"v": _VERSION, _GROUP: group, _NEXT: batch + 1})
    return Record(topic, transactional_id.encode(), value)


def read_marks(values: Mapping[bytes, bytes]) -> dict[str, int]:
    """Return the first batch that is not written yet, by group.

    Parameters
    ----------
    values : mapping of bytes to bytes
        Newest value of each key of the state topic.
    """
    # Records of slots have no group; their versions are checked where they are read.
    found = (orjson.loads(value) for value in values.values())
    return {it[_GROUP]: it[_NEXT] for it in found if _GROUP in it}
