"""Events in the state of the job, through Kafka, a change and restarts.

The streams of one topic have filters, attributes and events that last; the stream `log` has tokens.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from correlation.resources.attributes import Attribute
from correlation.resources.filters import read_filter
from correlation.resources.mapping import EventMapping
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from correlation.resources.tokens import Tokens
from tests.support.job import JobUnderTest, total
from tests.support.kafka import Received, Sent, produce
from tests.support.longest import TOY_CHANNELS, TOY_FOLDER, TOY_KINDS
from tests.support.workload import stream_resource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PREFIX = f"state{uuid.uuid4().hex[:10]}"
TOPIC = f"{PREFIX}-alerts"
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
LOG = Stream(
    "log",
    f"{PREFIX}-log",
    max_uncertainty_us=0,
    max_delay_us=HOUR_US,
    clock="replay",
    mapping=EventMapping("time", id_path=("id",), time_path=("at",), format="epoch_us"),
    tokens=Tokens(("message",), "words", lower_case=True, stop_words=("the",)),
)
CONDITIONS: dict[str, dict[str, Any]] = {
    "near": {
        "kind": "mutual_deadline",
        "a": "smoke",
        "b": "report",
        "window_us": 10 * SECOND_US,
        "threshold": "1",
    },
    # A kind of condition that takes events that last.
    "long": {
        "kind": "long_event",
        "stream": "repair",
        "min_length_us": 2 * SECOND_US,
        "output_topic": None,
        "memory_us": 2 * HOUR_US,
    },
    # Its results have the tokens of the buffered events.
    "show": {
        "kind": "long_event",
        "stream": "log",
        "min_length_us": 0,
        "output_topic": None,
        "memory_us": HOUR_US,
    },
}
FILTERED = ("smoke", "report", "repair")
Sets = dict[str, list[str]]


def smoke(name: str, level: object, seen_us: int) -> dict[str, Any]:
    return {"id": name, "kind": "smoke", "details": {"level": level}, "seen": seen_us}


def repair(name: str, begin_us: int, end_us: int) -> dict[str, Any]:
    return {"id": name, "kind": "repair", "from": begin_us, "to": end_us}


def report(name: str, seen_us: int) -> dict[str, Any]:
    return {"id": name, "kind": "report", "seen": seen_us}


def message(name: str, text: object) -> dict[str, Any]:
    return {"id": name, "at": 5, "message": text}


@pytest.fixture
def job(kafka_bootstrap: str, tmp_path: Path) -> Iterator[JobUnderTest]:
    settings = {"PYTHONPATH": str(TOY_FOLDER)}
    job = JobUnderTest(
        kafka_bootstrap, PREFIX, tmp_path, settings, channels=TOY_CHANNELS, kinds=TOY_KINDS
    )
    job.add_stream(SMOKE, partitions=1)
    job.register(stream_resource(REPORT), stream_resource(REPAIR))
    job.add_stream(LOG, partitions=1)
    job.register(*(Resource("condition", name, 1, 0, it) for name, it in CONDITIONS.items()))
    try:
        job.start()
        yield job
    finally:
        job.process.stop(5)


def send(job: JobUnderTest, topic: str, *events: dict[str, Any]) -> None:
    produce(job.bootstrap, topic, [Sent(json.dumps(it).encode(), b"k") for it in events])


def buffered(slots: list[dict[str, Any]], stream: str) -> int:
    return sum(
        int(value)
        for slot in slots
        for name, labels, value in slot["gauges"]
        if name == "buffered_events" and labels["stream"] == stream
    )


def results_of(records: list[Received], *conditions: str) -> list[dict[str, Any]]:
    found = [json.loads(it.value or b"") for it in records]
    return [it for it in found if it["condition"] in conditions]


def results(job: JobUnderTest, count: int) -> tuple[set[tuple[str, str]], dict[str, int]]:
    """Return the pairs, and the lengths of the long events."""
    names = ("near", "long")
    records = job.read(job.topics.alarms, lambda records: len(results_of(records, *names)) >= count)
    found = results_of(records, *names)
    assert len(found) == count
    pairs = {(it["a"]["id"], it["b"]["id"]) for it in found if it["condition"] == "near"}
    lengths = {it["id"]: it["length_us"] for it in found if it["condition"] == "long"}
    return pairs, lengths


def buffered_before(job: JobUnderTest, name: str) -> Sets:
    """Return the tokens of the events that were buffered when an event was read."""
    results: list[dict[str, Any]] = []

    def is_reported(records: list[Received]) -> bool:
        results[:] = results_of(records, "show")
        return any(it["id"] == name for it in results)

    job.read(job.topics.alarms, is_reported)
    (earlier,) = [it["earlier"] for it in results if it["id"] == name]
    found: Sets = earlier
    return found


def test_events_are_kept_over_a_restart(job: JobUnderTest) -> None:
    check_filters(job)
    sets = check_tokens(job)

    assert job.stop() == 0
    send(job, TOPIC, report("p2", 8 * SECOND_US), repair("r2", 0, 5 * SECOND_US), {"id": "other"})
    send(job, LOG.topic, message("e4", "a"))
    job.start()
    check_filters_after_a_restart(job)
    assert buffered_before(job, "e4") == sets

    check_changed_tokens(job, [*sets, "e4"])


def check_filters(job: JobUnderTest) -> None:
    """Check that each stream of a topic takes its own events."""
    send(
        job,
        TOPIC,
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
        for name in FILTERED
    }
    assert counts == {"smoke": (1, 6, 1, 1), "report": (1, 7, 0, 1), "repair": (2, 5, 1, 2)}
    letters = job.dead_letters(*FILTERED, count=2)
    assert {it.headers["coincide.error.reason"] for it in letters} == {
        b"bad_attribute",
        b"longer_than_declared",
    }
    assert total(slots, "events_late_total") == 0


def check_filters_after_a_restart(job: JobUnderTest) -> None:
    pairs, lengths = results(job, 4)
    assert pairs == {("s1", "p1"), ("s1", "p2")}
    assert lengths == {"r1": 59 * SECOND_US, "r2": 5 * SECOND_US}
    slots = job.wait_for_slots(lambda found: total(found, "events_filtered_total") == 25)
    assert buffered(slots, "repair") == 3
    assert sum(total(slots, "events_rejected_total", stream=it) for it in FILTERED) == 2


def check_tokens(job: JobUnderTest) -> Sets:
    """Check that bad tokens are dead letters; return the sets of the buffered events."""
    send(
        job,
        LOG.topic,
        message("e1", "The disk is FULL, disk!"),
        message("bad", ["disk"]),
        message("e2", None),
        message("large", " ".join(map(str, range(10_001)))),
    )
    assert buffered_before(job, "e2") == {}
    letters = job.dead_letters("log", count=2)
    assert [
        (
            json.loads(it.value or b"")["id"],
            it.headers["coincide.error.reason"],
            it.headers["coincide.error.detail"],
        )
        for it in letters
    ] == [
        ("bad", b"bad_tokens", b"field 'message' must be a string; got a list"),
        ("large", b"bad_tokens", b"field 'message' must have at most 10,000 tokens; got 10,001"),
    ]
    send(job, LOG.topic, message("e3", "FULL stop"))
    sets: Sets = {"e1": ["disk", "full", "is"], "e2": []}
    assert buffered_before(job, "e3") == sets
    return {**sets, "e3": ["full", "stop"]}


def check_changed_tokens(job: JobUnderTest, former: list[str]) -> None:
    """Check that sets of words and of n-grams are not mixed, also after a restart."""
    starts = job.states().count("starting")
    changed = stream_resource(replace(LOG, tokens=Tokens(("message",), "ngrams:3")))
    job.register(replace(changed, version=2))
    job.wait_for_job(lambda _: job.states().count("starting") == starts + 1)
    send(job, LOG.topic, message("e5", "disk"))
    sets: Sets = {name: [] for name in former}
    assert buffered_before(job, "e5") == sets
    assert job.stop() == 0
    send(job, LOG.topic, message("e6", "full"))
    job.start()
    assert buffered_before(job, "e6") == {**sets, "e5": ["dis", "isk"]}
