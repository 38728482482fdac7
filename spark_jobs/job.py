"""The life of the job: a sequence of query runs, each with its own streams in force.

A run ends when the registered streams or the partitions of their topics change, when a topic is
recreated or truncated, when the number of slots changes, when the job is stopped, or when the query
fails. With COINCIDE_UNTIL_END the run and the job end when the existing records are read. Before
the next run, the job completes an unfinished batch with the streams of the run that began it. A
change, a stop and a kill therefore take the same path.
"""

from __future__ import annotations

import logging
import time
import uuid
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from pyspark.errors import PySparkException

from correlation.engine.origin import Origin
from spark_jobs.driver.event_topics import EventTopics
from spark_jobs.driver.failed_batches import plan_again
from spark_jobs.driver.heartbeats import WAKE_UP
from spark_jobs.driver.layout import check_layout
from spark_jobs.driver.losses import LossCounter
from spark_jobs.driver.query import start_query, wait_for_boundary
from spark_jobs.driver.rebuilding import Rebuilding, first_batch_of
from spark_jobs.driver.replanning import Replanning
from spark_jobs.driver.reports import describe
from spark_jobs.driver.rescaling import Attempt, Rescaling
from spark_jobs.driver.stalls import Pace
from spark_jobs.driver.state_stores import StateStores
from spark_jobs.driver.streams_in_force import StreamsInForce, streams_in_force
from spark_jobs.driver.watched import Watched, watch_for_stalls
from spark_jobs.driver.workers import kill_workers, replace_workers, stop_query
from spark_jobs.errors import CheckpointStoreError, HangingQueryError, QueryFailedError
from spark_jobs.worker.blob_files import BlobFiles
from spark_jobs.worker.in_force import InForce
from spark_jobs.worker.positions import as_places, as_positions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pyspark.sql.streaming.query import StreamingQuery

    from spark_jobs.driver.parts import Parts

_log = logging.getLogger(__name__)

_FILE = "streams.json"
_POLL_SECONDS = 0.1
_SETTLE_SECONDS = 1.0
_BOUNDARY_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
# Errors after which the query is started again, up to `max_failures` times.
_PASSING = (PySparkException, KafkaException, CheckpointStoreError, HangingQueryError)
# Of these, errors that the records of the batch may have caused.
_OF_BATCH = (PySparkException, HangingQueryError)


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
            self._begun.select(parts.checkpoint.begun_offsets()),
            parts.checkpoint.newest_batch(),
        )
        self._rebuilding = Rebuilding(parts)
        self._rescaling = Rescaling(parts, self._rebuilding)
        if self._rebuilding.is_due:
            self._losses.restart_batches()
        self._replanning = Replanning(parts.checkpoint, parts.settings.max_events_per_batch)
        if not self._rebuilding.has_plan:
            self._replanning.discard_unwritten(parts.written)
        self._stores = StateStores(parts.session)

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
            except _PASSING as error:
                self._failures += 1
                self._parts.claim.look()
                reporter.state("failing", exception=describe(error))
                _log.error("the query failed (%d in a row): %s", self._failures, describe(error))
                if self._failures >= self._parts.settings.max_failures:
                    raise QueryFailedError(describe(error)) from error
                stop.wait(min(2.0**self._failures, _LONGEST_PAUSE_SECONDS))
                if isinstance(error, _OF_BATCH) and not stop.is_set():
                    self._plan_again()

    def _may_wait(self) -> bool:
        """Report that the job is alive; return whether it may wait longer."""
        self._parts.reporter.refresh()
        return not self._parts.stop.is_set()

    def _plan_again(self) -> None:
        """Plan the batch of a query that has failed again, if possible now."""
        if not self._rebuilding.has_plan and self._stores.close(self._may_wait):
            plan_again(self._parts, self._rebuilding.layout, self._replanning)

    def _run_once(self) -> None:
        checkpoint = self._parts.checkpoint
        check_layout(checkpoint, self._rebuilding.layout)
        self._parts.claim.settle(self._parts.stop)
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
            if accepting or begun != wanted or self._rescaling.is_due:
                # With the streams of its own run, including streams of recreated topics.
                _log.info("completing the unfinished batch")
                self._complete(begun, recreated)
                return
        changed = others | self._begun.topics.keys() - wanted.topics.keys()
        checkpoint.change_offsets(changed)
        self._losses.forget(changed)
        self._begin(wanted)
        if accepting:
            _log.warning("the new config topic replaces the previous one, as accepted")
            self._parts.config_topic.accept()
        if self._rebuilding.is_due:
            # The first batch of the query; its slots begin with their published state.
            self._losses.note_read(wanted.select(self._rebuilding.starts), 0)
            self._run_batch(wanted)
        elif not self._rescaling.is_due:
            self._follow(wanted)
        elif (attempt := self._rescaling.attempt(wanted)) is Attempt.PLANNED:
            self._losses.restart_batches()
        elif attempt is Attempt.BATCH_FIRST:
            wanted = replace(wanted, is_flushing=True)
            self._begin(wanted)
            self._run_batch(wanted)

    def _begin(self, in_force: StreamsInForce) -> None:
        """Store the streams of a run before its first batch."""
        self._parts.checkpoint.write(_FILE, in_force.to_bytes())
        self._begun = in_force

    def _run_batch(self, in_force: StreamsInForce) -> None:
        """Run one more batch; it has at least a heartbeat."""
        # Losses are counted before the query skips the missing records.
        self._losses.look(self._parts.offsets.begins(in_force.places), {})
        batch = self._parts.checkpoint.completed_batch() + 1
        self._parts.reporter.heartbeats([WAKE_UP])
        self._complete(in_force, (), batch)

    def _count_losses(
        self,
        recreated: Mapping[str, tuple[str, str]],
        gone: Collection[str],
        wanted: StreamsInForce,
    ) -> None:
        """Report the known losses of topics that were deleted or truncated."""
        parts, losses, checkpoint = self._parts, self._losses, self._parts.checkpoint
        ends = parts.offsets.ends(wanted.places)
        completed = self._begun.select(checkpoint.completed_offsets())
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
        plan = self._rebuilding.plan_for(in_force, completed)
        layout = self._rebuilding.layout
        parts.claim.widen(layout.shuffle_partitions)
        # The first batch of a plan begins where the slots have read up to.
        read = completed if completed or plan is None else as_places(plan.starts)
        run = InForce(
            uuid.uuid4().hex,
            parts.settings.topics,
            in_force.streams,
            in_force.partitions,
            layout.slot_keys,
            parts.checkpoint.cache_folder,
            {
                name: {
                    number: read[stream.topic, number]
                    for number in range(in_force.partitions[name])
                    if (stream.topic, number) in read
                }
                for name, stream in in_force.streams.items()
            },
            Origin(in_force.topic_ids, parts.config_topic.epoch, self._missing),
            paces_metrics=not parts.settings.until_end,
            generation=layout.generation,
            checkpoint=layout.id,
            config_topic_id=parts.config_topic.id,
            positions=as_positions(completed),
            written=() if plan is None else plan.written,
            is_flushing=in_force.is_flushing,
        )
        first = None
        if plan is not None and parts.checkpoint.completed_batch() < 0:
            first = first_batch_of(plan, in_force, run, parts)
        BlobFiles(parts.checkpoint.cache_folder).clear()
        parts.checkpoint.remove_unbegun()
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
                layout.shuffle_partitions,
                parts.checkpoint.query_location,
                parts.claim.owner,
                parts.marks,
                self._replanning.max_records,
                one_batch=one_batch,
                first=first,
            )

    def _complete(
        self, in_force: StreamsInForce, unread: Collection[str], batch: int | None = None
    ) -> None:
        """Complete the unfinished batch, or the given one, and run no other batch."""
        parts = self._parts
        batch = parts.checkpoint.newest_batch() if batch is None else batch
        query = self._start(in_force, unread, one_batch=True)
        stalls = watch_for_stalls(parts.settings)
        stalls.wait(is_waiting=True)
        with self._ending(query, 0.0):
            while (
                query.isActive
                and parts.checkpoint.completed_batch() < batch
                and not parts.stop.wait(_POLL_SECONDS)
            ):
                parts.reporter.refresh()
                parts.claim.look()
                if stalls.look(time.monotonic()) is Pace.HANGING:
                    raise HangingQueryError(parts.settings.max_batch_seconds)

    def _follow(self, in_force: StreamsInForce) -> None:
        """Run the query until the job stops or the query must be restarted."""
        parts = self._parts
        reporter = parts.reporter
        reporter.state(
            "starting",
            streams=sorted(in_force.streams),
            waiting_streams=sorted(self._missing),
        )
        watched = Watched(parts, in_force, self._missing, self._losses)
        # Losses are counted before the query skips the missing records.
        watched.look_for_losses()
        reporter.heartbeats([WAKE_UP])
        query = self._start(in_force)
        with self._ending(query, _BOUNDARY_SECONDS):
            while query.isActive and not parts.stop.is_set():
                parts.watch.poll(_POLL_SECONDS)
                parts.claim.look()
                if watched.take_progress(query.lastProgress):
                    self._failures = 0
                    is_other = self._replanning.complete(watched.records)
                    if is_other and not parts.settings.until_end:
                        _log.info("the query restarts with larger batches")
                        reporter.state("restarting")
                        break
                if watched.is_hanging():
                    raise HangingQueryError(parts.settings.max_batch_seconds)
                reporter.refresh()
                if parts.settings.until_end:
                    # The query ends by itself; later registrations take effect in the next job.
                    watched.tick_when_due(query)
                elif watched.needs_restart(self._wanted, query):
                    _log.info("the streams or their topics have changed; the query restarts")
                    reporter.state("restarting")
                    break
                elif self._rescaling.is_possible(in_force):
                    _log.info("the number of slots changes; the query restarts")
                    reporter.state("restarting")
                    break
            else:
                if parts.stop.is_set():
                    reporter.state("stopping")
        self._losses.save()
        if parts.settings.until_end and not parts.stop.is_set():
            watched.take_progress(query.lastProgress)
            self._is_done = True
            _log.info("all existing records have been read")

    @contextmanager
    def _ending(self, query: StreamingQuery, boundary_seconds: float) -> Iterator[None]:
        """Stop the query when the context ends, and replace the workers of a query that hangs.

        Parameters
        ----------
        query : StreamingQuery
            The query.
        boundary_seconds : float
            Max time to wait for the running batch, unless the job stops.

        Raises
        ------
        StreamingQueryException, CheckpointStoreError, StaleCheckpointError
            When the query has failed.
        """
        parts, is_hanging = self._parts, False
        try:
            yield
        except HangingQueryError:
            is_hanging = True
            replace_workers(parts.session)
            raise
        finally:
            is_stopping = parts.stop.is_set()
            seconds = parts.settings.stop_seconds if is_stopping else boundary_seconds
            if not is_hanging and not wait_for_boundary(query, seconds) and is_stopping:
                # The next start repeats the batch, whose workers may hang.
                is_hanging = True
                kill_workers(parts.session)
            self._end(query, is_hanging=is_hanging)

    def _end(self, query: StreamingQuery, *, is_hanging: bool) -> None:
        """Stop the query; raise the error with which it has failed, unless it was hanging."""
        parts = self._parts
        stop_query(parts.session, query, parts.settings.max_batch_seconds, self._may_wait)
        error = None if is_hanging else parts.checkpoint.query_error(query)
        if error is not None:
            raise error
