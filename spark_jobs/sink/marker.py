"""The mark of the written batches: a committed offset of a group, and a record of the state topic.

A transaction contains both. The offset can be read while other transactions are open, but Kafka
removes it a while after the job has stopped (`offsets.retention.minutes`). The record remains. The
driver reads it at the start of the job and before it plans a batch again; a worker reads it if
Kafka does not decide the offset.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import orjson

from correlation.errors import UnknownRecordVersionError
from spark_jobs.sink.committed import CommittedOffset
from spark_jobs.sink.state_topic import read_decided_state
from spark_jobs.worker.envelope import Record
from spark_jobs.worker.slot_records import generation_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import TopicPartition

    from correlation.resources.topics import Topics
    from spark_jobs.settings import Properties

_log = logging.getLogger(__name__)

_PATIENCE_SECONDS = 60.0
# Key of the metrics of merged results in the metrics topic.
METRICS_KEY = b"merged"
# Version of the totals of merged results, whose record contains a mark, too.
TOTALS_VERSION = 1
_VERSION = 1
_TOTALS = ".totals"
_GROUP, _NEXT = "group", "next_batch"


class Marker:
    """Marks of the batches that a partition of the sink has written.

    Offsets are committed for partition 0 of the config topic, to which the sink writes no records.

    Parameters
    ----------
    topics : Topics
        Topics of the installation.
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
        topics: Topics,
        group: str,
        properties: Properties,
        *,
        stored: int = 0,
        decided: bool = True,
    ) -> None:
        self._offset = CommittedOffset(topics.config, group, properties, decided=decided)
        self._properties, self._state_topic = properties, topics.state
        self._stored = stored

    @property
    def topic(self) -> str:
        """Topic for which offsets are committed."""
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
        """Return the offset that marks a batch as written."""
        return self._offset.at(batch + 1)

    def record_of(self, transactional_id: str, batch: int) -> Record:
        """Return the record that marks a batch as written.

        Parameters
        ----------
        transactional_id : str
            Transactional id of the partition; the key of the record.
        batch : int
            Number of the batch.
        """
        value = orjson.dumps(mark_of(self.name, batch))
        return Record(self._state_topic, transactional_id.encode(), value)

    def next_batch(self) -> int:
        """Return the first batch that is not written yet.

        Raises
        ------
        KafkaException
            When Kafka does not answer in time, or the right to the group is missing.
        """
        return self._after(self._offset.read())

    def find_next_batch(self) -> int:
        """Return the first batch that is not written yet, even if Kafka does not decide the offset.

        It is called when all transactions that may commit for the group have ended. Both marks of a
        batch are in one transaction, so the record of the state topic is as good as the offset. It
        is read when all present transactions of the state topic have ended.

        Raises
        ------
        KafkaException
            See `next_batch`; or when the state topic has a transaction that does not end.
        UnknownRecordVersionError
            See `read_marks`.
        """
        found, is_decided = self._offset.read_or_former()
        if not is_decided:
            _log.warning(
                "Kafka does not decide the offset of group %s after its transaction has ended: the "
                "mark of %s counts",
                self.name,
                self._state_topic,
            )
            values = read_decided_state(self._properties, self._state_topic, _PATIENCE_SECONDS)
            # Kafka forgets the offset if the next transaction of this part aborts.
            self._stored = max(self._stored, read_marks(values).get(self.name, 0))
        return self._after(found)

    def _after(self, found: TopicPartition | None) -> int:
        return max(self._stored, 0 if found is None else int(found.offset))

    def close(self) -> None:
        """Close the connection."""
        self._offset.close()


def mark_of(group: str, batch: int) -> dict[str, str | int]:
    """Return the fields of a record that mark a batch as written.

    Parameters
    ----------
    group : str
        Consumer group of the marks.
    batch : int
        Number of the batch.
    """
    return {"v": _VERSION, _GROUP: group, _NEXT: batch + 1}


def totals_key(transactional_id: str) -> bytes:
    """Return the key of the totals of merged results in the state topic.

    Their record contains the mark of the batch, too.

    Parameters
    ----------
    transactional_id : str
        Transactional id of the merged results.
    """
    return f"{transactional_id}{_TOTALS}".encode()


def read_marks(values: Mapping[bytes, bytes]) -> dict[str, int]:
    """Return the first batch that is not written yet, by group.

    Parameters
    ----------
    values : mapping of bytes to bytes
        Newest value of each key of the state topic.

    Raises
    ------
    UnknownRecordVersionError
        When another version of this software wrote a mark.
    """
    marks: dict[str, int] = {}
    for key, value in values.items():
        if generation_of(key) is None:
            # Totals of merged results have the mark, too; an earlier version leaves them behind.
            mark = orjson.loads(value)
            known = TOTALS_VERSION if key.endswith(_TOTALS.encode()) else _VERSION
            if mark["v"] != known:
                raise UnknownRecordVersionError(
                    f"the record {key.decode()} of the state topic has version {mark['v']!r}; this "
                    f"software reads {known}; use the software that wrote it"
                )
            marks[mark[_GROUP]] = max(mark[_NEXT], marks.get(mark[_GROUP], 0))
    return marks
