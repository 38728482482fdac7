"""The streaming query, composed of source, transform and sink."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from spark_jobs.driver.source import read_topics
from spark_jobs.sink.options import SinkOptions
from spark_jobs.sink.sink import FORMAT, KafkaSink
from spark_jobs.worker.transform import transform

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from spark_jobs.settings import Settings
    from spark_jobs.sink.options import Owner
    from spark_jobs.worker.in_force import InForce
    from spark_jobs.worker.positions import Positions

_IDLE = "1 day"


class FirstBatch(NamedTuple):
    """Begin of a query without batches.

    Parameters
    ----------
    starts, ends : Positions or None
        Offsets at which its first batch begins and ends; see `read_topics`.
    initial : DataFrame or None
        See `transform`.
    ahead : str or None
        See `SinkOptions`.
    """

    starts: Positions | None = None
    ends: Positions | None = None
    initial: DataFrame | None = None
    ahead: str | None = None


def start_query(
    session: SparkSession,
    settings: Settings,
    in_force: InForce,
    topic_partitions: Mapping[str, int],
    shuffle_partitions: int,
    checkpoint: str,
    owner: Owner,
    marks: Mapping[str, int],
    max_records: int,
    *,
    one_batch: bool,
    first: FirstBatch | None = None,
) -> StreamingQuery:
    """Start the query.

    Parameters
    ----------
    session : SparkSession
        Session that runs the query.
    settings : Settings
        Settings of the job.
    in_force : InForce
        Streams and slots of this run.
    topic_partitions : mapping of topic to int
        Event topics and their number of partitions.
    shuffle_partitions : int
        Number of partitions of the stateful operator.
    checkpoint : str
        Location of the query's state.
    owner : Owner
        Claim of the job.
    marks : mapping of str to int
        See `SinkOptions`.
    max_records : int
        Max number of events and heartbeats of a batch.
    one_batch : bool
        Whether the query runs the unfinished batch and then idles. Otherwise `until_end` of the
        settings decides whether it ends by itself at the current end of the topics.
    first : FirstBatch or None
        How the query begins if it has no batches yet; None: without state, with the oldest records.
    """
    session.conf.set("spark.sql.shuffle.partitions", str(shuffle_partitions))
    # At the start of a job, executors of a cluster may not have registered.
    tasks = max(session.sparkContext.defaultParallelism, shuffle_partitions)
    first = first or FirstBatch()
    packed = read_topics(
        session, settings, in_force, topic_partitions, max_records, tasks, first.starts, first.ends
    )
    output = transform(packed, in_force, first.initial)
    session.dataSource.register(KafkaSink)
    options = SinkOptions(settings.prefix, settings.client, owner, marks, first.ahead)
    writer = (
        output.writeStream.format(FORMAT)
        .queryName("coincide")
        .outputMode("append")
        .options(**options.to_strings())
        .option("checkpointLocation", checkpoint)
    )
    if settings.until_end and not one_batch:
        return writer.trigger(availableNow=True).start()
    # The first batch runs at once.
    pause = _IDLE if one_batch else f"{settings.trigger_seconds} seconds"
    return writer.trigger(processingTime=pause).start()


def wait_for_boundary(query: StreamingQuery, seconds: float) -> bool:
    """Wait until no batch is running; return False after a timeout: the next run repeats it."""
    deadline = time.monotonic() + seconds
    while query.isActive and query.status["isTriggerActive"]:
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.005)
    return True
