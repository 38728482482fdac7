"""The job as a function from packed records to packed output records."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import orjson

from spark_jobs.worker.envelope import BEGIN
from spark_jobs.worker.in_force import InForce
from spark_jobs.worker.operator import SlotProcessor
from spark_jobs.worker.row_schemas import OUTPUT_SCHEMA, PACKED_SCHEMA
from spark_jobs.worker.worker_daemon import ROLE, SLOTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.worker.slot_records import SlotRecord


def transform(packed: DataFrame, in_force: InForce, initial: DataFrame | None = None) -> DataFrame:
    """Correlate packed records; return packed output records.

    Parameters
    ----------
    packed : DataFrame
        Columns of `PACKED_SCHEMA`.
    in_force : InForce
        Streams and slots.
    initial : DataFrame or None
        Initial state of the slots for the first batch of a checkpoint; see `initial_state`.

    Returns
    -------
    DataFrame
        Columns of `OUTPUT_SCHEMA`; see `spark_jobs.worker.row_schemas`.
    """
    with workers_for(packed.sparkSession.sparkContext, SLOTS):
        return packed.groupBy("slot_key").transformWithStateInPandas(
            SlotProcessor(in_force),
            OUTPUT_SCHEMA,
            outputMode="append",
            timeMode="None",
            initialState=None if initial is None else initial.groupBy("slot_key"),
        )


def initial_state(
    session: SparkSession,
    packed: DataFrame | None,
    slots: Sequence[SlotRecord | None],
    in_force: InForce,
) -> DataFrame:
    """Return the initial state of slots that are rebuilt, as packed rows.

    Parameters
    ----------
    session : SparkSession
        Session of the records.
    packed : DataFrame or None
        Packed rows with the events of the buffers; None without any.
    slots : sequence of SlotRecord or None
        Published state of each slot; None: the slot begins without state.
    in_force : InForce
        Streams and slots.
    """
    rows = [
        (key, BEGIN, 0, orjson.dumps(None if found is None else found.to_json()))
        for key, found in zip(in_force.slot_keys, slots, strict=True)
    ]
    begin = session.createDataFrame(rows, PACKED_SCHEMA)
    return begin if packed is None else packed.union(begin)


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
