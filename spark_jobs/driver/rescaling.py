"""Another number of slots for a job that runs.

The wanted number is that of the config topic, or COINCIDE_SLOTS if none is registered. While it
differs from the number of the query, the job checks from time to time whether the state can be
distributed. If so, the query ends between two batches, and a query with the wanted number continues
with the distributed state. Otherwise the present query goes on.

Before, a batch may be needed after which the slots have the same position, and no events wait for a
block of their slot. If a condition still has different states in the slots after such a batch,
these have another cause, and the next attempts look first whether they have ended.
"""

from __future__ import annotations

import logging
import time
from enum import Enum, auto
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from correlation.errors import UnknownRecordVersionError
from spark_jobs.driver.planning import plan_rescale
from spark_jobs.driver.rebuild import Plan, describe_plan, find_ranges
from spark_jobs.driver.reports import describe
from spark_jobs.errors import RebuildError, RescaleRefusedError, UnequalSlotsError
from spark_jobs.sink.state_topic import read_state

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_jobs.driver.parts import Parts
    from spark_jobs.driver.rebuilding import Rebuilding
    from spark_jobs.driver.streams_in_force import StreamsInForce

_log = logging.getLogger(__name__)

# Pause after a refused attempt; it doubles up to the max.
_FIRST_PAUSE_SECONDS = 1.0
_MAX_PAUSE_SECONDS = 30.0
# The job does nothing else while it reads the state topic.
_READ_SECONDS = 30.0
_REFUSALS = (RescaleRefusedError, RebuildError, UnknownRecordVersionError, KafkaException)


class Attempt(Enum):
    """Result of an attempt to change the number of slots."""

    PLANNED = auto()
    # The slots publish the same position in the next batch, which evaluates all events.
    BATCH_FIRST = auto()
    REFUSED = auto()


class Rescaling:
    """Changes of the number of slots: when one is tried, and why it is not possible.

    Parameters
    ----------
    parts : Parts
        Objects of the job.
    rebuilding : Rebuilding
        Layout of the query.
    clock : callable
        Time in seconds; only differences are used.
    """

    def __init__(
        self, parts: Parts, rebuilding: Rebuilding, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._parts = parts
        self._rebuilding = rebuilding
        self._clock = clock
        self._wanted = rebuilding.slots
        self._problem: str | None = None
        self._pause = _FIRST_PAUSE_SECONDS
        self._next = 0.0
        # The newest batch when a batch was ordered first.
        self._ordered: int | None = None
        # Conditions whose states were different after such a batch.
        self._unequal: frozenset[str] = frozenset()

    @property
    def is_due(self) -> bool:
        """Whether the number of slots must change, and may be tried now; reports the numbers."""
        wanted = self._parts.wanted_slots
        if wanted != self._wanted:
            self._wanted = wanted
            self._reset()
        present = self._rebuilding.slots
        self._parts.reporter.slots(present, wanted, self._problem)
        return present != wanted and self._clock() >= self._next

    def _reset(self) -> None:
        self._problem, self._pause, self._next = None, _FIRST_PAUSE_SECONDS, 0.0
        self._ordered = None
        self._unequal = frozenset()

    def is_possible(self, in_force: StreamsInForce) -> bool:
        """Return whether the query must end for an attempt; called while it runs.

        Parameters
        ----------
        in_force : StreamsInForce
            Streams that the query reads.
        """
        if not self.is_due:
            return False
        try:
            self._look(in_force)
        except _REFUSALS as error:
            self._refuse(error)
            return False
        return True

    def attempt(self, in_force: StreamsInForce) -> Attempt:
        """Replace the query by one with the wanted number of slots, if possible now.

        Parameters
        ----------
        in_force : StreamsInForce
            Streams of the next run. No query runs, and the checkpoint has no unfinished batch.
        """
        completed = self._parts.checkpoint.completed_batch()
        # A batch that failed may have been planned again without the order.
        has_run = self._ordered is not None and completed > self._ordered
        try:
            plan = self._look(in_force, after_batch=has_run)
            if plan is None and has_run:
                raise RescaleRefusedError("the slots have not published the same batch")
        except _REFUSALS as error:
            self._refuse(error)
            self._ordered = None
            return Attempt.REFUSED
        if plan is None:
            self._ordered = completed
            return Attempt.BATCH_FIRST
        _log.info("the state is distributed to other slots, %s", describe_plan(plan))
        self._rebuilding.adopt(plan)
        self._reset()
        return Attempt.PLANNED

    def _look(self, in_force: StreamsInForce, *, after_batch: bool = False) -> Plan | None:
        """Return the plan, or None if a batch must come first.

        Parameters
        ----------
        in_force : StreamsInForce
            Streams of the query.
        after_batch : bool
            Whether such a batch was completed.
        """
        try:
            return self._plan(in_force)
        except UnequalSlotsError as error:
            # Conditions that were equal since then may wait for a block only.
            self._unequal = error.conditions if after_batch else self._unequal & error.conditions
            if self._unequal:
                raise UnequalSlotsError(sorted(self._unequal)) from error
            return None

    def _plan(self, in_force: StreamsInForce) -> Plan | None:
        parts = self._parts
        begins = parts.offsets.begins(in_force.places)

        def missing(plan: Plan) -> list[str]:
            return find_ranges(plan, in_force, begins)[1]

        values = read_state(parts.settings.client, parts.settings.topics.state, _READ_SECONDS)
        layout = self._rebuilding.layout
        return plan_rescale(parts.session, layout, values, self._wanted, missing)

    def _refuse(self, error: Exception) -> None:
        """Note why the number cannot be changed now, and when the next attempt is."""
        problem = describe(error)
        if problem != self._problem:
            _log.warning(
                "the number of slots remains %d and cannot be changed to %d now: %s",
                self._rebuilding.slots,
                self._wanted,
                problem,
            )
        self._problem = problem
        self._next = self._clock() + self._pause
        self._pause = min(2 * self._pause, _MAX_PAUSE_SECONDS)
