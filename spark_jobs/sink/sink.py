"""The exactly-once Kafka sink: one transaction per task and batch, with the batch's number in it.

A task writes its records in one Kafka transaction. In the same transaction it commits `batch + 1`
as the offset of a marker partition, for a separate consumer group, and writes it to the state topic
(see `spark_jobs.sink.marker`). A task first compares its batch with that mark and skips a batch
that is already written: a batch that Spark repeats has the same input and the same state, hence the
same output. Consumers that read committed records therefore receive every record exactly once,
wherever the job was killed. A mark greater than `batch + 1` is an error: Spark repeats only the
newest batch, so the checkpoint is an old copy and the batch contains new output (see
`spark_jobs.driver.stale_checkpoint`).

Shares of results that need all slots are returned to the driver, which merges them after all tasks
have written, in one more transaction with a mark of its own. The job may be killed between the
transactions: Spark then repeats the batch, the tasks that have written return their shares again,
and the driver writes if its mark is missing.

The transactional id contains the partition. A producer fences off earlier producers with the same
id, so a worker that was presumed dead cannot write any more. All jobs of an installation share the
ids, and only the job that has claimed the installation writes (see `spark_jobs.sink.ownership`).
Marks belong to the query, hence to a checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from correlation.kinds import topics_of
from correlation.shares import merge_shares
from spark_jobs.errors import SparkJobError
from spark_jobs.sink.ownership import MERGED, Owner, sink_id
from spark_jobs.sink.spool import BlobSpool
from spark_jobs.sink.transactions import PartitionProducer, Target
from spark_jobs.worker.envelope import OUTPUT_SCHEMA, PackedRecords
from spark_jobs.worker.results import pack_results
from spark_jobs.worker.shares import SlotShares

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

    from correlation.resources.topics import Topics
    from spark_jobs.settings import Properties

FORMAT = "coincide-kafka"
# Local properties in which Spark passes the batch number and the query id to a task.
_BATCH = "streaming.sql.batchId"
_QUERY = "sql.streaming.queryId"

# A worker keeps its producers for many batches.
_producers: dict[Target, PartitionProducer] = {}


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """Commit message of a task.

    Parameters
    ----------
    records : int
        Number of records written; 0 for a repeated batch.
    query : str
        Id of the query.
    shares : tuple of bytes
        Shares of the task's slots (`SlotShares`), also for a repeated batch.
    """

    records: int
    query: str = ""
    shares: tuple[bytes, ...] = ()


class KafkaSink(DataSource):
    """The sink as a Spark data source, with the options of `sink_options`."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the schema: blobs of output records."""
        return OUTPUT_SCHEMA

    # Spark defines the name of the method.
    def streamWriter(self, schema: StructType, overwrite: bool) -> KafkaWriter:  # noqa: ARG002, FBT001, N802
        """Build the writer that is sent to the tasks."""
        return KafkaWriter(
            prefix=self.options["prefix"],
            properties=orjson.loads(self.options["properties"]),
            owner=Owner(*orjson.loads(self.options["owner"])),
            marks=orjson.loads(self.options["marks"]),
        )


def sink_options(
    prefix: str, properties: Properties, owner: Owner, marks: Mapping[str, int]
) -> dict[str, str]:
    """Return the options of the sink.

    Parameters
    ----------
    prefix : str
        Prefix of the installation, of its topics and of every transactional id.
    properties : mapping
        librdkafka properties of producers.
    owner : Owner
        Claim of the job.
    marks : mapping of str to int
        See `spark_jobs.sink.marker.read_marks`.
    """
    return {
        "prefix": prefix,
        "properties": orjson.dumps(dict(properties)).decode(),
        "owner": orjson.dumps(list(owner)).decode(),
        "marks": orjson.dumps(dict(marks)).decode(),
    }


@dataclass(frozen=True)
class KafkaWriter(DataSourceStreamArrowWriter):
    """Writes the rows of one task, and the merged results of all tasks.

    Parameters
    ----------
    prefix, properties, owner, marks
        See `sink_options`.
    """

    prefix: str
    properties: Properties
    owner: Owner
    marks: Mapping[str, int]

    def write(self, iterator: Iterator[RecordBatch]) -> Written:
        """Write all records of the task in one transaction, unless the batch is already written."""
        # All rows are read before the transaction begins: it stays short, and the state of the
        # batch is complete when its output is committed.
        shares: list[bytes] = []
        with BlobSpool() as spool:
            for rows in iterator:
                for blob, is_share in zip(*(it.to_pylist() for it in rows.columns), strict=True):
                    (shares.append if is_share else spool.append)(blob)
            if not spool.count and not shares:
                return Written(0)
            batch, query, partition = _read_place()
            target = target_of(self.prefix, query, partition, self.owner, self.marks)
            # Unpacked one by one while sending: many objects at once would cost garbage
            # collections.
            count = producer_of(target, self.properties).write(batch, PackedRecords(spool))
        return Written(count, query, tuple(shares))

    # Spark defines the names; it calls the method after all tasks of a batch have succeeded.
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Merge the shares of all slots, and write the merged results in one transaction."""
        written = [it for it in messages if isinstance(it, Written)]
        shares = [SlotShares.from_bytes(blob) for it in written for blob in it.shares]
        if not shares:
            return
        query = next(it.query for it in written if it.shares)
        target = merge_target(self.prefix, query, self.owner, self.marks)
        blobs = pack_merged(shares, target.topics)
        if blobs:
            producer_of(target, self.properties).write(batchId, PackedRecords(blobs))


def _read_place() -> tuple[int, str, int]:
    """Return batch, query and partition of this task."""
    context = TaskContext.get()
    batch = context.getLocalProperty(_BATCH) if context else None
    query = context.getLocalProperty(_QUERY) if context else None
    if context is None or batch is None or query is None:
        raise SparkJobError("the sink requires a task of a streaming query")
    return int(batch), query, context.partitionId()


def pack_merged(shares: Sequence[SlotShares], topics: Topics) -> list[bytes]:
    """Merge the shares of all slots; return the packed records of the results.

    Raises
    ------
    MissingShareError
        A slot has no share.
    """
    rest = shares[0].slots - len(shares)
    merged = merge_shares([*(it.shares for it in shares), *[()] * rest])
    detected_at_us = max(it.detected_at_us for it in shares)
    results = (result for it in merged for result in it.results)
    later = (blob for it in shares for blob in it.later)
    return [*pack_results(results, detected_at_us, topics), *later]


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


def producer_of(target: Target, properties: Properties) -> PartitionProducer:
    """Return this worker's producer for a partition of the sink."""
    if target not in _producers:
        _producers[target] = PartitionProducer(target, properties)
    return _producers[target]
