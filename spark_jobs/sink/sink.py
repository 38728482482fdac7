"""The exactly-once Kafka sink: one transaction per task and batch, with the batch's number in it.

A task writes its records in one Kafka transaction. In the same transaction it commits `batch + 1`
as the offset of a marker partition, for a consumer group of its own. A task first compares its
batch with that offset and writes nothing if the batch is already in: a batch that Spark repeats has
the same input and the same state, hence the same output. So every record is there once for a
consumer that reads committed records, wherever the job was killed. An offset beyond `batch + 1` is
an error: Spark repeats the newest batch only, so the checkpoint is an old copy, and what comes
under the old number is new (see `spark_jobs.driver.stale_checkpoint`).

The transactional id names query and partition. A producer with an id fences off earlier ones with
the same id, so a worker that was thought dead cannot write any more.
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

from correlation.resources.topics import Topics
from spark_jobs.errors import SparkJobError
from spark_jobs.sink.transactions import PartitionProducer, Target
from spark_jobs.worker.envelope import OUTPUT_SCHEMA, PackedRecords

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

    from spark_jobs.settings import Properties

FORMAT = "coincide-kafka"
# Names under which Spark hands a task the number of its batch and the id of its query.
_BATCH = "streaming.sql.batchId"
_QUERY = "sql.streaming.queryId"

# A worker lives for many batches, and its producers with it.
_producers: dict[Target, PartitionProducer] = {}


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """What a task tells the driver: how many records it wrote, none for a repeated batch."""

    records: int


class KafkaSink(DataSource):
    """The sink as a Spark data source; options as `sink_options` gives them."""

    @classmethod
    def name(cls) -> str:
        """Name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """Blobs of output records."""
        return OUTPUT_SCHEMA

    # The name is Spark's.
    def streamWriter(self, schema: StructType, overwrite: bool) -> KafkaWriter:  # noqa: ARG002, FBT001, N802
        """Make the writer that is sent to the tasks."""
        return KafkaWriter(
            prefix=self.options["prefix"],
            properties=orjson.loads(self.options["properties"]),
        )


def sink_options(prefix: str, properties: Properties) -> dict[str, str]:
    """Give the options of the sink.

    Parameters
    ----------
    prefix : str
        Of the installation: begins the names of its topics, and every transactional id.
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
        """Write all records of the task in one transaction, unless its batch is already in."""
        # Everything is taken before the transaction begins: it stays short, and the state of the
        # batch is complete when its output is committed.
        blobs = [blob for rows in iterator for blob in rows.column(0).to_pylist()]
        if not blobs:
            return Written(0)
        batch, target = self._place()
        # Unpacked one by one as they are sent: many at once would keep the collector busy.
        records = PackedRecords(blobs)
        return Written(producer_of(target, self.properties).write(batch, records))

    def _place(self) -> tuple[int, Target]:
        context = TaskContext.get()
        batch = context.getLocalProperty(_BATCH) if context else None
        query = context.getLocalProperty(_QUERY) if context else None
        if context is None or batch is None or query is None:
            raise SparkJobError("the sink works in the tasks of a streaming query only")
        return int(batch), target_of(self.prefix, query, context.partitionId())


def target_of(prefix: str, query: str, partition: int) -> Target:
    """Return as whom a partition of the sink writes.

    Parameters
    ----------
    prefix : str
        Of the installation.
    query : str
        Id of the query, which Spark keeps in its checkpoint.
    partition : int
        Number of the partition.
    """
    return Target(f"{prefix}.{query}.{partition}", Topics(prefix))


def producer_of(target: Target, properties: Properties) -> PartitionProducer:
    """Give this worker's producer for a partition of the sink."""
    if target not in _producers:
        _producers[target] = PartitionProducer(target, properties)
    return _producers[target]
