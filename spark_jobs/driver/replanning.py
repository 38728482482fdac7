"""Plan an unfinished batch again, with other records, if nothing of it was written.

Spark stores the offsets of a batch before it runs the batch, and repeats these records until the
batch succeeds. A batch that exceeds the memory would therefore fail for ever. When a job starts, or
plans a failed batch again (`failed_batches`), it has claimed the installation, so that no earlier
process can write any more. If no part of the sink has written the unfinished batch, its offsets and
its state are removed, and Spark plans the batch again, with the streams and conditions that are
registered now. If this is repeated, batches are smaller for a while (P-REPLAN in docs/proofs.md).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from spark_jobs.driver.checkpoint import Checkpoint

_log = logging.getLogger(__name__)

_FILE = "replanned.json"
_VERSION = 1
_FACTOR = 8
_MIN_RECORDS = 100
# Batches with a reduced limit before the next larger limit is tried.
_BATCHES = 20


class Replanning:
    """Removes unfinished batches, and limits the batches that follow.

    Parameters
    ----------
    checkpoint : Checkpoint
        Checkpoint of the job; it stores the number of repetitions and the limit.
    max_records : int
        Max number of records of a batch.
    """

    def __init__(self, checkpoint: Checkpoint, max_records: int) -> None:
        self._checkpoint = checkpoint
        self._max_records = max_records
        stored = checkpoint.read(_FILE)
        # Number of times that a batch was planned again since all records were last read.
        self._starts = 0
        # Reduced limit, or None.
        self._limit: int | None = None
        if stored is not None:
            found = orjson.loads(stored)
            self._starts, self._limit = found["starts"], found["limit"]
        self._batches = 0

    @property
    def max_records(self) -> int:
        """Max number of records that the next batches read from the event topics."""
        return self._max_records if self._limit is None else min(self._limit, self._max_records)

    def discard_unwritten(self, written: int) -> None:
        """Remove the unfinished batch, unless a part of the sink has written it.

        Parameters
        ----------
        written : int
            Newest batch that a part of the sink has written, or -1. No query runs, and neither an
            earlier job nor a worker of an earlier query can write any more.

        Raises
        ------
        CheckpointStoreError
            When the checkpoint cannot be changed; the batch is then repeated or planned again.
        """
        batch = self._checkpoint.newest_batch()
        if not self._checkpoint.has_unfinished_batch() or written >= batch:
            return
        self._starts += 1
        # The first start may follow a failure that has nothing to do with the batch.
        if self._starts == 1:
            _log.info("nothing of the unfinished batch %d was written; it is planned again", batch)
        else:
            failed = min(self._records(), self.max_records)
            self._limit = max(failed // _FACTOR, _MIN_RECORDS)
            _log.warning(
                "batch %d failed repeatedly; batches read at most %d records now",
                batch,
                self.max_records,
            )
        self._store()
        self._checkpoint.discard_batch(batch)

    def _records(self) -> int:
        """Return the number of records of the unfinished batch, or more."""
        completed = self._checkpoint.completed_offsets()
        ends = self._checkpoint.begun_offsets().items()
        return sum(max(end - completed.get(place, 0), 0) for place, end in ends)

    def _store(self) -> None:
        document = {"v": _VERSION, "starts": self._starts, "limit": self._limit}
        self._checkpoint.write(_FILE, orjson.dumps(document))

    def complete(self, records: int) -> bool:
        """Note a completed batch; return whether the query must restart with other limits.

        Parameters
        ----------
        records : int
            Number of records that the batch has read.

        Raises
        ------
        CheckpointStoreError
            When the checkpoint cannot be changed.
        """
        if not self._starts:
            return False
        before = self._limit
        self._batches += 1
        # The shares of the partitions are rounded down, to at least 1: a batch that leaves records
        # unread has at least half of the limit.
        if 2 * records < self.max_records:
            self._limit = None
        elif before is not None and self._batches == _BATCHES:
            self._batches, larger = 0, before * _FACTOR
            self._limit = None if larger >= self._max_records else larger
        else:
            return False
        if self._limit is None:
            self._checkpoint.remove(_FILE)
            self._starts = 0
        else:
            self._store()
        return self._limit != before
