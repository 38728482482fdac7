"""Decide how a job begins: with its checkpoint, or with its published state."""

from __future__ import annotations

import logging
import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, Message, Producer

from kafka_client.consumers import open_consumer, read_ranges
from kafka_client.partition_offsets import list_ranges
from spark_jobs.driver.checkpoint import make_layout, write_layout
from spark_jobs.driver.config_topic import note_config_topic
from spark_jobs.driver.rebuild import (
    Plan,
    describe_plan,
    holding,
    make_states,
    read_plan,
    store_plan,
    without_events,
)
from spark_jobs.errors import CheckpointMismatchError, DeliveryError
from spark_jobs.worker.slot_records import Generation, generation_of, read_generations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from spark_jobs.driver.checkpoint import Checkpoint, Layout
    from spark_jobs.settings import Properties, Settings

_log = logging.getLogger(__name__)

_ANSWER_SECONDS = 30.0
# The topic is compacted, but its newest segments may have many records of each slot.
_READ_SECONDS = 600.0


def read_state(properties: Properties, topic: str) -> dict[bytes, bytes]:
    """Return the newest value of each key of the state topic.

    Parameters
    ----------
    properties : mapping
        librdkafka properties.
    topic : str
        Name of the topic. Its transactions must be decided: the job has claimed the installation.

    Raises
    ------
    KafkaException
        When the topic cannot be read.
    """
    found: dict[bytes, bytes] = {}
    place = (topic, 0)
    with closing(open_consumer(properties, f"{topic}.reader")) as consumer:
        ranges = list_ranges(consumer, [place], _ANSWER_SECONDS)
        for message in read_ranges(consumer, ranges, time.monotonic() + _READ_SECONDS):
            key, value = message.key() or b"", message.value()
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value
    return found


def remove_records(properties: Properties, topic: str, keys: Iterable[bytes]) -> None:
    """Write tombstones for keys of the state topic.

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
        raise DeliveryError(f"{topic}: the records of former slots cannot be removed: {cause}")


def prepare_layout(
    checkpoint: Checkpoint,
    session: SparkSession,
    layout: Layout,
    settings: Settings,
    values: Mapping[bytes, bytes],
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

    Raises
    ------
    CheckpointMismatchError
        When the output in Kafka was continued with another checkpoint.
    RebuildError, UnknownRecordVersionError
        When the published state is not complete, or another version of this software wrote it.
    KafkaException, DeliveryError
        When Kafka does not answer.
    """
    plan = read_plan(checkpoint)
    if plan is not None:
        return _apply(checkpoint, layout, plan)
    if checkpoint.newest_batch() >= 0:
        _check_newest(layout, read_generations(values))
        return layout
    if values and settings.without_checkpoint == "beginning":
        _log.warning("all topics are read from their beginning; their alarms are written again")
        remove_records(settings.client, settings.topics.state, values)
        return layout
    generations = read_generations(values)
    if not generations:
        return layout
    plan = _plan(session, layout, generations, settings.slots)
    if settings.without_checkpoint == "now":
        slots = tuple(it and without_events(it) for it in plan.slots)
        plan = replace(plan, slots=slots)
    config_ids = {it.config_topic_id for it in plan.slots if it is not None}
    note_config_topic(checkpoint, next((it for it in config_ids if it is not None), None))
    _log.info("the checkpoint is empty: the state is rebuilt from Kafka, %s", describe_plan(plan))
    store_plan(checkpoint, plan)
    return _apply(checkpoint, layout, plan)


def _check_newest(layout: Layout, generations: Sequence[Generation]) -> None:
    """Check that no job with another checkpoint, or with a newer copy, has continued since."""
    if not generations:
        return
    newest = generations[0]
    others = {it.checkpoint for it in newest.records.values()} - {layout.id}
    if others or newest.number > layout.generation:
        raise CheckpointMismatchError(
            "COINCIDE_CHECKPOINT: the output in Kafka was continued with another checkpoint, "
            f"{', '.join(sorted(others)) or 'a newer copy of this one'}: use that, or start with "
            "an empty checkpoint: the job then rebuilds its state from Kafka"
        )


def rescale(
    checkpoint: Checkpoint,
    session: SparkSession,
    layout: Layout,
    settings: Settings,
    missing: Callable[[Plan], Sequence[str]],
) -> Layout | None:
    """Plan another number of slots; None if the slots must first complete a batch.

    Parameters
    ----------
    checkpoint, session, layout, settings
        See `prepare_layout`. The checkpoint has no unfinished batch.
    missing : callable
        Returns the problems of a plan whose buffered events cannot be read again.

    Raises
    ------
    CheckpointMismatchError
        When the state cannot be distributed now; the checkpoint remains as it is.
    """
    generations = read_generations(read_state(settings.client, settings.topics.state))
    present = generations[0] if generations else None
    if present is None or present.number != layout.generation or not present.is_level:
        return None
    if names := holding(present):
        raise CheckpointMismatchError(
            f"COINCIDE_SLOTS: is {settings.slots}, but cannot be changed now from "
            f"{present.slots}: the slots have different states of condition {', '.join(names)}, "
            "because events wait for its next block, or the watermark or the declaration of one of "
            "its streams was changed. Set the former number and try again later, or pause the "
            "condition before"
        )
    plan = _plan(session, layout, [present], settings.slots)
    if problems := missing(plan):
        raise CheckpointMismatchError(
            f"COINCIDE_SLOTS: is {settings.slots}, but cannot be changed now from "
            f"{present.slots}: buffered events cannot be read again: {'; '.join(problems)}. Set "
            "the former number, and try again when these events are not needed any more"
        )
    _log.info("the state is distributed to other slots, %s", describe_plan(plan))
    store_plan(checkpoint, plan)
    return _apply(checkpoint, layout, plan)


def _plan(session: SparkSession, layout: Layout, generations: list[Generation], slots: int) -> Plan:
    number, states = make_states(generations, slots)
    return Plan(make_layout(session, len(states), layout.id, number), tuple(states))


def _apply(checkpoint: Checkpoint, layout: Layout, plan: Plan) -> Layout:
    """Replace query and layout of the checkpoint by those of a plan, unless they are its own."""
    if layout != plan.layout:
        # First: without its id, the rest of the former query has no marks in Kafka.
        checkpoint.remove("query/metadata")
        checkpoint.remove("query")
        write_layout(checkpoint, plan.layout)
    return plan.layout


def remove_former(settings: Settings, layout: Layout) -> None:
    """Remove the records of former generations, once all slots of the layout have written."""
    topic = settings.topics.state
    values = read_state(settings.client, topic)
    generations = read_generations(values)
    if generations and generations[0].number == layout.generation and generations[0].is_complete:
        former = [key for key in values if generation_of(key) not in (None, layout.generation)]
        remove_records(settings.client, topic, former)
