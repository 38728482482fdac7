"""The conditions of the conformance suite through Kafka and Spark, against the rational judge."""

from __future__ import annotations

import json
import random
import uuid
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from correlation.progress import CLOSED, Heartbeat
from correlation.records import heartbeat_to_record
from correlation.streams import Stream
from correlation.timing.conditions import ALGORITHM_CHOICES
from tests.support.job import JobUnderTest
from tests.support.kafka import Sent, produce
from tests.support.slots import (
    CONDITIONS,
    DELAY,
    LONGEST,
    Arrival,
    control_record,
    draw_arrivals,
    judged_pairs,
    judged_verdicts,
)

if TYPE_CHECKING:
    from pathlib import Path

    from correlation.program import Control

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PREFIX = f"conf{uuid.uuid4().hex[:10]}"
EVENTS = 240
# Each condition by every algorithm, and in blocks of a set size.
WAYS: dict[str, dict[str, object]] = {
    **{algorithm: {"algorithm": algorithm} for algorithm in ALGORITHM_CHOICES},
    "blocks": {"block_size": 25},
}
EMITS = ("best", "unmatched")


def _arrivals() -> list[Arrival]:
    rng = random.Random(2010)  # noqa: S311 - a reproducible shuffle, no secret
    return draw_arrivals(rng, EVENTS)


def _controls() -> list[Control]:
    ways = WAYS | {emit: {"emit": emit} for emit in EMITS}
    documents = {
        f"{name}-{way}": {**document, **changes}
        for name, document in CONDITIONS.items()
        for way, changes in ways.items()
    }
    return [control_record(n, *entry) for n, entry in enumerate(documents.items())]


@pytest.fixture(scope="module")
def alarms(
    kafka_bootstrap: str, spark_jar_paths: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[dict[str, Any]]]:
    """Run the job over all events; give the alarms of each condition."""
    folder = tmp_path_factory.mktemp("conformance")
    settings = {"COINCIDE_MAX_EVENTS_PER_BATCH": "90"}
    job = JobUnderTest(kafka_bootstrap, PREFIX, spark_jar_paths[0].parent, folder, settings)
    for name in "xy":
        job.add_stream(Stream(name, f"{PREFIX}-{name}", LONGEST, DELAY, clock="replay"))
    records = [Sent(json.dumps(it.record).encode(), it.key) for it in _controls()]
    produce(job.bootstrap, job.topics.config, records)
    _send(job)
    try:
        job.start()
        job.wait_for_slots(lambda slots: bool(slots) and all(_is_closed(slot) for slot in slots))
    finally:
        job.process.stop(5)
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in job.read(job.topics.alarms):
        alarm = json.loads(record.value or b"")
        found[alarm["condition"]].append(alarm)
    return found


def _send(job: JobUnderTest) -> None:
    for name in "xy":
        sent = []
        for arrival in _arrivals():
            if arrival.stream == name:
                event = {"id": arrival.id, "earliest": arrival.earliest, "latest": arrival.latest}
                sent.append(Sent(json.dumps(event).encode(), arrival.key.encode()))
        placed = produce(job.bootstrap, job.streams[name].topic, sent)
        # Closed from the last record of each partition on, whatever is read first.
        ends: dict[int, int] = {0: 0, 1: 0}
        for partition, offset in placed:
            ends[partition] = max(ends[partition], offset + 1)
        closing = [Heartbeat(name, number, CLOSED, end) for number, end in ends.items()]
        values = [Sent(json.dumps(heartbeat_to_record(it)).encode()) for it in closing]
        produce(job.bootstrap, job.topics.heartbeats, values)


def _is_closed(slot: dict[str, Any]) -> bool:
    return all(slot["low_marks"].get(name, {}).get("mark") == CLOSED for name in "xy")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CONDITIONS)
def test_job_reports_the_judges_pairs_once(
    alarms: dict[str, list[dict[str, Any]]], name: str, way: str
) -> None:
    found = alarms[f"{name}-{way}"]
    pairs = [(alarm["a"]["id"], alarm["b"]["id"]) for alarm in found]
    expected = judged_pairs(_arrivals(), CONDITIONS[name])
    assert len(expected) > 10
    assert sorted(pairs) == sorted(expected)
    assert not any(alarm["late"] for alarm in found)


@pytest.mark.parametrize("name", CONDITIONS)
def test_job_judges_each_a_once(alarms: dict[str, list[dict[str, Any]]], name: str) -> None:
    best = {alarm["a"]["id"]: alarm["b"]["id"] for alarm in alarms[f"{name}-best"]}
    alone = {alarm["a"]["id"]: alarm["b"] for alarm in alarms[f"{name}-unmatched"]}
    assert len(best) + len(alone) == sum(len(alarms[f"{name}-{emit}"]) for emit in EMITS)
    assert best | alone == judged_verdicts(_arrivals(), CONDITIONS[name])
