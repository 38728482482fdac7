"""Records that were gone before they were read: counted once, and kept in the checkpoint.

The counts lie beside the query's checkpoint, in a file of their own that is replaced whole. With
them it holds up to which offset of each partition losses are counted, so whatever is repeated (a
run of the query, a job that was killed) counts nothing twice. The checkpoint is their place, and
not the job's record on the metrics topic: a loss is the gap between what Kafka still has and the
offsets in the checkpoint, the file is written before the query passes over the gap, and a record
is not known to be in Kafka at that moment. With a new checkpoint the counts begin at 0, as all
totals of the job do.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import orjson

from correlation.errors import UnknownRecordVersionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from spark_jobs.checkpoint import Checkpoint
    from spark_jobs.offsets import Place

_log = logging.getLogger(__name__)

_FILE = "losses.json"
_VERSION = 1
_RETENTION = "the topic's retention is shorter than the time the job was behind"
# Reasons of losses that are not seen by what the partitions begin with.
DELETED = "the topic was deleted before they were read"
TRUNCATED = "the topic ends before where it ended or was read to; it is read from its end of now"


class LossCounter:
    """Counts lost records, and keeps the totals.

    Parameters
    ----------
    checkpoint : Checkpoint
        Where the totals are kept.
    report : callable
        Called with the totals, by (topic, partition): at once, and whenever they change.

    Raises
    ------
    UnknownRecordVersionError
        When another version wrote the file.
    """

    def __init__(
        self, checkpoint: Checkpoint, report: Callable[[Mapping[Place, int]], None]
    ) -> None:
        self._checkpoint = checkpoint
        self._report = report
        self._totals: dict[Place, int] = {}
        self._counted_up_to: dict[Place, int] = {}
        stored = checkpoint.read(_FILE)
        if stored is not None:
            document = orjson.loads(stored)
            if document["v"] != _VERSION:
                raise UnknownRecordVersionError(f"lost records of version {document['v']}")
            for topic, number, total, offset in document["lost"]:
                self._totals[topic, number] = total
                self._counted_up_to[topic, number] = offset
        report(self._totals)

    def count(self, begins: Mapping[Place, int], completed: Mapping[Place, int]) -> None:
        """Count the records that were removed before they were read.

        Parameters
        ----------
        begins : mapping of (topic, partition) to int
            Offset of the oldest record of each partition.
        completed : mapping of (topic, partition) to int
            Up to where the query's completed batches have read. What the job has never read, it
            has not lost.

        Raises
        ------
        CheckpointStoreError
            When the counts cannot be kept; nothing is counted then.
        """
        lost: dict[Place, int] = {}
        for place in begins.keys() & completed.keys():
            begin = begins[place]
            counted = self._counted_up_to.get(place, 0)
            # A partition never begins earlier than it did, unless its topic was created anew.
            read = max(completed[place], counted if counted <= begin else 0)
            if begin > read:
                lost[place] = begin - read
        self._add(lost, {place: begins[place] for place in lost}, _RETENTION)

    def add(self, lost: Mapping[Place, int], cause: str) -> None:
        """Count records of topics that were deleted or truncated.

        Parameters
        ----------
        lost : mapping of (topic, partition) to int
            Number of records.
        cause : str
            Why they are gone.

        Raises
        ------
        CheckpointStoreError
            When the counts cannot be kept; nothing is counted then.
        """
        # What comes next in these partitions begins at other offsets.
        self._add(lost, dict.fromkeys(lost, 0), cause)

    def _add(
        self, lost: Mapping[Place, int], counted_up_to: Mapping[Place, int], cause: str
    ) -> None:
        if not lost:
            return
        totals = self._totals | {
            place: self._totals.get(place, 0) + count for place, count in lost.items()
        }
        counted = self._counted_up_to | dict(counted_up_to)
        self._store(totals, counted)
        self._totals, self._counted_up_to = totals, counted
        for (topic, number), count in sorted(lost.items()):
            _log.error("%d records of %s-%d are lost: %s", count, topic, number, cause)
        self._report(totals)

    def _store(self, totals: Mapping[Place, int], counted_up_to: Mapping[Place, int]) -> None:
        rows = [[*place, total, counted_up_to[place]] for place, total in sorted(totals.items())]
        self._checkpoint.write(_FILE, orjson.dumps({"v": _VERSION, "lost": rows}))
