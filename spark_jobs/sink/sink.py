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
have written, in one more transaction with a mark and totals of its own. The job may be killed
between the transactions: Spark then repeats the batch, the tasks that have written return their
shares again, and the driver writes if its mark is missing.

The transactional id contains the partition. A producer fences off earlier producers with the same
id, so a worker that was presumed dead cannot write any more. All jobs of an installation share the
ids, and only the job that has claimed the installation writes (see `spark_jobs.sink.ownership`).
Marks belong to the query, hence to a checkpoint.

Spark imports this module in several processes that describe the query and write nothing. Its
imports are therefore few; those of `spark_jobs.sink.batches` take a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from spark_jobs.sink.options import SinkOptions
from spark_jobs.worker.row_schemas import OUTPUT_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

FORMAT = "coincide-kafka"


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
        Shares of the task's slots (`SlotShares`), even for a repeated batch.
    """

    records: int
    query: str = ""
    shares: tuple[bytes, ...] = ()


class KafkaSink(DataSource):
    """The sink as a Spark data source, with the options of `SinkOptions.to_strings`."""

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
        return KafkaWriter(SinkOptions.from_strings(self.options))


@dataclass(frozen=True)
class KafkaWriter(DataSourceStreamArrowWriter):
    """Writes the rows of one task, and the merged results of all tasks.

    Parameters
    ----------
    options : SinkOptions
        Options of the sink.
    """

    options: SinkOptions

    def write(self, iterator: Iterator[RecordBatch]) -> Written:
        """Write all records of the task in one transaction, unless the batch is already written."""
        from spark_jobs.sink.batches import write_task  # noqa: PLC0415 - see the module

        return Written(*write_task(iterator, self.options))

    # Spark defines the names; it calls the method after all tasks of a batch have succeeded.
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Merge the shares of all slots, and write the merged results in one transaction."""
        shared = [it for it in messages if isinstance(it, Written) and it.shares]
        if not shared:
            return
        from spark_jobs.sink.merged import write_merged  # noqa: PLC0415 - see the module

        shares = [blob for it in shared for blob in it.shares]
        write_merged(batchId, shared[0].query, shares, self.options)
