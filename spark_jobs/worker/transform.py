"""The job as a function from Kafka records to packed output records."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import orjson
from pyspark.sql import functions

from spark_jobs.worker.envelope import BEGIN
from spark_jobs.worker.in_force import InForce
from spark_jobs.worker.operator import SlotProcessor
from spark_jobs.worker.pack import Packer
from spark_jobs.worker.row_schemas import OUTPUT_SCHEMA, PACKED_SCHEMA
from spark_jobs.worker.worker_daemon import ROLE, SLOTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.worker.slot_records import SlotRecord


def transform(
    records: DataFrame,
    in_force: InForce,
    max_record_bytes: int,
    readers: int,
    initial: DataFrame | None = None,
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
    initial : DataFrame or None
        Initial state of the slots for the first batch of a checkpoint; see `initial_state`.

    Returns
    -------
    DataFrame
        Columns of `OUTPUT_SCHEMA`; see `spark_jobs.worker.row_schemas`.
    """
    context = records.sparkSession.sparkContext
    packer = Packer(
        in_force.topics,
        tuple(in_force.streams.values()),
        in_force.slot_keys,
        max_record_bytes,
        in_force.written,
    )
    # Spark measures each row that it passes to Arrow, and a list column again from its first row.
    # Headers in a string column avoid this cost.
    flat = records.withColumn("headers", functions.to_json("headers"))
    packed = flat.coalesce(readers).mapInArrow(packer, PACKED_SCHEMA)
    with workers_for(context, SLOTS):
        return packed.groupBy("slot_key").transformWithStateInPandas(
            SlotProcessor(in_force),
            OUTPUT_SCHEMA,
            outputMode="append",
            timeMode="None",
            initialState=None if initial is None else initial.groupBy("slot_key"),
        )


def initial_state(
    session: SparkSession,
    records: DataFrame | None,
    slots: Sequence[SlotRecord | None],
    in_force: InForce,
    max_record_bytes: int,
) -> DataFrame:
    """Return the initial state of slots that are rebuilt, as packed rows.

    Parameters
    ----------
    session : SparkSession
        Session of the records.
    records : DataFrame or None
        Records of Spark's Kafka source with the events of the buffers; None without any.
    slots : sequence of SlotRecord or None
        Published state of each slot; None: the slot begins without state.
    in_force, max_record_bytes
        See `transform`.
    """
    rows = [
        (key, BEGIN, 0, orjson.dumps(None if found is None else found.to_json()))
        for key, found in zip(in_force.slot_keys, slots, strict=True)
    ]
    begin = session.createDataFrame(rows, PACKED_SCHEMA)
    if records is None:
        return begin
    packer = Packer(
        in_force.topics,
        tuple(in_force.streams.values()),
        in_force.slot_keys,
        max_record_bytes,
        refills=True,
    )
    flat = records.withColumn("headers", functions.lit(None).cast("string"))
    return flat.mapInArrow(packer, PACKED_SCHEMA).union(begin)


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
