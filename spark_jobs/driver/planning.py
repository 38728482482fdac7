"""Decide how a query begins: with its checkpoint, or with the published state of the slots."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, Message, Producer

from spark_jobs.driver.config_topic import forget_config_topic, note_config_topic
from spark_jobs.driver.layout import make_layout, replace_layout
from spark_jobs.driver.rebuild import (
    Plan,
    describe_plan,
    describe_problems,
    holding,
    make_states,
    read_plan,
    remove_plan,
    store_plan,
    without_events,
)
from spark_jobs.errors import (
    CheckpointMismatchError,
    DeliveryError,
    RebuildError,
    RescaleRefusedError,
    UnequalSlotsError,
)
from spark_jobs.sink.kept_shares import former_keys
from spark_jobs.sink.marker import METRICS_KEY, totals_key
from spark_jobs.sink.ownership import MERGED, sink_id
from spark_jobs.sink.state_topic import read_state
from spark_jobs.worker.slot_records import Generation, generation_of, read_generations

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from spark_jobs.driver.checkpoint import Checkpoint
    from spark_jobs.driver.layout import Layout
    from spark_jobs.settings import Properties, Settings, WithoutCheckpoint

    # Returns the problems of a plan whose buffered events cannot be read again.
    Missing = Callable[[Plan], Sequence[str]]
    FindWritten = Callable[[], Collection[str]]

_log = logging.getLogger(__name__)

_ANSWER_SECONDS = 30.0


def remove_records(properties: Properties, topic: str, keys: Iterable[bytes]) -> None:
    """Write tombstones for keys of a topic.

    Raises
    ------
    DeliveryError
        When Kafka does not accept them.
    """
    problems: list[KafkaError] = []

    def note(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            problems.append(error)

    producer = Producer({**properties, "enable.idempotence": True})
    for key in keys:
        producer.produce(topic, key=key, on_delivery=note)
    if producer.flush(_ANSWER_SECONDS) or problems:
        cause = problems[0].str() if problems else "no answer in time"
        raise DeliveryError(f"{topic}: the records of the former state cannot be removed: {cause}")


def prepare_layout(
    checkpoint: Checkpoint,
    session: SparkSession,
    layout: Layout,
    settings: Settings,
    values: Mapping[bytes, bytes],
    slots: int,
    find_written: FindWritten = tuple,
) -> Layout:
    """Return the layout of the query; plan a rebuild if the checkpoint has no query.

    Parameters
    ----------
    checkpoint : Checkpoint
        Checkpoint of a job that has claimed the installation.
    session : SparkSession
        Session.
    layout : Layout
        Layout that the checkpoint has.
    settings : Settings
        Settings of the job.
    values : mapping of bytes to bytes
        Newest value of each key of the state topic.
    slots : int
        Wanted number of slots.
    find_written : callable
        Returns the topics of results of the installation to which records were written. Called only
        if the state is missing.

    Raises
    ------
    CheckpointMismatchError
        When the output in Kafka was continued with another checkpoint.
    RebuildError, UnknownRecordVersionError
        When the published state is not complete, is missing although results were written, or
        another version of this software wrote it.
    KafkaException, DeliveryError
        When Kafka does not answer.
    """
    plan = read_plan(checkpoint)
    if plan is not None:
        if layout != plan.layout:
            replace_layout(checkpoint, plan.layout)
        return plan.layout
    if checkpoint.newest_batch() >= 0:
        _check_newest(layout, read_generations(values))
        return layout
    if settings.without_checkpoint == "beginning":
        if values or find_written():
            _forget_state(settings, values)
        return layout
    generations = read_generations(values)
    if not generations:
        # A query whose first batch was not written begins again.
        if checkpoint.query_id() is None and (written := find_written()):
            raise _lost_state("COINCIDE_CHECKPOINT: is empty, and", settings, written)
        return layout
    plan = _plan_rebuild(session, layout, generations, slots, settings.without_checkpoint)
    return _rebuild(checkpoint, plan)


def replace_query(
    checkpoint: Checkpoint,
    session: SparkSession,
    layout: Layout,
    settings: Settings,
    values: Mapping[bytes, bytes],
    slots: int,
    start: WithoutCheckpoint,
    missing: Missing,
    find_written: FindWritten = tuple,
) -> Layout:
    """Replace the query of a checkpoint as if the checkpoint were empty; return its new layout.

    The records that the slots have written count, whatever the checkpoint contains: an unfinished
    batch is not completed, and slots that have written it leave it out (`Plan.written`).

    Parameters
    ----------
    checkpoint, session, settings, values, slots, find_written
        See `prepare_layout`.
    layout : Layout
        Layout that the checkpoint has, with another id: copies of the checkpoint are refused from
        now on.
    start : {"rebuild", "now", "beginning"}
        How the query begins.
    missing : callable
        See `plan_rescale`.

    Raises
    ------
    RebuildError, UnknownRecordVersionError
        When the state cannot be rebuilt; the checkpoint remains as it is.
    KafkaException, DeliveryError
        When Kafka does not answer.
    """
    if start == "beginning":
        _forget_state(settings, values)
        remove_plan(checkpoint)
        layout = make_layout(session, slots, layout.id, layout.generation + 1)
        replace_layout(checkpoint, layout)
        forget_config_topic(checkpoint)
        return layout
    generations = read_generations(values)
    if not generations:
        if checkpoint.query_id() is not None:
            raise RebuildError(
                f"the state of the slots is not in {settings.topics.state}, so the query of the "
                "checkpoint cannot be replaced: start once with --from-beginning (alarms are "
                "written again with the same alarm_id), or without options if this version wrote "
                "the checkpoint"
            )
        if written := find_written():
            raise _lost_state("the checkpoint is empty, and", settings, written)
        replace_layout(checkpoint, layout)
        return layout
    plan = _plan_rebuild(session, layout, generations, slots, start)
    if problems := missing(plan):
        raise RebuildError(describe_problems(problems, is_ordered=True))
    return _rebuild(checkpoint, plan)


def _lost_state(begin: str, settings: Settings, written: Collection[str]) -> RebuildError:
    """Return the error of a job whose state is lost although it has written results."""
    return RebuildError(
        f"{begin} the state of the slots is not in {settings.topics.state}, although results were "
        f"written to {', '.join(sorted(written))}: restore the checkpoint or the records of "
        f"{settings.topics.state} (`coincide restore --only state FILE`), or start once with "
        "--from-beginning (the topics are read from their oldest records, and alarms are written "
        "again with the same alarm_id)"
    )


def _forget_state(settings: Settings, values: Mapping[bytes, bytes]) -> None:
    _log.warning("all topics are read from their beginning; their alarms are written again")
    if totals_key(sink_id(settings.prefix, MERGED)) in values:
        # The metrics of slots are replaced in the first batch; merged results may not come again.
        remove_records(settings.client, settings.topics.metrics, [METRICS_KEY])
    remove_records(settings.client, settings.topics.state, values)


def _plan_rebuild(
    session: SparkSession,
    layout: Layout,
    generations: list[Generation],
    slots: int,
    start: WithoutCheckpoint,
) -> Plan:
    plan = _plan(session, layout, generations, slots)
    if start == "now":
        _log.warning("the buffers are empty; results that need the events of before are lost")
        left = tuple(it and without_events(it) for it in plan.slots)
        return replace(plan, slots=left, from_now=True)
    return plan


def _rebuild(checkpoint: Checkpoint, plan: Plan) -> Layout:
    config_ids = {it.config_topic_id for it in plan.slots if it is not None}
    note_config_topic(checkpoint, next((it for it in config_ids if it is not None), None))
    _log.info("the state is rebuilt from Kafka, %s", describe_plan(plan))
    return adopt_plan(checkpoint, plan)


def _check_newest(layout: Layout, generations: Sequence[Generation]) -> None:
    """Check that no job with another checkpoint, or with a newer copy, has continued since."""
    if not generations:
        return
    newest = generations[0]
    others = {it.checkpoint for it in newest.records.values()} - {layout.id}
    if others or newest.number > layout.generation:
        raise CheckpointMismatchError(
            "COINCIDE_CHECKPOINT: the output in Kafka was continued with another checkpoint, "
            f"{', '.join(sorted(others)) or 'a newer copy of this one'}: use that, or start once "
            "with --rebuild: the job then rebuilds its state from Kafka"
        )


def plan_rescale(
    session: SparkSession,
    layout: Layout,
    values: Mapping[bytes, bytes],
    slots: int,
    missing: Missing,
) -> Plan | None:
    """Plan another number of slots; None if the slots have not written the same batch last.

    Parameters
    ----------
    session : SparkSession
        Session.
    layout : Layout
        Present layout.
    values : mapping of bytes to bytes
        Newest value of each key of the state topic.
    slots : int
        Wanted number of slots.
    missing : callable
        Returns the problems of a plan whose buffered events cannot be read again.

    Raises
    ------
    UnequalSlotsError
        When the slots have different states; if only because events wait for a block, a batch that
        evaluates all events helps.
    RescaleRefusedError
        When the state cannot be distributed now for another reason.
    RebuildError, UnknownRecordVersionError
        When the published state is not complete, or another version of this software wrote it.
    """
    generations = read_generations(values)
    present = generations[0] if generations else None
    if present is None or present.number != layout.generation or not present.is_level:
        return None
    plan = _plan(session, layout, [present], slots)
    if problems := missing(plan):
        raise RescaleRefusedError(
            f"buffered events cannot be read again: {'; '.join(problems)}; wait until these "
            "events are not needed any more"
        )
    # Last: such a batch is in vain if the state cannot be distributed anyway.
    if names := holding(present):
        raise UnequalSlotsError(names)
    return plan


def _plan(session: SparkSession, layout: Layout, generations: list[Generation], slots: int) -> Plan:
    number, states = make_states(generations, slots)
    return Plan(make_layout(session, len(states), layout.id, number), tuple(states))


def adopt_plan(checkpoint: Checkpoint, plan: Plan) -> Layout:
    """Store a plan, which is then in effect even after a kill; return its layout.

    Query and layout of the checkpoint are replaced by those of the plan.
    """
    store_plan(checkpoint, plan)
    replace_layout(checkpoint, plan.layout)
    return plan.layout


def remove_former(settings: Settings, layout: Layout, query: str | None) -> None:
    """Remove the records of former generations and queries, once all slots have written.

    Parameters
    ----------
    settings : Settings
        Settings of the job.
    layout : Layout
        Layout of the query.
    query : str or None
        Id of the query.
    """
    topic = settings.topics.state
    values = read_state(settings.client, topic)
    generations = read_generations(values)
    if generations and generations[0].number == layout.generation and generations[0].is_complete:
        former = [key for key in values if generation_of(key) not in (None, layout.generation)]
        remove_records(settings.client, topic, former + former_keys(values, query))
