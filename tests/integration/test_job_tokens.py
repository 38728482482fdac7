"""Tokens in the job: dead letters, and sets in the state over a restart and a change."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from correlation.resources.mapping import EventMapping
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from correlation.resources.tokens import Tokens
from tests.support.job import JobUnderTest
from tests.support.kafka import Sent, produce
from tests.support.longest import TOY_CHANNELS, TOY_FOLDER, TOY_KINDS
from tests.support.workload import stream_resource

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PREFIX = f"tokens{uuid.uuid4().hex[:10]}"
# A kind of condition whose results have the tokens of the buffered events.
HOUR_US = 3_600_000_000
LOG = Stream(
    "log",
    f"{PREFIX}-log",
    max_uncertainty_us=0,
    max_delay_us=HOUR_US,
    clock="replay",
    mapping=EventMapping("time", id_path=("id",), time_path=("at",), format="epoch_us"),
    tokens=Tokens(("message",), "words", lower_case=True, stop_words=("the",)),
)
SHOW = {
    "kind": "long_event",
    "stream": "log",
    "min_length_us": 0,
    "output_topic": None,
    "memory_us": HOUR_US,
}


@pytest.fixture(name="job")
def _job(
    kafka_bootstrap: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[JobUnderTest]:
    monkeypatch.setenv("PYTHONPATH", str(TOY_FOLDER))
    job = JobUnderTest(kafka_bootstrap, PREFIX, tmp_path, channels=TOY_CHANNELS, kinds=TOY_KINDS)
    job.add_stream(LOG, partitions=1)
    job.register(Resource("condition", "show", 1, 0, SHOW))
    try:
        job.start()
        yield job
    finally:
        job.process.stop(5)


def send(job: JobUnderTest, *messages: tuple[str, object]) -> None:
    records = [{"id": name, "at": 5, "message": message} for name, message in messages]
    produce(job.bootstrap, LOG.topic, [Sent(json.dumps(it).encode(), b"k") for it in records])


def buffered_before(job: JobUnderTest, name: str) -> dict[str, list[str]]:
    """Return the tokens of the events that were buffered when an event was read."""
    results: list[dict[str, Any]] = []

    def is_reported(records: list[Any]) -> bool:
        results[:] = [json.loads(it.value or b"") for it in records]
        return any(it["id"] == name for it in results)

    job.read(job.topics.alarms, is_reported)
    (earlier,) = [it["earlier"] for it in results if it["id"] == name]
    found: dict[str, list[str]] = earlier
    return found


def test_sets_survive_a_restart_and_bad_tokens_are_dead_letters(job: JobUnderTest) -> None:
    send(
        job,
        ("e1", "The disk is FULL, disk!"),
        ("bad", ["disk"]),
        ("e2", None),
        ("large", " ".join(map(str, range(10_001)))),
    )
    assert buffered_before(job, "e2") == {}
    letters = job.read(job.topics.dead_letter, lambda records: len(records) >= 2)
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
    send(job, ("e3", "FULL stop"))
    sets: dict[str, list[str]] = {"e1": ["disk", "full", "is"], "e2": []}
    assert buffered_before(job, "e3") == sets

    assert job.stop() == 0
    send(job, ("e4", "a"))
    job.start()
    sets["e3"] = ["full", "stop"]
    assert buffered_before(job, "e4") == sets

    # Sets of words and of n-grams are not mixed.
    starts = job.states().count("starting")
    changed = stream_resource(replace(LOG, tokens=Tokens(("message",), "ngrams:3")))
    job.register(replace(changed, version=2))
    job.wait_for_job(lambda _: job.states().count("starting") == starts + 1)
    send(job, ("e5", "disk"))
    sets = {name: [] for name in ("e1", "e2", "e3", "e4")}
    assert buffered_before(job, "e5") == sets
    assert job.stop() == 0
    send(job, ("e6", "full"))
    job.start()
    assert buffered_before(job, "e6") == {**sets, "e5": ["dis", "isk"]}
