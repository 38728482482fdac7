"""Detect another job of the same installation, which would write every alarm a second time."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import orjson

from kafka_client.consumers import open_consumer, read_ranges
from kafka_client.partition_offsets import list_ranges
from spark_jobs.errors import RivalJobError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator

    from confluent_kafka import Message

    from correlation.resources.topics import Topics
    from spark_jobs.settings import Properties

# A running job writes a record every second; job and slots write fewer records than this in it.
_LATEST_RECORDS = 5_000
_SILENT_US = 10_000_000
_TIMEOUT_SECONDS = 10.0
_LOOK_AGAIN_SECONDS = 2.0
_ENDED = frozenset({"stopped", "failed"})


def refuse_rivals(
    properties: Properties,
    topics: Topics,
    checkpoint_id: str,
    clock: Callable[[], int],
    stop: threading.Event,
) -> None:
    """Check that no job with another checkpoint runs in this installation.

    A job that has just died counts as running until it has been silent for ten seconds; the check
    waits for that time.

    Parameters
    ----------
    properties : mapping
        librdkafka properties.
    topics : Topics
        Topics of the installation.
    checkpoint_id : str
        Id of this job's checkpoint.
    clock : callable
        Wall time in µs since 1970.
    stop : threading.Event
        Ends the wait.

    Raises
    ------
    RivalJobError
        When another job runs.
    KafkaException
        When the broker does not answer.
    """
    first: int | None = None
    while not stop.is_set():
        spoke_at = _rival_spoke_at(properties, topics.metrics, checkpoint_id)
        if spoke_at is None or clock() - spoke_at >= _SILENT_US:
            return
        if first is not None and spoke_at > first:
            raise RivalJobError(
                f"another job with another checkpoint writes to {topics.alarms}: every alarm "
                "would be written twice; stop that job, or use another COINCIDE_PREFIX"
            )
        first = spoke_at
        stop.wait(_LOOK_AGAIN_SECONDS)


def _rival_spoke_at(properties: Properties, topic: str, checkpoint_id: str) -> int | None:
    """Return the time of the last record of a running job with another checkpoint, or None."""
    spoken: dict[str, int | None] = {}
    for record in _latest_job_records(properties, topic):
        found = record.get("checkpoint")
        if found is not None and found != checkpoint_id:
            spoken[found] = None if record["state"] in _ENDED else record["at"]
    return max((at for at in spoken.values() if at is not None), default=None)


def _latest_job_records(properties: Properties, topic: str) -> Iterator[dict[str, Any]]:
    for message in _latest(properties, topic):
        value = message.value()
        if message.key() == b"job" and value is not None:
            record = orjson.loads(value)
            if isinstance(record, dict):
                yield record


def _latest(properties: Properties, topic: str) -> Iterator[Message]:
    place = (topic, 0)
    with closing(open_consumer(properties, f"{topic}.rivals")) as consumer:
        there = list_ranges(consumer, [place], _TIMEOUT_SECONDS)[place]
        latest = there._replace(begin=max(there.begin, there.end - _LATEST_RECORDS))
        yield from read_ranges(consumer, {place: latest}, time.monotonic() + _TIMEOUT_SECONDS)
