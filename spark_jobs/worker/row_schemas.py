"""Schemas of the rows inside Spark; `spark_jobs.worker.envelope` defines their blobs."""

from __future__ import annotations

from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

PACKED_SCHEMA = StructType(
    [
        StructField("slot_key", IntegerType(), nullable=False),
        StructField("kind", StringType(), nullable=False),
        StructField("position", LongType(), nullable=False),
        StructField("blob", BinaryType(), nullable=False),
    ]
)
# Output of a slot: packed records, its shares (`spark_jobs.worker.shares`), or late events.
OUTPUT_SCHEMA = StructType(
    [
        StructField("blob", BinaryType(), nullable=False),
        StructField("kind", StringType(), nullable=False),
    ]
)
