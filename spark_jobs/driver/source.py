"""The records of the query: all topics from the offsets of the checkpoint, or ranges of offsets."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from spark_jobs.source.reading import RangeReading, StreamReading
from spark_jobs.source.source import RANGE_FORMAT, STREAM_FORMAT, ranges_of, stream_of
from spark_jobs.worker.packing import Packing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.settings import Settings
    from spark_jobs.worker.in_force import InForce
    from spark_jobs.worker.positions import Positions


def read_topics(
    session: SparkSession,
    settings: Settings,
    in_force: InForce,
    partitions: Mapping[str, int],
    max_records: int,
    tasks: int,
    starts: Positions | None = None,
    ends: Positions | None = None,
) -> DataFrame:
    """Read all topics from the offsets of the checkpoint, or without one from their beginning.

    Parameters
    ----------
    session : SparkSession
        Session.
    settings : Settings
        Settings of the job.
    in_force : InForce
        Streams and slots of this run.
    partitions : mapping of topic to int
        Number of partitions of each event topic.
    max_records : int
        Max number of events and heartbeats of a batch.
    tasks : int
        Max number of tasks.
    starts : Positions or None
        Offsets at which a query without offsets in its checkpoint begins, instead of the beginning.
    ends : Positions or None
        Offsets at which the partitions end, whatever the limit of a batch and `until_offsets` are.

    Returns
    -------
    DataFrame
        Packed rows (`PACKED_SCHEMA`).
    """
    until = {it: found for it, found in settings.until_offsets.items() if it in partitions}
    reading = StreamReading(
        in_force.run_id,
        _group(settings),
        settings.client,
        _packing(settings, in_force),
        tasks,
        # Partitions are listed: an added partition is read only after every part of the job knows
        # it.
        dict(partitions),
        max_records if ends is None else sys.maxsize,
        starts or {},
        until if ends is None else ends,
    )
    session.dataSource.register(stream_of(reading))
    return session.readStream.format(STREAM_FORMAT).load()


def read_ranges(
    session: SparkSession,
    settings: Settings,
    in_force: InForce,
    ranges: Mapping[str, Mapping[int, tuple[int, int]]],
    tasks: int,
) -> DataFrame:
    """Read the events of ranges of offsets once, without their records.

    Parameters
    ----------
    session, settings, in_force, tasks
        See `read_topics`.
    ranges : mapping of topic to (mapping of partition to (int, int))
        First offset, and end offset, of each partition. The query fails if records are missing.

    Returns
    -------
    DataFrame
        Packed rows (`PACKED_SCHEMA`).
    """
    reading = RangeReading(
        f"{in_force.run_id}.ranges",
        _group(settings),
        settings.client,
        _packing(settings, in_force, refills=True),
        tasks,
        {topic: dict(partitions) for topic, partitions in ranges.items()},
    )
    session.dataSource.register(ranges_of(reading))
    return session.read.format(RANGE_FORMAT).load()


def _group(settings: Settings) -> str:
    return f"{settings.prefix}.source"


def _packing(settings: Settings, in_force: InForce, *, refills: bool = False) -> Packing:
    return Packing(
        in_force.topics,
        tuple(in_force.streams.values()),
        in_force.slot_keys,
        settings.max_record_bytes,
        in_force.written,
        refills,
        in_force.cache_folder,
    )
