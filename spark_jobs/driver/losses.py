"""Count records that were lost before they were read.

For each partition of the streams in force, the counter keeps three offsets, the facts: the end of
the completed batches, the end of the records that were seen, and the end of the counted losses. One
write adds a loss to the total and advances the third offset. An offset is therefore counted at most
once, even if a run of the query or a step of a killed job is repeated.

Facts and totals are stored beside the query's checkpoint in one file that is replaced atomically.
The facts belong to the topics whose ids are in streams.json: they are removed together with the
offsets of a topic, before the new id is written there. They are not stored in the job's record on
the metrics topic: the file must be written before the query skips a gap, and at that moment a
record is not yet confirmed by Kafka. With a new checkpoint the totals begin at 0, like all totals
of the job.

Losses by deletion and truncation are lower bounds: records written after the last look are unknown.
Facts are written when a run begins or stops, when a loss is counted, and at every tenth look.
"""

from __future__ import annotations

import logging
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING

import orjson

from correlation.errors import UnknownRecordVersionError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from kafka_client.partition_offsets import Place
    from spark_jobs.driver.checkpoint import Checkpoint

_log = logging.getLogger(__name__)

_FILE = "losses.json"
_VERSION = 2
# Version 1 contains only the end offsets of the counted losses.
_READABLE_VERSIONS = (1, _VERSION)
# The ends of a busy topic change at every look, and writing to a remote store is slow.
_LOOKS_PER_WRITE = 10
_RETENTION = "the retention of the topic is shorter than the lag of the job"
_DELETED = "the topic was deleted before they were read"
_TRUNCATED = "the topic was truncated; it is read from its current end"


@dataclass(frozen=True, slots=True)
class _Facts:
    """Facts of a partition.

    Parameters
    ----------
    read : int or None
        End offset of the completed batches; None when no batch has read the partition.
    end : int
        End offset of the records that were seen.
    counted : int
        End offset of the losses that are counted.
    batch : int
        Batch after whose begin the partition was truncated: offsets of this batch and of earlier
        batches are out of date.
    """

    read: int | None = None
    end: int = 0
    counted: int = 0
    batch: int = -1


class LossCounter:
    """Counts lost records, and stores the totals and the facts.

    Parameters
    ----------
    checkpoint : Checkpoint
        Checkpoint that stores the file.
    report : callable
        Called with the totals by (topic, partition), once at the start and after each change.

    Raises
    ------
    UnknownRecordVersionError
        When the file has an unknown version.
    """

    def __init__(
        self, checkpoint: Checkpoint, report: Callable[[Mapping[Place, int]], None]
    ) -> None:
        self._checkpoint = checkpoint
        self._report = report
        self._totals: dict[Place, int] = {}
        self._facts: dict[Place, _Facts] = {}
        self._looks = 0
        self._stored = checkpoint.read(_FILE)
        if self._stored is not None:
            self._load(self._stored)
        report(self._totals)

    def _load(self, stored: bytes) -> None:
        document = orjson.loads(stored)
        if document["v"] not in _READABLE_VERSIONS:
            raise UnknownRecordVersionError(f"{_FILE} has the unknown version {document['v']}")
        for topic, number, total, *counted in document["lost"]:
            self._totals[topic, number] = total
            if counted:
                self._facts[topic, number] = _Facts(counted=counted[0])
        for topic, number, *facts in document.get("facts", []):
            self._facts[topic, number] = _Facts(*facts)

    def note_read(self, offsets: Mapping[Place, int], batch: int) -> None:
        """Record the end offsets of a completed batch."""
        for place, offset in offsets.items():
            facts = self._facts.get(place, _Facts())
            if batch > facts.batch:
                read = max(offset, facts.read or 0)
                self._facts[place] = replace(facts, read=read, end=max(read, facts.end))

    def note_begun(self, offsets: Mapping[Place, int], batch: int) -> None:
        """Record the end offsets of a batch that was begun; records were seen up to them."""
        for place, offset in offsets.items():
            facts = self._facts.get(place, _Facts())
            if batch > facts.batch:
                self._facts[place] = replace(facts, end=max(offset, facts.end))

    def look(self, begins: Mapping[Place, int], ends: Mapping[Place, int]) -> None:
        """Record the end offsets of partitions, and count the records that retention removed.

        Losses are not counted for a partition that the job has never read.

        Parameters
        ----------
        begins, ends : mapping of (topic, partition) to int
            Offsets of the oldest record and of the next record to be written.

        Raises
        ------
        CheckpointStoreError
            When the counts cannot be stored; they then stay unchanged.
        """
        for place, end in ends.items():
            facts = self._facts.get(place, _Facts())
            self._facts[place] = replace(facts, end=max(end, facts.end))
        lost, changed = {}, {}
        for place, begin in begins.items():
            facts = self._facts.get(place, _Facts())
            if facts.read is not None and begin > max(facts.read, facts.counted):
                lost[place] = begin - max(facts.read, facts.counted)
                changed[place] = replace(facts, counted=begin, end=max(begin, facts.end))
        self._count(lost, changed, _RETENTION)
        self._looks += 1
        if self._looks % _LOOKS_PER_WRITE == 0:
            self.save()

    def is_truncated(self, ends: Mapping[Place, int]) -> bool:
        """Return whether a partition ends before the last record that was seen."""
        return any(self._facts.get(place, _Facts()).end > end for place, end in ends.items())

    def count_deleted(self, topics: Collection[str]) -> None:
        """Count the records of deleted topics that were seen but not read.

        Parameters
        ----------
        topics : collection of str
            Names of the topics. A repeated call counts 0 until `forget` is called.

        Raises
        ------
        CheckpointStoreError
            When the counts cannot be stored; they then stay unchanged.
        """
        lost, changed = {}, {}
        for place, facts in self._facts.items():
            if place[0] in topics and facts.read is not None:
                lost[place] = facts.end - max(facts.read, facts.counted)
                changed[place] = replace(facts, counted=max(facts.end, facts.counted))
        self._count(lost, changed, _DELETED)

    def count_truncated(self, ends: Mapping[Place, int], batch: int) -> None:
        """Count the seen records that truncation removed from the end of partitions.

        Parameters
        ----------
        ends : mapping of (topic, partition) to int
            Current end offsets.
        batch : int
            The newest batch that was begun.

        Raises
        ------
        CheckpointStoreError
            When the counts cannot be stored; they then stay unchanged.
        """
        lost, changed = {}, {}
        for place, end in ends.items():
            facts = self._facts.get(place, _Facts())
            if facts.end > end:
                lost[place] = facts.end - max(end, facts.counted)
                read = None if facts.read is None else min(facts.read, end)
                changed[place] = _Facts(read, end, min(facts.counted, end), batch)
        self._count(lost, changed, _TRUNCATED)

    def restart_batches(self) -> None:
        """Prepare the facts for a query whose batches are numbered from 0 again.

        Raises
        ------
        CheckpointStoreError
            When the file cannot be written.
        """
        self._facts = {place: replace(it, batch=-1) for place, it in self._facts.items()}
        self.save()

    def forget(self, topics: Collection[str]) -> None:
        """Remove the facts of topics that are no longer read, or are read from their beginning.

        Raises
        ------
        CheckpointStoreError
            When the file cannot be written; the facts then stay unchanged.
        """
        facts = {place: facts for place, facts in self._facts.items() if place[0] not in topics}
        self._write(self._totals, facts)
        self._facts = facts

    def save(self) -> None:
        """Write the totals and the facts, if they have changed.

        Raises
        ------
        CheckpointStoreError
            When the file cannot be written.
        """
        self._write(self._totals, self._facts)

    def _count(
        self, lost: Mapping[Place, int], changed: Mapping[Place, _Facts], cause: str
    ) -> None:
        if not changed:
            return
        lost = {place: count for place, count in lost.items() if count > 0}
        totals = self._totals | {
            place: self._totals.get(place, 0) + count for place, count in lost.items()
        }
        facts = self._facts | dict(changed)
        self._write(totals, facts)
        self._totals, self._facts = totals, facts
        for (topic, number), count in sorted(lost.items()):
            _log.error("%d records of %s-%d are lost: %s", count, topic, number, cause)
        if lost:
            self._report(totals)

    def _write(self, totals: Mapping[Place, int], facts: Mapping[Place, _Facts]) -> None:
        content = orjson.dumps(
            {
                "v": _VERSION,
                "lost": [[*place, total] for place, total in sorted(totals.items())],
                "facts": [[*place, *astuple(known)] for place, known in sorted(facts.items())],
            }
        )
        if content != self._stored:
            self._checkpoint.write(_FILE, content)
            self._stored = content
