"""The job as a function from Kafka records to packed output records."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import functions

from spark_jobs.worker.envelope import OUTPUT_SCHEMA, PACKED_SCHEMA
from spark_jobs.worker.operator import InForce, SlotProcessor
from spark_jobs.worker.pack import Packer
from spark_jobs.worker.worker_daemon import ROLE, SLOTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext
    from pyspark.sql import DataFrame


def transform(
    records: DataFrame, in_force: InForce, max_record_bytes: int, readers: int
) -> DataFrame:
    """Correlate Kafka records; return packed output records.

    Parameters
    ----------
    records : DataFrame
        Records of Spark's Kafka source, with headers.
    in_force : InForce
        Streams and slots.
    max_record_bytes : int
        Max length of a record; longer records are written to the dead-letter topic unread.
    readers : int
        Number of tasks that read and pack.

    Returns
    -------
    DataFrame
        Columns of `OUTPUT_SCHEMA`; see `spark_jobs.worker.envelope`.
    """
    context = records.sparkSession.sparkContext
    packer = Packer(
        in_force.topics, tuple(in_force.streams.values()), in_force.slot_keys, max_record_bytes
    )
    # Spark measures each row that it passes to Arrow, and a list column again from its first row.
    # Headers in a string column avoid this cost.
    flat = records.withColumn("headers", functions.to_json("headers"))
    packed = flat.coalesce(readers).mapInArrow(packer, PACKED_SCHEMA)
    with workers_for(context, SLOTS):
        return packed.groupBy("slot_key").transformWithStateInPandas(
            SlotProcessor(in_force), OUTPUT_SCHEMA, outputMode="append", timeMode="None"
        )


@contextmanager
def workers_for(context: SparkContext, role: str) -> Iterator[None]:
    """Assign separate Python workers to the functions that are created within the context.

    Spark keeps a pool of workers for each environment. With an environment per role, a worker that
    holds the programs of slots is not used to pack or to write records.
    """
    before = context.environment.get(ROLE)
    context.environment[ROLE] = role
    try:
        yield
    finally:
        if before is None:
            del context.environment[ROLE]
        else:
            context.environment[ROLE] = before
