"""Detect another job of the same installation, which would write every alarm a second time."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

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
_SILENT_SECONDS = 10.0
_SILENT_US = int(_SILENT_SECONDS * 1_000_000)
_TIMEOUT_SECONDS = 10.0
_LOOK_AGAIN_SECONDS = 2.0
_ENDED = frozenset({"stopped", "failed"})


def refuse_rivals(
    properties: Properties,
    topics: Topics,
    checkpoint_id: str,
    clock: Callable[[], int],
    stop: threading.Event,
    elapsed: Callable[[], float] = time.monotonic,
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
    elapsed : callable
        Time in seconds, from a clock that never jumps.

    Raises
    ------
    RivalJobError
        When another job runs.
    KafkaException
        When the broker does not answer.
    """
    heard: dict[str, _Heard] = {}
    while not stop.is_set():
        spoken = _spoken(properties, topics.metrics, checkpoint_id)
        for checkpoint, at in spoken.items():
            if heard.setdefault(checkpoint, _Heard(at, elapsed())).at != at:
                raise RivalJobError(
                    f"another job with another checkpoint writes to {topics.alarms}: every alarm "
                    "would be written twice; stop that job, or use another COINCIDE_PREFIX"
                )
        if all(
            # The clock of that job, or this one, may have been wrong.
            clock() - at >= _SILENT_US or elapsed() - heard[checkpoint].since >= _SILENT_SECONDS
            for checkpoint, at in spoken.items()
        ):
            return
        stop.wait(_LOOK_AGAIN_SECONDS)


class _Heard(NamedTuple):
    """Time in a job's last record, and when the record was first seen."""

    at: int
    since: float


def _spoken(properties: Properties, topic: str, checkpoint_id: str) -> dict[str, int]:
    """Return the time in the last record of each running job with another checkpoint."""
    spoken: dict[str, int] = {}
    for record in _latest_job_records(properties, topic):
        found = record.get("checkpoint")
        if found is None or found == checkpoint_id:
            continue
        if record["state"] in _ENDED:
            spoken.pop(found, None)
        else:
            spoken[found] = record["at"]
    return spoken


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
