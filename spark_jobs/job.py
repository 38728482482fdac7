"""The life of the job: query runs, one after the other, each with its streams in force.

A run ends when the registered streams (or the partitions of their topics) change, when the job is
told to stop, or when the query fails; with COINCIDE_UNTIL_END it ends when what was there is read,
and the job with it. What Spark had begun is completed before the next run with the streams with
which it was begun; so a change, a stop and a kill all take the same path.
"""

from __future__ import annotations

import logging
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException
from pyspark.errors import PySparkException

from spark_jobs.blob_files import BlobFiles
from spark_jobs.checkpoint import Checkpoint, Layout, check_layout, parse_offsets
from spark_jobs.errors import CheckpointStoreError, QueryFailedError
from spark_jobs.event_topics import EventTopics
from spark_jobs.heartbeats import WAKE_UP, Ticker
from spark_jobs.losses import LossCounter
from spark_jobs.operator import InForce
from spark_jobs.query import start_query
from spark_jobs.reports import Reporter, describe
from spark_jobs.streams_in_force import StreamsInForce, streams_in_force

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from spark_jobs.config_watch import ConfigWatch
    from spark_jobs.offsets import KafkaOffsets, Place
    from spark_jobs.settings import Settings

_log = logging.getLogger(__name__)

_FILE = "streams.json"
_POLL_SECONDS = 0.1
_SETTLE_SECONDS = 1.0
# Streams are mostly registered several at a time: one restart for all of them.
_QUIET_SECONDS = 0.5
_BOUNDARY_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0


@dataclass(frozen=True)
class Parts:
    """What the job works with.

    Parameters
    ----------
    settings, session, layout, checkpoint, watch, offsets, reporter
        As their classes say.
    clock : callable
        Wall time in µs since 1970.
    stop : threading.Event
        Set when the job shall stop.
    """

    settings: Settings
    session: SparkSession
    layout: Layout
    checkpoint: Checkpoint
    watch: ConfigWatch
    offsets: KafkaOffsets
    reporter: Reporter
    clock: Callable[[], int]
    stop: threading.Event


class Job:
    """Runs queries until it is told to stop, or until the end of what is there.

    Parameters
    ----------
    parts : Parts
        What it works with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._failures = 0
        self._is_done = False
        stored = parts.checkpoint.read(_FILE)
        # Topics of the run that was begun last; an unfinished batch of it may still need them.
        self._begun = StreamsInForce.from_bytes(stored).topics if stored is not None else {}
        self._topics = EventTopics(self._begun, parts.offsets.is_deleted)
        self._losses = LossCounter(parts.checkpoint, parts.reporter.lost)

    def run(self) -> None:
        """Run until told to stop, or until everything is read where that is wanted.

        Raises
        ------
        QueryFailedError
            When the query fails again and again.
        StaleCheckpointError
            When the checkpoint is older than what was written with it.
        """
        stop, reporter = self._parts.stop, self._parts.reporter
        while not stop.is_set() and not self._is_done:
            try:
                self._run_once()
            except (PySparkException, KafkaException, CheckpointStoreError) as error:
                self._failures += 1
                reporter.state("failing", exception=describe(error))
                _log.error("the query failed (%d in a row): %s", self._failures, describe(error))
                if self._failures >= self._parts.settings.max_failures:
                    raise QueryFailedError(describe(error)) from error
                stop.wait(min(2.0**self._failures, _LONGEST_PAUSE_SECONDS))

    def _run_once(self) -> None:
        checkpoint = self._parts.checkpoint
        check_layout(checkpoint, self._parts.layout)
        wanted = self._wanted()
        while not self._topics.is_certain and not self._parts.stop.wait(_SETTLE_SECONDS):
            wanted = self._wanted()
        stored = checkpoint.read(_FILE)
        if stored is not None and checkpoint.has_unfinished_batch():
            begun = StreamsInForce.from_bytes(stored)
            gone = begun.topics.keys() - self._topics.partitions.keys()
            if gone:
                # Nothing is left of them, and Spark would ask for it again and again.
                checkpoint.forget_topics(gone)
                begun = begun.without(gone)
            if begun != wanted:
                # With the streams with which it was begun.
                _log.info("completing the batch that was begun")
                self._complete(begun)
                return
        checkpoint.write(_FILE, wanted.to_bytes())
        self._begun = wanted.topics
        self._follow(wanted)

    def _wanted(self) -> StreamsInForce:
        """Give the streams that are registered now and can be read."""
        parts = self._parts
        registered = {stream.topic for stream in parts.watch.streams.values()}
        followed = registered | self._begun.keys() | parts.watch.output_topics
        found = self._topics.take(parts.offsets.partitions(), followed)
        parts.reporter.missing_topics(parts.watch.output_topics - found.keys())
        parts.reporter.unreadable_records(parts.watch.unreadable)
        return streams_in_force(parts.watch.streams, found, parts.settings.topics)

    def _start(self, in_force: StreamsInForce, *, one_batch: bool = False) -> StreamingQuery:
        parts = self._parts
        completed = parts.checkpoint.completed_offsets()
        run = InForce(
            uuid.uuid4().hex,
            parts.settings.topics,
            in_force.streams,
            in_force.partitions,
            parts.layout.slot_keys,
            parts.checkpoint.cache_folder,
            {
                name: {
                    number: completed[stream.topic, number]
                    for number in range(in_force.partitions[name])
                    if (stream.topic, number) in completed
                }
                for name, stream in in_force.streams.items()
            },
        )
        BlobFiles(parts.checkpoint.cache_folder).clear()
        with parts.checkpoint.naming_store():
            return start_query(
                parts.session,
                parts.settings,
                run,
                in_force.topics,
                parts.layout.shuffle_partitions,
                parts.checkpoint.query_location,
                one_batch=one_batch,
            )

    def _complete(self, in_force: StreamsInForce) -> None:
        """Complete the batch that was begun, and no other."""
        parts = self._parts
        query = self._start(in_force, one_batch=True)
        while (
            query.isActive
            and parts.checkpoint.has_unfinished_batch()
            and not parts.stop.wait(_POLL_SECONDS)
        ):
            parts.reporter.refresh()
        self._end(query)

    def _follow(self, in_force: StreamsInForce) -> None:
        """Run the query until something calls for its end."""
        parts = self._parts
        reporter = parts.reporter
        reporter.state(
            "starting",
            streams=sorted(in_force.streams),
            waiting_streams=sorted(set(parts.watch.streams) - set(in_force.streams)),
        )
        watched = _Watched(parts, in_force, self._losses)
        # Before the query passes over what is gone, it is counted.
        watched.look_for_losses(parts.checkpoint.completed_offsets())
        reporter.heartbeats([WAKE_UP])
        query = self._start(in_force)
        try:
            while query.isActive and not parts.stop.is_set():
                parts.watch.poll(_POLL_SECONDS)
                if watched.take_progress(query.lastProgress):
                    self._failures = 0
                reporter.refresh()
                if parts.settings.until_end:
                    # The query ends by itself; what is registered meanwhile is for the next job.
                    watched.tick_when_due()
                elif watched.needs_restart(self._wanted):
                    _log.info("the streams have changed: the query starts again")
                    reporter.state("restarting")
                    break
            else:
                if parts.stop.is_set():
                    reporter.state("stopping")
        finally:
            wait_for_boundary(
                query, parts.settings.stop_seconds if parts.stop.is_set() else _BOUNDARY_SECONDS
            )
            self._end(query)
        if parts.settings.until_end and not parts.stop.is_set():
            watched.take_progress(query.lastProgress)
            self._is_done = True
            _log.info("everything that was there is read")

    def _end(self, query: StreamingQuery) -> None:
        """Stop the query.

        Raises
        ------
        StreamingQueryException, CheckpointStoreError, StaleCheckpointError
            When it had failed.
        """
        query.stop()
        error = self._parts.checkpoint.query_error(query)
        if error is not None:
            raise error


class _Watched:
    """What the driver looks at while a query runs."""

    def __init__(self, parts: Parts, in_force: StreamsInForce, losses: LossCounter) -> None:
        self._parts = parts
        self._in_force = in_force
        self._losses = losses
        self._ticker = Ticker(in_force.streams, in_force.partitions, parts.offsets, parts.clock)
        self._completed: dict[Place, int] = {}
        self._batch = -1
        self._next_tick = 0.0
        self._registered = parts.watch.streams

    def look_for_losses(self, completed: dict[Place, int]) -> None:
        """Report what is gone between the completed batches and the oldest records."""
        self._losses.count(self._ticker.begins(), completed)

    def take_progress(self, progress: Any) -> bool:  # noqa: ANN401 - a dict of Spark's
        """Take in Spark's progress; tell whether a batch was completed."""
        if progress is None or not progress["sources"]:
            return False
        ends = parse_offsets(*(source["endOffset"] for source in progress["sources"]))
        if not ends:
            return False
        self._completed = ends
        reporter = self._parts.reporter
        reporter.progress(progress, self._parts.settings.topics.config)
        if progress["batchId"] == self._batch:
            return False
        if self._batch < 0:
            reporter.state("running", exception=None)
            _log.info("running: batch %d completed", progress["batchId"])
        self._batch = progress["batchId"]
        return True

    def needs_restart(self, wanted: Callable[[], StreamsInForce]) -> bool:
        """Send heartbeats every so often; tell whether other streams are to be read now."""
        registered = self._parts.watch.streams
        changed = registered != self._registered
        if changed and self._parts.watch.quiet_seconds < _QUIET_SECONDS:
            return False
        due = time.monotonic() >= self._next_tick
        try:
            if changed or due:
                self._registered = registered
                # Before the low marks move on: a partition that was added may hold older events.
                if wanted() != self._in_force:
                    return True
            self.tick_when_due()
        except KafkaException as error:
            # The query itself says whether it can go on without an answer.
            _log.warning("the broker does not answer: %s", error)
        return False

    def tick_when_due(self) -> None:
        """Send heartbeats every so often, and report what was gone before it was read."""
        if time.monotonic() < self._next_tick:
            return
        self._next_tick = time.monotonic() + self._parts.settings.heartbeat_seconds
        try:
            found = self._ticker.tick(self._completed)
        except KafkaException as error:
            # The query itself says whether it can go on without an answer.
            _log.warning("the broker does not answer: %s", error)
            return
        self._parts.reporter.heartbeats(found.heartbeats)
        self._losses.count(found.begins, self._completed)


def wait_for_boundary(query: StreamingQuery, seconds: float) -> None:
    """Wait until no batch is running, or the time is over: then it is done again later."""
    deadline = time.monotonic() + seconds
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(0.005)
