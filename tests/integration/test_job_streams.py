"""Declarations of streams on their events, in the job: through Kafka, changes and a restart.

The streams `a` and `b` have attributes, which conditions filter; the stream `histograms` has
templates and histograms. The tests share a job.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from correlation.resources.attributes import Attribute
from correlation.resources.histogram import Histogram
from correlation.resources.records import Resource, stream_to_document
from correlation.resources.streams import Stream
from correlation.resources.template import Template
from tests.support.factored import expand
from tests.support.job import JobUnderTest, total
from tests.support.kafka import Sent, produce
from tests.support.patience import MAX_DELAY_US

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

# In the past, so that no event is future-dated.
BEGIN_US = time.time_ns() // 1_000 - 60_000_000
PREFIX = f"streams{uuid.uuid4().hex[:10]}"
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
HALVES = Template("halves", Histogram.from_buckets([[0, 4_000, "0.5"], [4_000, 9_000, "0.5"]]))
OWN = [[1_000, 3_000, 0.15], [3_000, 8_000, 0.85]]
WITH_HISTOGRAMS = Stream(
    "histograms",
    f"{PREFIX}-histograms",
    max_uncertainty_us=20_000,
    max_delay_us=MAX_DELAY_US,
    templates=(HALVES,),
    histograms=True,
)
Lengths = tuple[int, int]


@pytest.fixture(scope="module")
def installation(
    kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JobUnderTest]:
    folder = tmp_path_factory.mktemp("job")
    job = JobUnderTest(kafka_bootstrap, PREFIX, folder)
    # The job needs only the stream; other records do not matter.
    job.register(Resource("template", "halves", 1, 0, {"buckets": HALVES.histogram.to_buckets()}))
    job.add_stream(WITH_HISTOGRAMS)
    for stream in STREAMS.values():
        job.add_stream(stream, partitions=1)
    job.register(*(Resource("condition", name, 1, 0, it) for name, it in CONDITIONS.items()))
    try:
        yield job
    finally:
        job.process.stop(5)


def detection(template: str, latest_us: int | None = None) -> bytes:
    detected = time.time_ns() // 1_000 if latest_us is None else latest_us
    return json.dumps({"detected": detected, "template": template}).encode()


def histogram(shift_us: int, buckets: list[list[float]] = OWN) -> bytes:
    moved = [[lo + shift_us, hi + shift_us, p] for lo, hi, p in buckets]
    return json.dumps({"histogram": moved}).encode()


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


def send_shaped(job: JobUnderTest, *values: bytes) -> None:
    produce(job.bootstrap, WITH_HISTOGRAMS.topic, [Sent(value, b"k") for value in values])


def accepted(slots: list[dict[str, Any]]) -> int:
    """Return the number of accepted events of the stream with templates and histograms."""
    return total(slots, "events_consumed_total", stream=WITH_HISTOGRAMS.name)


def wait_for_shaped(job: JobUnderTest, count: int) -> Lengths:
    """Wait until this number of events is accepted; return their min and max length."""
    slots = job.wait_for_slots(lambda found: accepted(found) >= count)
    assert accepted(slots) == count
    contracts = [
        it for slot in slots for name, it in slot["contracts"].items() if name == "histograms"
    ]
    seen = [it["lengths"] for it in contracts if it["lengths"] is not None]
    return min(it[0] for it in seen), max(it[1] for it in seen)


def register_change(job: JobUnderTest, stream: Stream, version: int) -> None:
    """Register a stream's change, and wait until the query has restarted with it."""
    starts = job.states().count("starting")
    job.register(Resource("stream", stream.name, version, 0, stream_to_document(stream)))
    job.wait_for_job(lambda _: job.states().count("starting") == starts + 1)
    job.wait_for_job(lambda newest: newest["state"] == "running")


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
    (letter,) = job.dead_letters("a", "b", count=1)
    assert letter.headers["coincide.error.reason"] == b"bad_attribute"


def test_histogram_events_are_accepted_and_bad_ones_dead_letters(job: JobUnderTest) -> None:
    now = time.time_ns() // 1_000
    bad = {
        "unknown_template": detection("thirds"),
        "bad_histogram": histogram(now, [*OWN, [8_000, 9_000, 0.1]]),
        "longer_than_declared": histogram(now, [[0, 20_001, 1]]),
    }
    good = [detection("halves") for _ in range(5)]
    before = accepted(job.wait_for_slots(bool))
    send_shaped(job, *good, *bad.values(), histogram(now))
    assert wait_for_shaped(job, before + 6) == (7_000, 9_000)
    letters = job.dead_letters(WITH_HISTOGRAMS.name, count=3)
    found = [(it.headers["coincide.error.reason"], json.loads(it.value or b"")) for it in letters]
    expected = [(reason.encode(), json.loads(value)) for reason, value in bad.items()]
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_buffered_events_and_new_templates_are_kept_across_a_restart(job: JobUnderTest) -> None:
    alarms = {name: pairs_of(wait_for_alarms(job, set()), name) for name in ("plain", "factored")}
    count = take_up_templates(job)
    now_us = BEGIN_US + 5_000_000
    send(job, "b", now_us, {"kept": {"severity": 5}, "low": {"severity": 1}})
    # A pair that does not wait for the restart shows that the events are buffered.
    send(job, "a", now_us, {"before": {"rule": "B"}})
    wait_for_alarms(job, {"before", "kept"})

    assert job.stop() == 0
    send(job, "a", now_us, {"after": {"rule": "A"}, "other": {"rule": "x"}})
    send_shaped(job, detection("thirds"), detection("halves"))
    job.start()

    assert wait_for_shaped(job, count + 2) == (7_000, 11_000)
    found = wait_for_alarms(job, {"after"})
    for name, before in alarms.items():
        mine = [it for it in found if it["condition"] == name and it["a"]["id"] == "after"]
        assert [(it["b"]["id"], it["b"]["attributes"]["severity"]) for it in mine] == [("kept", 5)]
        assert pairs_of(found, name) == sorted([*before, ("after", "kept"), ("before", "kept")])
    check_without_templates(job)


def take_up_templates(job: JobUnderTest) -> int:
    """Check that a new version of a template is in force once the stream takes it up.

    Returns
    -------
    int
        Number of events of the stream that the job has accepted.
    """
    count, pid = accepted(job.wait_for_slots(bool)), job.process.pid
    starts = job.states().count("starting")
    longer = Histogram.from_buckets([[0, 5_000, "0.5"], [5_000, 11_000, "0.5"]])
    job.register(Resource("template", "halves", 2, 0, {"buckets": longer.to_buckets()}))
    send_shaped(job, detection("halves"), histogram(time.time_ns() // 1_000))
    assert wait_for_shaped(job, count + 2) == (7_000, 9_000)
    assert job.states().count("starting") == starts
    templates = (Template("halves", longer, 2), replace(HALVES, name="thirds"))
    register_change(job, replace(WITH_HISTOGRAMS, templates=templates), 2)
    send_shaped(job, detection("halves"), detection("thirds"))
    assert wait_for_shaped(job, count + 4) == (7_000, 11_000)
    assert job.process.pid == pid
    return count + 4


def check_without_templates(job: JobUnderTest) -> None:
    """Check that, without templates and histograms, records that name them are dead letters."""
    before = len(job.dead_letters(WITH_HISTOGRAMS.name))
    register_change(job, replace(WITH_HISTOGRAMS, templates=(), histograms=False), 3)
    send_shaped(job, detection("halves"), histogram(0))
    letters = job.dead_letters(WITH_HISTOGRAMS.name, count=before + 2)[before:]
    reasons = [it.headers["coincide.error.reason"] for it in letters]
    assert sorted(reasons, key=str) == [b"undeclared_histogram", b"unknown_template"]


def test_a_changed_stream_adds_its_attribute_to_alarms(job: JobUnderTest) -> None:
    more = (*ATTRIBUTES, Attribute("unused", ("unused",), "number"))
    register_change(job, replace(STREAMS["a"], attributes=more), 2)
    now_us = BEGIN_US + 20_000_000
    send(job, "b", now_us, {"b9": {"severity": 9}})
    send(job, "a", now_us, {"a9": {"rule": "A"}})
    alarms = wait_for_alarms(job, {"a9", "b9"})
    (alarm,) = (it for it in alarms if it["condition"] == "plain" and it["a"]["id"] == "a9")
    assert alarm["a"]["attributes"]["unused"] == 1
    assert "unused" not in alarm["b"]["attributes"]
