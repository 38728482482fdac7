"""State that the driver monitors while a query runs: batches, lag, heartbeats, streams."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException

from spark_jobs.driver.checkpoint import parse_offsets
from spark_jobs.driver.heartbeats import WAKE_UP, Ticker
from spark_jobs.driver.layout import check_layout
from spark_jobs.driver.left_out_metrics import LeftOutMetrics
from spark_jobs.driver.stalls import Pace, StallWatch
from spark_jobs.errors import CheckpointStoreError, LostLayoutError
from spark_jobs.worker.positions import as_places

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql.streaming.query import StreamingQuery

    from kafka_client.partition_offsets import Place
    from spark_jobs.driver.losses import LossCounter
    from spark_jobs.driver.parts import Parts
    from spark_jobs.driver.streams_in_force import StreamsInForce
    from spark_jobs.settings import Settings

_log = logging.getLogger(__name__)

# Several streams are often registered together; the job restarts once for all of them.
_QUIET_SECONDS = 0.5
# Number of heartbeats without a completed batch after which a query is stalled.
_STALLED_HEARTBEATS = 30
# Max time between two looks that counts: a longer pause of the driver says nothing about the query.
_STEP_SECONDS = 2.0


def watch_for_stalls(settings: Settings) -> StallWatch:
    """Return the watch of a query that starts now.

    Parameters
    ----------
    settings : Settings
        Settings of the job. The pause between two batches is added to both limits.
    """
    return StallWatch(
        settings.trigger_seconds + _STALLED_HEARTBEATS * settings.heartbeat_seconds,
        settings.trigger_seconds + settings.max_batch_seconds,
        _STEP_SECONDS,
        time.monotonic(),
    )


class Watched:
    """State that the driver monitors while a query runs.

    Parameters
    ----------
    parts : Parts
        Objects of the job.
    in_force : StreamsInForce
        Streams that the query reads.
    missing : frozenset of str
        Registered streams that cannot be read.
    losses : LossCounter
        Counter of lost records.
    """

    def __init__(
        self, parts: Parts, in_force: StreamsInForce, missing: frozenset[str], losses: LossCounter
    ) -> None:
        self._parts = parts
        self._in_force = in_force
        self._missing = missing
        self._losses = losses
        self._is_truncated = False
        self._ticker = Ticker(
            in_force.streams, in_force.partitions, parts.offsets, parts.reporter.heartbeat_clock
        )
        self._completed: dict[Place, int] = {}
        self._batch = -1
        # Number of records that the newest batch has read.
        self.records = 0
        self._next_tick = 0.0
        self._registered = parts.watch.streams
        self._stalls = watch_for_stalls(parts.settings)
        self._is_stalled = False
        self._left_out = LeftOutMetrics()
        # Where the query reads next, and the ends that it can read to, as far as known.
        self._read = in_force.select(parts.checkpoint.completed_offsets())
        self._ends: dict[Place, int] = {}

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
        # The source moves back to the end of a truncated partition.
        went_back = any(ends.get(place, at) < at for place, at in self._completed.items())
        self._is_truncated = self._is_truncated or went_back
        self._completed = ends
        self._losses.note_read(self._in_force.select(ends), progress["batchId"])
        reporter = self._parts.reporter
        starts = parse_offsets(*(source["startOffset"] for source in progress["sources"]))
        self.records = sum(
            max(end - starts.get(place, self._read.get(place, end)), 0)
            for place, end in ends.items()
        )
        reporter.progress(progress, self._parts.settings.topics.config, self.records)
        self._read |= self._in_force.select(ends)
        newest = parse_offsets(*(source["latestOffset"] for source in progress["sources"]))
        for place, end in self._in_force.select(newest).items():
            self._ends[place] = max(end, self._ends.get(place, 0))
        reporter.lag(self._lag())
        if progress["batchId"] == self._batch:
            return False
        self._stalls.complete()
        self._left_out.complete(self.records)
        reporter.completed()
        if self._batch < 0 or self._is_stalled:
            reporter.state("running", exception=None)
            _log.info("running: batch %d completed", progress["batchId"])
        self._is_stalled = False
        self._batch = progress["batchId"]
        return True

    def needs_restart(self, wanted: Callable[[], StreamsInForce], query: StreamingQuery) -> bool:
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
            self.tick_when_due(query)
        except KafkaException as error:
            # The query fails by itself if it cannot continue without the broker.
            _log.warning("the broker does not answer: %s", error)
        return self._is_truncated

    def tick_when_due(self, query: StreamingQuery) -> None:
        """When due, send heartbeats, report lost records, and measure the lag.

        Raises
        ------
        LostLayoutError
            When the checkpoint was removed: Spark would go on and create a part of it again.
        """
        if time.monotonic() < self._next_tick:
            return
        self._next_tick = time.monotonic() + self._parts.settings.heartbeat_seconds
        self._check_layout()
        try:
            found = self._ticker.tick(self._completed)
            self._ends = self._limited(self._parts.offsets.committed_ends(found.ends))
        except KafkaException as error:
            _log.warning("the broker does not answer: %s", error)
            return
        self._is_truncated = self._is_truncated or self._losses.is_truncated(found.ends)
        self._parts.reporter.heartbeats(found.heartbeats)
        # A job that ends by itself writes all metrics in each batch.
        if not self._parts.settings.until_end and self._left_out.needs_batch():
            self._parts.reporter.heartbeats([WAKE_UP])
        self._parts.reporter.memory(self._parts.memory.look())
        self._losses.look(found.begins, found.ends)
        # A partition is read from its oldest record on.
        for place, begin in found.begins.items():
            self._read[place] = max(begin, self._read.get(place, 0))
        lag = self._lag()
        self._parts.reporter.lag(lag)
        self._stalls.wait(is_waiting=any(lag.values()) or _runs_batch(query))

    def _check_layout(self) -> None:
        """Check that the checkpoint is there; a store that cannot be read is left to Spark."""
        try:
            check_layout(self._parts.checkpoint, self._parts.layout)
        except LostLayoutError:
            raise
        except CheckpointStoreError as error:
            _log.warning("the checkpoint was not checked: %s", error)

    def is_hanging(self) -> bool:
        """Report a stalled query; return whether it hangs and must be restarted."""
        pace = self._stalls.look(time.monotonic())
        if pace is Pace.STALLED and not self._is_stalled:
            self._is_stalled = True
            self._parts.reporter.state("stalled")
            _log.error(
                "stalled: no batch was completed for %d s, %d records are unread; the query is "
                "restarted with new Python workers after %g s (COINCIDE_MAX_BATCH_SECONDS)",
                self._stalls.waited_seconds,
                sum(self._lag().values()),
                self._parts.settings.max_batch_seconds,
            )
        return pace is Pace.HANGING

    def _limited(self, ends: Mapping[Place, int]) -> dict[Place, int]:
        """Return the ends up to which the query reads (COINCIDE_UNTIL_OFFSETS)."""
        fixed = as_places(self._parts.settings.until_offsets)
        return {place: min(end, fixed.get(place, end)) for place, end in ends.items()}

    def _lag(self) -> Mapping[Place, int]:
        """Return the number of unread records of each partition whose end is known."""
        return {
            place: max(end - self._read.get(place, 0), 0)
            for place, end in sorted(self._ends.items())
        }


def _runs_batch(query: StreamingQuery) -> bool:
    """Return whether a batch runs; a look for new records is not a batch."""
    status = query.status
    return bool(status["isTriggerActive"] and status["isDataAvailable"])
