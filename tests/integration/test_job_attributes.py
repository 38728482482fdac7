"""Attributes, filters and events that last in the job: through Spark, Kafka and a restart."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from correlation.resources.attributes import Attribute
from correlation.resources.filters import read_filter
from correlation.resources.mapping import EventMapping
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from tests.support.job import JobUnderTest, total
from tests.support.kafka import Sent, produce
from tests.support.longest import TOY_CHANNELS, TOY_FOLDER, TOY_KINDS
from tests.support.workload import stream_resource

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PREFIX = f"attributes{uuid.uuid4().hex[:10]}"
TOPIC = f"{PREFIX}-alerts"
# A kind of condition that takes events that last.
KIND = Attribute("kind", ("kind",))
LEVEL = Attribute("level", ("details", "level"), "integer")
HOUR_US = 3_600_000_000
SECOND_US = 1_000_000


def stream(name: str, mapping: EventMapping, where: dict[str, Any], **changes: Any) -> Stream:  # noqa: ANN401 - as Stream
    attributes = (KIND, LEVEL)
    return Stream(
        name,
        TOPIC,
        max_uncertainty_us=0,
        max_delay_us=HOUR_US,
        clock="replay",
        mapping=mapping,
        attributes=attributes,
        where=read_filter(where, attributes),
        **changes,
    )


SEEN = EventMapping("time", id_path=("id",), time_path=("seen",), format="epoch_us")
SMOKE = stream("smoke", SEEN, {"kind": "smoke", "level": {"min": 2}})
REPORT = stream("report", SEEN, {"kind": "report"})
REPAIR = stream(
    "repair",
    EventMapping(
        "lasting", id_path=("id",), begin_path=("from",), end_path=("to",), format="epoch_us"
    ),
    {"kind": "repair"},
    max_length_us=100 * SECOND_US,
)


def smoke(name: str, level: object, seen_us: int) -> dict[str, Any]:
    return {"id": name, "kind": "smoke", "details": {"level": level}, "seen": seen_us}


def repair(name: str, begin_us: int, end_us: int) -> dict[str, Any]:
    return {"id": name, "kind": "repair", "from": begin_us, "to": end_us}


def report(name: str, seen_us: int) -> dict[str, Any]:
    return {"id": name, "kind": "report", "seen": seen_us}


@pytest.fixture(name="job")
def _job(
    kafka_bootstrap: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[JobUnderTest]:
    monkeypatch.setenv("PYTHONPATH", str(TOY_FOLDER))
    job = JobUnderTest(kafka_bootstrap, PREFIX, tmp_path, channels=TOY_CHANNELS, kinds=TOY_KINDS)
    job.add_stream(SMOKE, partitions=1)
    job.register(stream_resource(REPORT), stream_resource(REPAIR))
    pairs = {
        "kind": "mutual_deadline",
        "a": "smoke",
        "b": "report",
        "window_us": 10 * SECOND_US,
        "threshold": "1",
    }
    long = {
        "kind": "long_event",
        "stream": "repair",
        "min_length_us": 2 * SECOND_US,
        "output_topic": None,
        "memory_us": 2 * HOUR_US,
    }
    job.register(
        Resource("condition", "near", 1, 0, pairs), Resource("condition", "long", 1, 0, long)
    )
    try:
        job.start()
        yield job
    finally:
        job.process.stop(5)


def send(job: JobUnderTest, *events: dict[str, Any]) -> None:
    produce(job.bootstrap, TOPIC, [Sent(json.dumps(it).encode(), b"k") for it in events])


def buffered(slots: list[dict[str, Any]], stream: str) -> int:
    return sum(
        int(value)
        for slot in slots
        for name, labels, value in slot["gauges"]
        if name == "buffered_events" and labels["stream"] == stream
    )


def results(job: JobUnderTest, count: int) -> tuple[set[tuple[str, str]], dict[str, int]]:
    """Return the pairs, and the lengths of the long events."""
    found = [
        json.loads(it.value or b"")
        for it in job.read(job.topics.alarms, lambda records: len(records) >= count)
    ]
    assert len(found) == count
    pairs = {(it["a"]["id"], it["b"]["id"]) for it in found if it["condition"] == "near"}
    lengths = {it["id"]: it["length_us"] for it in found if it["condition"] == "long"}
    return pairs, lengths


def test_streams_of_one_topic_with_filters_keep_their_events_over_a_restart(
    job: JobUnderTest,
) -> None:
    send(
        job,
        smoke("s1", 3, 5 * SECOND_US),
        smoke("faint", 1, 6 * SECOND_US),
        smoke("wrong", "high", 6 * SECOND_US),
        repair("r1", SECOND_US, 60 * SECOND_US),
        repair("short", SECOND_US, 2 * SECOND_US),
        repair("endless", SECOND_US, 200 * SECOND_US),
        {"id": "other"},
        report("p1", 7 * SECOND_US),
    )
    assert results(job, 2) == ({("s1", "p1")}, {"r1": 59 * SECOND_US})
    slots = job.wait_for_slots(lambda found: total(found, "events_filtered_total") == 18)
    counts = {
        name: (
            total(slots, "events_consumed_total", stream=name),
            total(slots, "events_filtered_total", stream=name),
            total(slots, "events_rejected_total", stream=name),
            buffered(slots, name),
        )
        for name in ("smoke", "report", "repair")
    }
    assert counts == {"smoke": (1, 6, 1, 1), "report": (1, 7, 0, 1), "repair": (2, 5, 1, 2)}
    letters = job.read(job.topics.dead_letter, lambda records: len(records) >= 2)
    assert {it.headers["coincide.error.reason"] for it in letters} == {
        b"bad_attribute",
        b"longer_than_declared",
    }
    assert total(slots, "events_late_total") == 0

    assert job.stop() == 0
    send(job, report("p2", 8 * SECOND_US), repair("r2", 0, 5 * SECOND_US), {"id": "other"})
    job.start()
    pairs, lengths = results(job, 4)
    assert pairs == {("s1", "p1"), ("s1", "p2")}
    assert lengths == {"r1": 59 * SECOND_US, "r2": 5 * SECOND_US}
    slots = job.wait_for_slots(lambda found: total(found, "events_filtered_total") == 25)
    assert buffered(slots, "repair") == 3
    assert total(slots, "events_rejected_total") == 2
