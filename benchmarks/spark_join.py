"""The same correlation as Spark's own stream-stream join, the baseline of `benchmarks.path`.

The join reads the same two topics, joins events of equal keys whose latest times are within the
window, with watermarks from the streams' max_delay, and writes each pair as JSON to a topic with
Spark's own Kafka sink. It does not compute probabilities, so it does less work than the job. It
prints the number of rows read so far after each batch. Session and consumer settings are those of
the job, but Spark compiles its plan.
"""

from __future__ import annotations

import os
import sys
import time

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own habit
from pyspark.sql.types import LongType, StringType, StructField, StructType

from spark_jobs.driver.session import open_session
from spark_jobs.settings import Settings

_EVENT = StructType(
    [
        StructField("id", StringType()),
        StructField("key", StringType()),
        StructField("earliest", LongType()),
        StructField("latest", LongType()),
    ]
)
_POLL_SECONDS = 0.2
IDLE = "idle"
# Spark's message when neither events nor the watermark require a batch.
_WAITING = "Waiting for data to arrive"


def read_events(
    session: SparkSession,
    settings: Settings,
    topic: str,
    delay: str,
    schema: StructType = _EVENT,
) -> DataFrame:
    """Read a topic of canonical events with its watermark."""
    records = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", settings.bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", settings.max_events_per_batch // 2)
        .option("kafka.max.poll.records", "10000")
        .option("kafka.max.partition.fetch.bytes", str(8 * 1024 * 1024))
        .load()
    )
    event = F.from_json(F.col("value").cast("string"), schema)
    return (
        records.select(event.alias("event"))
        .select("event.*")
        .withColumn("moment", F.timestamp_micros("latest"))
        .withWatermark("moment", delay)
    )


def pairs(a: DataFrame, b: DataFrame, lower_us: int, upper_us: int) -> DataFrame:
    """Join A with the events of B whose latest times are lower to upper after that of A."""
    left, right = a.alias("a"), b.alias("b")
    near: Column = F.expr(
        f"a.key = b.key AND b.moment >= a.moment + INTERVAL {lower_us} MICROSECONDS "
        f"AND b.moment <= a.moment + INTERVAL {upper_us} MICROSECONDS"
    )
    columns = ("id", "earliest", "latest")
    return left.join(right, near).select(
        F.col("a.key").alias("key"),
        F.to_json(
            F.struct(
                *(F.col(f"a.{name}").alias(f"a_{name}") for name in columns),
                *(F.col(f"b.{name}").alias(f"b_{name}") for name in columns),
            )
        ).alias("value"),
    )


def open_baseline(settings: Settings) -> SparkSession:
    """Return the job's session with the settings of Spark's own operators."""
    session = open_session(settings)
    session.conf.set("spark.sql.streaming.metricsEnabled", "false")
    session.conf.set("spark.sql.shuffle.partitions", str(os.cpu_count() or 1))
    # The job interprets its plan, which has few rows; Spark's operators have many.
    session.conf.set("spark.sql.codegen.wholeStage", "true")
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    return session


def write_until_stopped(rows: DataFrame, output: str, settings: Settings) -> None:
    """Write rows to a topic until the process is stopped.

    Print the number of rows read so far, and `IDLE` if no batch is to follow without new events.
    """
    query = (
        rows.writeStream.format("kafka")
        .option("kafka.bootstrap.servers", settings.bootstrap)
        .option("topic", output)
        .option("checkpointLocation", settings.checkpoint)
        .trigger(processingTime=f"{settings.trigger_seconds} seconds")
        .start()
    )
    batches: dict[int, int] = {}
    while query.isActive:
        for progress in query.recentProgress:
            batches[progress["batchId"]] = progress["numInputRows"]
        # The status is read last: it is not older than the batches.
        state = IDLE if query.status["message"] == _WAITING else "busy"
        print(sum(batches.values()), state, flush=True)
        time.sleep(_POLL_SECONDS)
    query.awaitTermination()


def main(
    topic_a: str, topic_b: str, output: str, lower_us: str, upper_us: str, delay_us: str
) -> None:
    """Run the query until the process is stopped."""
    settings = Settings()
    session = open_baseline(settings)
    delay = f"{int(delay_us) // 1_000} milliseconds"
    joined = pairs(
        read_events(session, settings, topic_a, delay),
        read_events(session, settings, topic_b, delay),
        int(lower_us),
        int(upper_us),
    )
    write_until_stopped(joined, output, settings)


if __name__ == "__main__":
    main(*sys.argv[1:])
