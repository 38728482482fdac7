"""Templates and histograms in the job: through Spark, Kafka, changes and a restart."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from correlation.resources.histogram import Histogram
from correlation.resources.records import Resource, stream_to_document
from correlation.resources.streams import Stream
from correlation.resources.template import Template
from tests.support.job import JobUnderTest, total
from tests.support.kafka import Sent, produce
from tests.support.patience import MAX_DELAY_US

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PREFIX = f"shapes{uuid.uuid4().hex[:10]}"
HALVES = Template("halves", Histogram.from_buckets([[0, 4_000, "0.5"], [4_000, 9_000, "0.5"]]))
OWN = [[1_000, 3_000, 0.15], [3_000, 8_000, 0.85]]
SHAPED = Stream(
    "a",
    f"{PREFIX}-a",
    max_uncertainty_us=20_000,
    max_delay_us=MAX_DELAY_US,
    templates=(HALVES,),
    histograms=True,
)
Lengths = tuple[int, int]


def resource(stream: Stream, version: int) -> Resource:
    return Resource("stream", stream.name, version, 0, stream_to_document(stream))


def detection(template: str, latest_us: int | None = None) -> bytes:
    detected = time.time_ns() // 1_000 if latest_us is None else latest_us
    return json.dumps({"detected": detected, "template": template}).encode()


def histogram(shift_us: int, buckets: list[list[float]] = OWN) -> bytes:
    moved = [[lo + shift_us, hi + shift_us, p] for lo, hi, p in buckets]
    return json.dumps({"histogram": moved}).encode()


@pytest.fixture(scope="module")
def job(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobUnderTest]:
    """Return a running job with a stream of shapes, for all tests of this file."""
    folder = tmp_path_factory.mktemp("job")
    job = JobUnderTest(kafka_bootstrap, PREFIX, folder)
    # The job needs only the stream; other records do not matter.
    job.register(Resource("template", "halves", 1, 0, {"buckets": HALVES.histogram.to_buckets()}))
    job.add_stream(SHAPED)
    try:
        job.start()
        yield job
    finally:
        job.process.stop(5)


def send(job: JobUnderTest, *values: bytes) -> None:
    produce(job.bootstrap, SHAPED.topic, [Sent(value, b"k") for value in values])


def wait_for_events(job: JobUnderTest, count: int) -> Lengths:
    """Wait until this number of events is accepted; return their min and max length."""
    slots = job.wait_for_slots(lambda found: total(found, "events_consumed_total") >= count)
    assert total(slots, "events_consumed_total") == count
    lengths = [slot["contracts"]["a"]["lengths"] for slot in slots if "a" in slot["contracts"]]
    seen = [it for it in lengths if it is not None]
    return min(it[0] for it in seen), max(it[1] for it in seen)


def letters(job: JobUnderTest, count: int) -> list[tuple[str, dict[str, Any]]]:
    found = job.read(job.topics.dead_letter, lambda records: len(records) >= count)
    assert len(found) == count
    return [
        (it.headers["coincide.error.reason"].decode(), json.loads(it.value or b"")) for it in found
    ]


def test_histogram_events_are_accepted_and_bad_ones_dead_letters(job: JobUnderTest) -> None:
    now = time.time_ns() // 1_000
    bad = {
        "unknown_template": detection("thirds"),
        "bad_histogram": histogram(now, [*OWN, [8_000, 9_000, 0.1]]),
        "longer_than_declared": histogram(now, [[0, 20_001, 1]]),
    }
    good = [detection("halves") for _ in range(5)]
    send(job, *good, *bad.values(), histogram(now))
    assert wait_for_events(job, 6) == (7_000, 9_000)
    expected = [(reason, json.loads(value)) for reason, value in bad.items()]
    assert sorted(letters(job, 3), key=str) == sorted(expected, key=str)


def test_new_version_of_a_template_is_in_force_once_the_stream_takes_it_up(
    job: JobUnderTest,
) -> None:
    starts, pid = job.states().count("starting"), job.process.pid
    longer = Histogram.from_buckets([[0, 5_000, "0.5"], [5_000, 11_000, "0.5"]])
    job.register(Resource("template", "halves", 2, 0, {"buckets": longer.to_buckets()}))
    send(job, detection("halves"))
    assert wait_for_events(job, 7) == (7_000, 9_000)
    assert job.states().count("starting") == starts
    changed = replace(
        SHAPED, templates=(Template("halves", longer, 2), replace(HALVES, name="thirds"))
    )
    job.register(resource(changed, 2))
    job.wait_for_job(lambda _: job.states().count("starting") == starts + 1)
    job.wait_for_job(lambda newest: newest["state"] == "running")
    send(job, detection("halves"), detection("thirds"))
    assert wait_for_events(job, 9) == (7_000, 11_000)
    assert job.process.pid == pid


def test_templates_are_in_force_after_a_restart(job: JobUnderTest) -> None:
    assert job.stop() == 0
    send(job, detection("thirds"), detection("halves"))
    job.start()
    assert wait_for_events(job, 11) == (7_000, 11_000)
    # Without them, what names them is a dead letter.
    plain = replace(SHAPED, templates=(), histograms=False)
    starts = job.states().count("starting")
    job.register(resource(plain, 3))
    job.wait_for_job(lambda _: job.states().count("starting") == starts + 1)
    send(job, detection("halves"), histogram(0))
    reasons = [reason for reason, _ in letters(job, 5)]
    assert sorted(reasons[3:]) == ["undeclared_histogram", "unknown_template"]
