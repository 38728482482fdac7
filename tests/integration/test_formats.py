"""A job continues where a job of an earlier version has stopped, without its checkpoint."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.crash.judge import judge
from tests.support.formats import FIXTURES, PREFIX, Fixture, Line, restore, sent_events
from tests.support.job import JobUnderTest, total
from tests.support.kafka import Sent, produce, read_committed
from tests.support.messages import assert_names
from tests.support.patience import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.crash.sending import SentEvent

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("folder", sorted(FIXTURES.iterdir()), ids=lambda it: it.name)
def test_job_continues_with_the_topics_of_an_earlier_version(
    kafka_bootstrap: str, tmp_path: Path, folder: Path
) -> None:
    prefix = f"formats{uuid.uuid4().hex[:10]}"
    fixture = restore(kafka_bootstrap, prefix, folder)
    settings = {"COINCIDE_UNTIL_END": "true"}
    job = JobUnderTest(kafka_bootstrap, prefix, tmp_path, settings, has_topics=True)
    sent: dict[str, list[SentEvent]] = {}
    for name, stream in fixture.streams().items():
        job.streams[name] = stream
        before = [(it, it.offset or 0) for it in fixture.topics[stream.topic]]
        later = fixture.later.get(stream.topic, ())
        places = produce(kafka_bootstrap, stream.topic, [it.to_sent() for it in later])
        after = [(it, offset) for it, (_, offset) in zip(later, places, strict=True)]
        if before:
            assert after
            sent[name] = sent_events(name, [*before, *after])
    ends = [{"v": 1, "stream": name, "read_up_to": "end"} for name in job.streams]
    produce(kafka_bootstrap, job.topics.heartbeats, [Sent(json.dumps(it).encode()) for it in ends])
    try:
        job.process.start()
        wait_until(lambda: job.process.exit_code is not None, PATIENCE_SECONDS)
        assert job.process.exit_code == 0, job.process.log_end(2000)
    finally:
        job.process.stop(5)
    assert_names(job.process.log_path.read_text(), "rebuilt from Kafka")
    slots = job.wait_for_slots(bool)
    consumed = {name: total(slots, "events_consumed_total", stream=name) for name in sent}
    verdict = judge(job, job.streams, sent, fixture.conditions(), consumed)
    assert verdict.missing == []
    assert verdict.extra == []
    assert verdict.twice == []
    assert verdict.problems == []
    assert set(verdict.expected) == set(fixture.conditions())
    # Both jobs have written some of the results.
    alarms = len(job.read(job.topics.alarms))
    assert 0 < len(fixture.topics[f"{PREFIX}.alarms".replace(PREFIX, prefix)]) < alarms


def test_restored_records_have_their_offsets(kafka_bootstrap: str, tmp_path: Path) -> None:
    prefix = f"formats{uuid.uuid4().hex[:10]}"
    topic, offsets = f"{prefix}.config", [0, 1, 3, 4, 7, 11]
    lines = [Line(0, it, 5, b"k", b"%d" % it, {"h": b"x"}) for it in offsets]
    folder = tmp_path / "fixture"
    Fixture({}, {topic: [13]}, [], {topic: lines}, {}).write(folder, prefix, {})
    restore(kafka_bootstrap, prefix, folder)
    found = read_committed(kafka_bootstrap, topic)
    assert [Line(0, it.offset, 5, it.key, it.value, it.headers) for it in found] == lines
    assert {it.timestamp_ms for it in found} == {5}
    (after,) = produce(kafka_bootstrap, topic, [Sent(b"next")])
    assert after == (0, 13)
