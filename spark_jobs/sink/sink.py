"""The exactly-once Kafka sink: one transaction per task and batch, with the batch's number in it.

A task writes its records in one Kafka transaction. In the same transaction it commits `batch + 1`
as the offset of a marker partition, for a separate consumer group. A task first compares its batch
with that offset and skips a batch that is already written: a batch that Spark repeats has the same
input and the same state, hence the same output. Consumers that read committed records therefore
receive every record exactly once, wherever the job was killed. An offset greater than `batch + 1`
is an error: Spark repeats only the newest batch, so the checkpoint is an old copy and the batch
contains new output (see `spark_jobs.driver.stale_checkpoint`).

The transactional id contains query and partition. A producer fences off earlier producers with the
same id, so a worker that was presumed dead cannot write any more.
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
from spark_jobs.errors import SparkJobError
from spark_jobs.sink.transactions import PartitionProducer, Target
from spark_jobs.worker.envelope import OUTPUT_SCHEMA, PackedRecords

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

    from spark_jobs.settings import Properties

FORMAT = "coincide-kafka"
# Local properties in which Spark passes the batch number and the query id to a task.
_BATCH = "streaming.sql.batchId"
_QUERY = "sql.streaming.queryId"

# A worker keeps its producers for many batches.
_producers: dict[Target, PartitionProducer] = {}


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """Commit message of a task: the number of records written, 0 for a repeated batch."""

    records: int


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
        )


def sink_options(prefix: str, properties: Properties) -> dict[str, str]:
    """Return the options of the sink.

    Parameters
    ----------
    prefix : str
        Prefix of the installation, of its topics and of every transactional id.
    properties : mapping
        librdkafka properties of producers.
    """
    return {
        "prefix": prefix,
        "properties": orjson.dumps(dict(properties)).decode(),
    }


@dataclass(frozen=True)
class KafkaWriter(DataSourceStreamArrowWriter):
    """Writes the rows of one task.

    Parameters
    ----------
    prefix, properties
        See `sink_options`.
    """

    prefix: str
    properties: Properties

    def write(self, iterator: Iterator[RecordBatch]) -> Written:
        """Write all records of the task in one transaction, unless the batch is already written."""
        # All rows are read before the transaction begins: it stays short, and the state of the
        # batch is complete when its output is committed.
        blobs = [blob for rows in iterator for blob in rows.column(0).to_pylist()]
        if not blobs:
            return Written(0)
        batch, target = self._place()
        # Unpacked one by one while sending: many objects at once would cost garbage collections.
        records = PackedRecords(blobs)
        return Written(producer_of(target, self.properties).write(batch, records))

    def _place(self) -> tuple[int, Target]:
        context = TaskContext.get()
        batch = context.getLocalProperty(_BATCH) if context else None
        query = context.getLocalProperty(_QUERY) if context else None
        if context is None or batch is None or query is None:
            raise SparkJobError("the sink requires a task of a streaming query")
        return int(batch), target_of(self.prefix, query, context.partitionId())


def target_of(prefix: str, query: str, partition: int) -> Target:
    """Return the target of a partition of the sink: its transactional id and topics.

    Parameters
    ----------
    prefix : str
        Prefix of the installation.
    query : str
        Id of the query, which Spark stores in its checkpoint.
    partition : int
        Number of the partition.
    """
    return Target(f"{prefix}.{query}.{partition}", topics_of(prefix))


def producer_of(target: Target, properties: Properties) -> PartitionProducer:
    """Return this worker's producer for a partition of the sink."""
    if target not in _producers:
        _producers[target] = PartitionProducer(target, properties)
    return _producers[target]
