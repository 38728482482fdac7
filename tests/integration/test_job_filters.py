"""Attributes and filters in the job: through Spark, Kafka, a stream's change and a restart."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from correlation.resources.attributes import Attribute
from correlation.resources.records import Resource, stream_to_document
from correlation.resources.streams import Stream
from correlation.timing.factored.expanding import expand
from tests.support.job import JobUnderTest
from tests.support.kafka import Sent, produce
from tests.support.patience import MAX_DELAY_US

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

# In the past, so that no event is future-dated.
BEGIN_US = time.time_ns() // 1_000 - 60_000_000
PREFIX = f"filters{uuid.uuid4().hex[:10]}"
ATTRIBUTES = (
    Attribute("rule", ("alert", "rule")),
    Attribute("severity", ("alert", "severity"), "integer"),
    Attribute("partition", ("$partition",), "integer"),
)
STREAMS = {
    name: Stream(name, f"{PREFIX}-{name}", 1_000, MAX_DELAY_US, attributes=ATTRIBUTES)
    for name in ("a", "b")
}
WHERE = {"a": {"rule": ["A", "B"]}, "b": {"severity": {"min": 3}}}
NEAR = {"kind": "mutual_deadline", "window_us": 1_000_000, "threshold": "0.6"}
CONDITIONS = {
    "plain": {**NEAR, "a": "a", "b": "b", "where": WHERE},
    "factored": {**NEAR, "a": "a", "b": "b", "where": WHERE, "output": "factored"},
    # Events of one stream in different roles.
    "self": {**NEAR, "a": "b", "b": "b", "where": {"a": {"rule": "first"}, "b": {"rule": "last"}}},
}


@pytest.fixture(scope="module")
def job(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobUnderTest]:
    """Return a running job with streams of attributes and conditions with filters."""
    folder = tmp_path_factory.mktemp("job")
    job = JobUnderTest(kafka_bootstrap, PREFIX, folder)
    for stream in STREAMS.values():
        job.add_stream(stream, partitions=1)
    job.register(*(Resource("condition", name, 1, 0, it) for name, it in CONDITIONS.items()))
    try:
        job.start()
        yield job
    finally:
        job.process.stop(5)


def send(job: JobUnderTest, stream: str, now_us: int, events: dict[str, object]) -> None:
    """Produce events at a time; each has an id and its `alert`."""
    values = [
        {"id": name, "time": now_us, "alert": alert, "unused": 1} for name, alert in events.items()
    ]
    records = [Sent(json.dumps(value).encode(), b"k") for value in values]
    produce(job.bootstrap, STREAMS[stream].topic, records)


def wait_for_alarms(job: JobUnderTest, ids: set[str], *more: str) -> list[dict[str, Any]]:
    """Wait for alarms of both conditions with these ids, and of more conditions; return all."""

    def read(values: list[bytes | None]) -> list[dict[str, Any]]:
        return list(expand(value or b"" for value in values))

    def complete(records: list[Any]) -> bool:
        alarms = read([it.value for it in records])
        found = {(alarm["condition"], alarm[role]["id"]) for alarm in alarms for role in ("a", "b")}
        complete = {(name, it) for it in ids for name in ("plain", "factored")} <= found
        return complete and {*more} <= {name for name, _ in found}

    return read([it.value for it in job.read(job.topics.alarms, complete)])


def pairs_of(alarms: list[dict[str, Any]], condition: str) -> list[tuple[str, str]]:
    return sorted(
        (alarm["a"]["id"], alarm["b"]["id"]) for alarm in alarms if alarm["condition"] == condition
    )


def test_only_events_that_match_meet_and_alarms_have_attributes(job: JobUnderTest) -> None:
    now_us = BEGIN_US
    send(job, "a", now_us, {"a1": {"rule": "A"}, "a2": {"rule": "C"}, "a3": None})
    send(
        job,
        "b",
        now_us,
        {
            "b1": {"severity": 3, "rule": "last"},
            "b2": {"severity": 2, "rule": "first"},
            "b3": {"rule": "\u00e9"},
            "b4": {"severity": "4"},
        },
    )
    alarms = wait_for_alarms(job, {"a1", "b1"}, "self")
    for name in ("plain", "factored"):
        (alarm,) = (it for it in alarms if it["condition"] == name)
        assert alarm["a"]["attributes"] == {"rule": "A", "severity": None, "partition": 0}
        assert alarm["b"]["attributes"] == {"rule": "last", "severity": 3, "partition": 0}
    assert pairs_of(alarms, "self") == [("b2", "b1")]
    (letter,) = job.read(job.topics.dead_letter, lambda records: len(records) >= 1)
    assert letter.headers["coincide.error.reason"] == b"bad_attribute"


def test_buffered_events_keep_their_attributes_across_a_restart(job: JobUnderTest) -> None:
    now_us = BEGIN_US + 5_000_000
    send(job, "b", now_us, {"kept": {"severity": 5}, "low": {"severity": 1}})
    # A pair that does not wait for the restart shows that the events are buffered.
    send(job, "a", now_us, {"before": {"rule": "B"}})
    wait_for_alarms(job, {"before", "kept"})
    assert job.stop() == 0
    send(job, "a", now_us, {"after": {"rule": "A"}, "other": {"rule": "x"}})
    job.start()
    alarms = wait_for_alarms(job, {"after"})
    for name in ("plain", "factored"):
        mine = [it for it in alarms if it["condition"] == name and it["a"]["id"] == "after"]
        assert [(it["b"]["id"], it["b"]["attributes"]["severity"]) for it in mine] == [("kept", 5)]
        assert pairs_of(alarms, name) == [("a1", "b1"), ("after", "kept"), ("before", "kept")]


def test_a_changed_stream_adds_its_attribute_to_alarms(job: JobUnderTest) -> None:
    more = (*ATTRIBUTES, Attribute("unused", ("unused",), "number"))
    changed = replace(STREAMS["a"], attributes=more)
    starts = job.states().count("starting")
    job.register(Resource("stream", "a", 2, 0, stream_to_document(changed)))
    job.wait_for_job(lambda _: job.states().count("starting") == starts + 1)
    job.wait_for_job(lambda newest: newest["state"] == "running")
    now_us = BEGIN_US + 20_000_000
    send(job, "b", now_us, {"b9": {"severity": 9}})
    send(job, "a", now_us, {"a9": {"rule": "A"}})
    alarms = wait_for_alarms(job, {"a9", "b9"})
    (alarm,) = (it for it in alarms if it["condition"] == "plain" and it["a"]["id"] == "a9")
    assert alarm["a"]["attributes"]["unused"] == 1
    assert "unused" not in alarm["b"]["attributes"]
