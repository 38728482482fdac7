"""The rebuild of a job's state: its plan, while the query has not reached the slots' positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.driver.planning import adopt_plan, remove_former
from spark_jobs.driver.query import FirstBatch
from spark_jobs.driver.rebuild import (
    Plan,
    describe_problems,
    find_ranges,
    read_plan,
    remove_plan,
)
from spark_jobs.driver.source import read_ranges
from spark_jobs.errors import RebuildError
from spark_jobs.worker.positions import as_places
from spark_jobs.worker.transform import initial_state

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_client.partition_offsets import Place
    from spark_jobs.driver.layout import Layout
    from spark_jobs.driver.parts import Parts
    from spark_jobs.driver.streams_in_force import StreamsInForce
    from spark_jobs.worker.in_force import InForce


class Rebuilding:
    """Layout of the job, and the plan of its rebuild, if any.

    Parameters
    ----------
    parts : Parts
        Objects of the job.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._layout = parts.layout
        self._plan = read_plan(parts.checkpoint)

    @property
    def layout(self) -> Layout:
        """Layout of the query."""
        return self._layout

    @property
    def has_plan(self) -> bool:
        """Whether the query may not have reached the positions of a plan."""
        return self._plan is not None

    @property
    def is_due(self) -> bool:
        """Whether the next batch is the first one of slots that begin with a published state."""
        return self._plan is not None and self._parts.checkpoint.completed_batch() < 0

    @property
    def starts(self) -> dict[Place, int]:
        """Offsets at which the query of the plan begins."""
        return {} if self._plan is None else as_places(self._plan.starts)

    @property
    def slots(self) -> int:
        """Number of slots of the query."""
        return len(self._layout.slot_keys)

    def adopt(self, plan: Plan) -> None:
        """Replace the query by that of a plan; the checkpoint has no unfinished batch."""
        self._layout = adopt_plan(self._parts.checkpoint, plan)
        self._plan = plan

    def plan_for(self, in_force: StreamsInForce, completed: Mapping[Place, int]) -> Plan | None:
        """Return the plan for a run of the query; None when its positions are reached.

        Parameters
        ----------
        in_force : StreamsInForce
            Streams of the run.
        completed : mapping of (topic, partition) to int
            End offsets of the completed batches.
        """
        plan, parts = self._plan, self._parts
        if plan is None:
            return None
        config = parts.config_topic
        used = {*in_force.topics, parts.settings.topics.heartbeats, config.name}
        plan = plan.for_topics(
            used - {*plan.changed_topics(in_force)}, config.name, config.id, config.epoch
        )
        if parts.checkpoint.completed_batch() >= 0 and plan.is_reached(completed):
            remove_former(parts.settings, self._layout, parts.checkpoint.query_id())
            remove_plan(parts.checkpoint)
            self._plan = plan = None
        return plan


def first_batch_of(plan: Plan, in_force: StreamsInForce, run: InForce, parts: Parts) -> FirstBatch:
    """Return how the query of a plan begins.

    Parameters
    ----------
    plan : Plan
        The plan.
    in_force, run
        Streams and parameters of the first run.
    parts : Parts
        Objects of the job.

    Raises
    ------
    RebuildError
        When records of buffered events are missing.
    """
    ranges, problems = find_ranges(plan, in_force, parts.offsets.begins(in_force.places))
    if problems:
        raise RebuildError(describe_problems(problems))
    tasks = parts.session.sparkContext.defaultParallelism
    packed = read_ranges(parts.session, parts.settings, run, ranges, tasks) if ranges else None
    initial = initial_state(parts.session, packed, plan.slots, run)
    if not plan.written:
        # In former first batches, only some slots may have noticed that a stream has changed.
        return FirstBatch(plan.starts, None, initial, "")
    topics = parts.settings.topics
    places = {*in_force.places, (topics.heartbeats, 0)}
    ends = plan.ends(places, topics.config)
    return FirstBatch(plan.starts, ends, initial, parts.ahead)
