"""The streaming query: source, transform and sink put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.driver.source import read_kafka
from spark_jobs.sink.sink import FORMAT, KafkaSink, sink_options
from spark_jobs.worker.transform import transform

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from spark_jobs.settings import Settings
    from spark_jobs.worker.operator import InForce

_IDLE = "1 day"


def start_query(
    session: SparkSession,
    settings: Settings,
    in_force: InForce,
    topic_partitions: Mapping[str, int],
    shuffle_partitions: int,
    checkpoint: str,
    *,
    one_batch: bool,
) -> StreamingQuery:
    """Start the query.

    Parameters
    ----------
    session : SparkSession
        To run it in.
    settings : Settings
        Of the job.
    in_force : InForce
        Streams and slots of this run.
    topic_partitions : mapping of topic to int
        Event topics and how many partitions they have.
    shuffle_partitions : int
        Of the stateful operator.
    checkpoint : str
        Where Spark keeps the query's state.
    one_batch : bool
        Whether it runs the batch that was begun, and then idles. Otherwise the settings say
        whether it ends by itself where the topics end now.
    """
    session.conf.set("spark.sql.shuffle.partitions", str(shuffle_partitions))
    records = read_kafka(session, settings, topic_partitions)
    readers = session.sparkContext.defaultParallelism
    output = transform(records, in_force, settings.max_record_bytes, readers)
    session.dataSource.register(KafkaSink)
    options = sink_options(settings.prefix, settings.client)
    writer = (
        output.writeStream.format(FORMAT)
        .queryName("coincide")
        .outputMode("append")
        .options(**options)
        .option("checkpointLocation", checkpoint)
    )
    if settings.until_end and not one_batch:
        return writer.trigger(availableNow=True).start()
    # The first batch runs at once.
    pause = _IDLE if one_batch else f"{settings.trigger_seconds} seconds"
    return writer.trigger(processingTime=pause).start()
