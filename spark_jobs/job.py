"""The life of the job: a sequence of query runs, each with its own streams in force.

A run ends when the registered streams or the partitions of their topics change, when a topic is
recreated or truncated, when the job is stopped, or when the query fails. With COINCIDE_UNTIL_END
the run and the job end when the existing records are read. Before the next run, the job completes
an unfinished batch with the streams of the run that began it. A change, a stop and a kill therefore
take the same path.
"""

from __future__ import annotations

import logging
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException
from pyspark.errors import PySparkException

from correlation.engine.program import Origin
from spark_jobs.driver.checkpoint import Checkpoint, Layout, check_layout, parse_offsets
from spark_jobs.driver.event_topics import EventTopics
from spark_jobs.driver.heartbeats import WAKE_UP, Ticker
from spark_jobs.driver.losses import LossCounter
from spark_jobs.driver.query import start_query, wait_for_boundary
from spark_jobs.driver.reports import Reporter, describe
from spark_jobs.driver.streams_in_force import StreamsInForce, streams_in_force
from spark_jobs.errors import CheckpointStoreError, QueryFailedError
from spark_jobs.worker.blob_files import BlobFiles
from spark_jobs.worker.operator import InForce

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Collection, Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from kafka_client.partition_offsets import Place
    from spark_jobs.driver.claim import Claim
    from spark_jobs.driver.config_topic import ConfigTopic
    from spark_jobs.driver.config_watch import ConfigWatch
    from spark_jobs.driver.offsets import KafkaOffsets
    from spark_jobs.settings import Settings

_log = logging.getLogger(__name__)

_FILE = "streams.json"
_POLL_SECONDS = 0.1
_SETTLE_SECONDS = 1.0
# Several streams are often registered together; the job restarts once for all of them.
_QUIET_SECONDS = 0.5
_BOUNDARY_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0


@dataclass(frozen=True)
class Parts:
    """Objects that the job uses.

    Parameters
    ----------
    settings, session, layout, checkpoint, config_topic, watch, offsets, reporter, claim
        See their classes.
    clock : callable
        Wall time in µs since 1970.
    stop : threading.Event
        Set when the job must stop.
    """

    settings: Settings
    session: SparkSession
    layout: Layout
    checkpoint: Checkpoint
    config_topic: ConfigTopic
    watch: ConfigWatch
    offsets: KafkaOffsets
    reporter: Reporter
    claim: Claim
    clock: Callable[[], int]
    stop: threading.Event


class Job:
    """Runs queries until it is stopped or, with `until_end`, until all records are read.

    Parameters
    ----------
    parts : Parts
        Objects that the job uses.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._failures = 0
        self._is_done = False
        # Registered streams that cannot be read, because their topics do not exist.
        self._missing: frozenset[str] = frozenset()
        stored = parts.checkpoint.read(_FILE)
        # Streams of the previous run; its unfinished batch may still need them.
        self._begun = (
            StreamsInForce({}, {}) if stored is None else StreamsInForce.from_bytes(stored)
        )
        self._topics = EventTopics(self._begun.topics, parts.offsets.is_deleted)
        self._losses = LossCounter(parts.checkpoint, parts.reporter.lost)
        # Done at the start only: a batch of a running query may read a topic that was recreated
        # in the meantime.
        self._losses.note_begun(
            _of(parts.checkpoint.begun_offsets(), self._begun.places),
            parts.checkpoint.newest_batch(),
        )

    def run(self) -> None:
        """Run until stopped or, with `until_end`, until all records are read.

        Raises
        ------
        QueryFailedError
            When the query fails repeatedly.
        StaleCheckpointError
            When the checkpoint is older than the output in Kafka.
        """
        stop, reporter = self._parts.stop, self._parts.reporter
        while not stop.is_set() and not self._is_done:
            try:
                self._run_once()
            except (PySparkException, KafkaException, CheckpointStoreError) as error:
                self._failures += 1
                self._parts.claim.look()
                reporter.state("failing", exception=describe(error))
                _log.error("the query failed (%d in a row): %s", self._failures, describe(error))
                if self._failures >= self._parts.settings.max_failures:
                    raise QueryFailedError(describe(error)) from error
                stop.wait(min(2.0**self._failures, _LONGEST_PAUSE_SECONDS))

    def _run_once(self) -> None:
        checkpoint = self._parts.checkpoint
        check_layout(checkpoint, self._parts.layout)
        self._wanted()  # raises an error if the config topic is not the same
        # At least as far as the batches: the programs wait for the streams registered there.
        self._parts.watch.read_to_end()
        wanted = self._wanted()
        while not self._topics.is_certain and not self._parts.stop.wait(_SETTLE_SECONDS):
            wanted = self._wanted()
        self._missing = frozenset(self._parts.watch.streams.keys() - wanted.streams.keys())
        begun, found = self._begun, self._topics.found
        recreated, gone = begun.recreated(found), begun.topics.keys() - found.keys()
        self._count_losses(recreated, gone, wanted)
        accepting = self._parts.config_topic.is_accepting
        others = {*recreated, *([self._parts.config_topic.name] if accepting else [])}
        if checkpoint.has_unfinished_batch():
            # Their records are gone, and Spark would request them again and again.
            checkpoint.change_offsets(gone | others)
            begun = begun.without(gone)
            if accepting or begun != wanted:
                # With the streams of its own run, including streams of recreated topics.
                _log.info("completing the unfinished batch")
                self._complete(begun, recreated)
                return
        changed = others | self._begun.topics.keys() - wanted.topics.keys()
        checkpoint.change_offsets(changed)
        self._losses.forget(changed)
        checkpoint.write(_FILE, wanted.to_bytes())
        self._begun = wanted
        if accepting:
            _log.warning("the new config topic replaces the previous one, as accepted")
            self._parts.config_topic.accept()
        self._follow(wanted)

    def _count_losses(
        self,
        recreated: Mapping[str, tuple[str, str]],
        gone: Collection[str],
        wanted: StreamsInForce,
    ) -> None:
        """Report the known losses of topics that were deleted or truncated."""
        parts, losses, checkpoint = self._parts, self._losses, self._parts.checkpoint
        ends = parts.offsets.ends(wanted.places)
        completed = _of(checkpoint.completed_offsets(), self._begun.places)
        losses.note_read(completed, checkpoint.completed_batch())
        parts.reporter.recreated(recreated)
        # Unread records of a deleted stream are not losses.
        registered = {stream.topic for stream in parts.watch.streams.values()}
        losses.count_deleted(registered & {*recreated, *gone})
        ends = {place: end for place, end in ends.items() if place[0] not in recreated}
        losses.count_truncated(ends, checkpoint.newest_batch())
        checkpoint.change_offsets((), ends)
        losses.save()

    def _wanted(self) -> StreamsInForce:
        """Return the registered streams that can be read.

        Raises
        ------
        ConfigTopicError
            When the config topic was recreated since the job read it.
        """
        parts = self._parts
        registered = {stream.topic for stream in parts.watch.streams.values()}
        followed = registered | self._begun.topics.keys() | parts.watch.output_topics
        described = parts.offsets.describe(followed | {parts.config_topic.name})
        config = described.get(parts.config_topic.name)
        parts.config_topic.check(None if config is None else config.id)
        found = self._topics.take(described, followed)
        parts.reporter.missing_topics(parts.watch.output_topics - found.keys())
        parts.reporter.unreadable_records(parts.watch.unreadable)
        return streams_in_force(parts.watch.streams, found, parts.settings.topics)

    def _start(
        self, in_force: StreamsInForce, unread: Collection[str] = (), *, one_batch: bool = False
    ) -> StreamingQuery:
        """Start a query that reads the topics of the streams, except the topics in `unread`."""
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
            Origin(in_force.topic_ids, parts.config_topic.epoch, self._missing),
            paces_metrics=not parts.settings.until_end,
        )
        BlobFiles(parts.checkpoint.cache_folder).clear()
        with parts.checkpoint.naming_store():
            return start_query(
                parts.session,
                parts.settings,
                run,
                {
                    topic: found.partitions
                    for topic, found in in_force.topics.items()
                    if topic not in unread
                },
                parts.layout.shuffle_partitions,
                parts.checkpoint.query_location,
                parts.claim.owner,
                one_batch=one_batch,
            )

    def _complete(self, in_force: StreamsInForce, unread: Collection[str]) -> None:
        """Complete the unfinished batch and run no other batch."""
        parts = self._parts
        query = self._start(in_force, unread, one_batch=True)
        while (
            query.isActive
            and parts.checkpoint.has_unfinished_batch()
            and not parts.stop.wait(_POLL_SECONDS)
        ):
            parts.reporter.refresh()
        self._end(query)

    def _follow(self, in_force: StreamsInForce) -> None:
        """Run the query until the job stops or the query must be restarted."""
        parts = self._parts
        reporter = parts.reporter
        reporter.state(
            "starting",
            streams=sorted(in_force.streams),
            waiting_streams=sorted(self._missing),
        )
        watched = _Watched(parts, in_force, self._missing, self._losses)
        # Losses are counted before the query skips the missing records.
        watched.look_for_losses()
        reporter.heartbeats([WAKE_UP])
        query = self._start(in_force)
        try:
            while query.isActive and not parts.stop.is_set():
                parts.watch.poll(_POLL_SECONDS)
                parts.claim.look()
                if watched.take_progress(query.lastProgress):
                    self._failures = 0
                reporter.refresh()
                if parts.settings.until_end:
                    # The query ends by itself; later registrations take effect in the next job.
                    watched.tick_when_due()
                elif watched.needs_restart(self._wanted):
                    _log.info("the streams or their topics have changed; the query restarts")
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
        self._losses.save()
        if parts.settings.until_end and not parts.stop.is_set():
            watched.take_progress(query.lastProgress)
            self._is_done = True
            _log.info("all existing records have been read")

    def _end(self, query: StreamingQuery) -> None:
        """Stop the query.

        Raises
        ------
        StreamingQueryException, CheckpointStoreError, StaleCheckpointError
            When the query has failed.
        """
        query.stop()
        error = self._parts.checkpoint.query_error(query)
        if error is not None:
            raise error


class _Watched:
    """State that the driver monitors while a query runs."""

    def __init__(
        self, parts: Parts, in_force: StreamsInForce, missing: frozenset[str], losses: LossCounter
    ) -> None:
        self._parts = parts
        self._in_force = in_force
        self._missing = missing
        self._losses = losses
        self._is_truncated = False
        self._ticker = Ticker(in_force.streams, in_force.partitions, parts.offsets, parts.clock)
        self._completed: dict[Place, int] = {}
        self._batch = -1
        self._next_tick = 0.0
        self._registered = parts.watch.streams

    def look_for_losses(self) -> None:
        """Report records lost between the completed batches and the oldest existing records."""
        self._losses.look(self._ticker.begins(), {})

    def take_progress(self, progress: Any) -> bool:  # noqa: ANN401 - a dict of Spark's
        """Record Spark's progress; return whether a batch was completed."""
        if progress is None or not progress["sources"]:
            return False
        ends = parse_offsets(*(source["endOffset"] for source in progress["sources"]))
        if not ends:
            return False
        # Spark itself moves back to the end of a truncated partition.
        went_back = any(ends.get(place, at) < at for place, at in self._completed.items())
        self._is_truncated = self._is_truncated or went_back
        self._completed = ends
        self._losses.note_read(_of(ends, self._in_force.places), progress["batchId"])
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
        """Send heartbeats when due; return whether the query must be restarted."""
        registered = self._parts.watch.streams
        changed = registered != self._registered
        if changed and self._parts.watch.quiet_seconds < _QUIET_SECONDS:
            return False
        due = time.monotonic() >= self._next_tick
        try:
            if changed or due:
                self._registered = registered
                # Checked before watermarks advance: an added partition may hold older events.
                found = wanted()
                missing = registered.keys() - found.streams.keys()
                # The programs keep events for a new stream until a run knows that it is missing.
                if found != self._in_force or missing - self._missing:
                    return True
            self.tick_when_due()
        except KafkaException as error:
            # The query fails by itself if it cannot continue without the broker.
            _log.warning("the broker does not answer: %s", error)
        return self._is_truncated

    def tick_when_due(self) -> None:
        """Send heartbeats when due, and report records that were lost before they were read."""
        if time.monotonic() < self._next_tick:
            return
        self._next_tick = time.monotonic() + self._parts.settings.heartbeat_seconds
        try:
            found = self._ticker.tick(self._completed)
        except KafkaException as error:
            _log.warning("the broker does not answer: %s", error)
            return
        self._is_truncated = self._is_truncated or self._losses.is_truncated(found.ends)
        self._parts.reporter.heartbeats(found.heartbeats)
        self._losses.look(found.begins, found.ends)


def _of(offsets: Mapping[Place, int], places: Collection[Place]) -> dict[Place, int]:
    return {place: offset for place, offset in offsets.items() if place in places}
