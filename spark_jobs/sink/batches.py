"""Write the output of a task in a batch, and open the producers of the parts of the sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import TaskContext

from correlation.kinds import topics_of
from spark_jobs.errors import ProducerFencedError, SparkJobError
from spark_jobs.sink.kept_shares import KeptShares
from spark_jobs.sink.last_worker import is_this_worker, note_this_worker
from spark_jobs.sink.late_records import LateRecords
from spark_jobs.sink.ownership import MERGED, sink_id
from spark_jobs.sink.spool import BlobSpool
from spark_jobs.sink.transactional_client import UnusableProducerError
from spark_jobs.sink.transactions import PartitionProducer, Target
from spark_jobs.worker.envelope import LATE, SHARE, PackedRecords, RecordPacker
from spark_jobs.worker.late_events import LateEvents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyarrow import RecordBatch

    from spark_jobs.settings import Properties
    from spark_jobs.sink.options import Owner, SinkOptions
    from spark_jobs.worker.envelope import Record

# Local properties in which Spark passes the batch number and the query id to a task.
_BATCH = "streaming.sql.batchId"
_QUERY = "sql.streaming.queryId"

# A worker keeps its producers for many batches.
_producers: dict[Target, PartitionProducer] = {}


def write_task(
    iterator: Iterator[RecordBatch], options: SinkOptions
) -> tuple[int, str, tuple[bytes, ...]]:
    """Write all records of a task in one transaction, unless the batch is already written.

    Parameters
    ----------
    iterator : iterator of RecordBatch
        Rows of `OUTPUT_SCHEMA`.
    options : SinkOptions
        Options of the sink.

    Returns
    -------
    (int, str, tuple of bytes)
        Number of records written, id of the query, and shares of the task's slots.
    """
    batch, query, partition = _read_place()
    target = target_of(options.prefix, query, partition, options.owner, options.marks)
    producer = producer_of(target, options.properties)
    if not is_this_worker(partition):
        note_this_worker(partition)
        producer.open_early()
    # All rows are read before the transaction begins: it stays short, and the state of the batch is
    # complete when its output is committed.
    shares: list[bytes] = []
    late: list[LateEvents] = []
    with BlobSpool() as spool:
        for rows in iterator:
            for blob, kind in zip(*(it.to_pylist() for it in rows.columns), strict=True):
                if kind == SHARE:
                    shares.append(blob)
                elif kind == LATE:
                    late.append(LateEvents.from_bytes(blob))
                else:
                    spool.append(blob)
        if late and not _is_written(producer, batch):
            with LateRecords(topics_of(options.prefix), options.properties) as records:
                for blob in records.copy(late):
                    spool.append(blob)
        if shares:
            kept = KeptShares(query, batch, shares, options.ahead or "")
            spool.append(_pack(kept.to_record(target)))
        if not spool.count:
            return 0, "", ()
        # Unpacked one by one while sending: many objects at once would cost garbage collections.
        count = producer.write(batch, PackedRecords(spool))
    return count, query, tuple(shares)


def _pack(record: Record) -> bytes:
    packer = RecordPacker()
    packer.add(record)
    (blob,) = packer.finish()
    return blob


def _read_place() -> tuple[int, str, int]:
    """Return batch, query and partition of this task."""
    context = TaskContext.get()
    batch = context.getLocalProperty(_BATCH) if context else None
    query = context.getLocalProperty(_QUERY) if context else None
    if context is None or batch is None or query is None:
        raise SparkJobError("the sink requires a task of a streaming query")
    return int(batch), query, context.partitionId()


def merge_target(prefix: str, query: str, owner: Owner, marks: Mapping[str, int]) -> Target:
    """Return the target of merged results.

    Parameters
    ----------
    prefix, query, owner, marks
        See `target_of`.
    """
    return _target(prefix, query, MERGED, owner, marks)


def target_of(
    prefix: str, query: str, partition: int, owner: Owner, marks: Mapping[str, int]
) -> Target:
    """Return the target of a partition of the sink.

    Parameters
    ----------
    prefix : str
        Prefix of the installation.
    query : str
        Id of the query, which Spark stores in its checkpoint.
    partition : int
        Number of the partition.
    owner : Owner
        Claim of the job.
    marks : mapping of str to int
        See `spark_jobs.sink.marker.read_marks`.
    """
    return _target(prefix, query, partition, owner, marks)


def _target(
    prefix: str, query: str, part: int | str, owner: Owner, marks: Mapping[str, int]
) -> Target:
    group = mark_group(prefix, query, part)
    return Target(sink_id(prefix, part), group, topics_of(prefix), owner, marks.get(group, 0))


def mark_group(prefix: str, query: str, part: int | str) -> str:
    """Return the group of the marks of a partition, or of MERGED.

    Earlier versions used this name as the transactional id, too.
    """
    return f"{prefix}.{query}.{part}"


def _is_written(producer: PartitionProducer, batch: int) -> bool:
    """Return whether a batch is known to be written; `write` finds out in any case."""
    try:
        return producer.next_batch() > batch
    except (ProducerFencedError, UnusableProducerError):
        return False


def producer_of(target: Target, properties: Properties) -> PartitionProducer:
    """Return this worker's producer for a partition of the sink."""
    if target not in _producers:
        # Fenced off by the new producer: of a query with another number of slots.
        for former in [it for it in _producers if it.transactional_id == target.transactional_id]:
            del _producers[former]
        _producers[target] = PartitionProducer(target, properties)
    return _producers[target]


def drop_producer(target: Target) -> None:
    """Drop this process' producer for a part of the sink, which another process will open."""
    _producers.pop(target, None)
