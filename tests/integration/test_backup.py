"""An installation that loses its config topic, its state and its checkpoint, and has a backup."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.command import coincide
from tests.support.interrupted import (
    CONDITIONS,
    World,
    assert_as_uninterrupted,
    lose_checkpoint,
)
from tests.support.kafka import recreate_topic, topic_id

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.kafka import Received

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

COMPACT = {"cleanup.policy": "compact"}


def test_restored_installation_writes_every_result_once(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    world = World(kafka_bootstrap, tmp_path, CONDITIONS)
    job, file = world.job, tmp_path / "backup.jsonl"
    environment = {"COINCIDE_BOOTSTRAP": kafka_bootstrap, "COINCIDE_PREFIX": job.prefix}
    topics = (job.topics.config, job.topics.state)
    try:
        job.start()
        world.send()
        world.wait_until_read()
        # A backup of a job in operation; it is replaced by that of the stopped one.
        for is_stopped in (False, True):
            if is_stopped:
                assert job.stop() == 0
            done = coincide("backup", str(file), environment=environment)
            assert done.returncode == 0, done.stderr
        before = {topic: newest(job.read(topic)) for topic in topics}

        refused = coincide("restore", str(file), environment=environment)
        assert refused.returncode == 2, refused.stderr
        assert f"{job.topics.state} has records" in refused.stderr
        lose_checkpoint(job)
        for topic in topics:
            recreate_topic(kafka_bootstrap, topic, 1, COMPACT)
        for part in ("config", "state"):
            done = coincide("restore", "--only", part, str(file), environment=environment)
            assert done.returncode == 0, done.stderr
        assert {topic: newest(job.read(topic)) for topic in topics} == before

        world.send()
        job.environment["COINCIDE_ACCEPT_CONFIG_TOPIC"] = topic_id(
            kafka_bootstrap, job.topics.config
        )
        job.process = job.make_process()
        job.start()
        world.send()
        world.close(job)
        assert_as_uninterrupted(world, tmp_path)
    finally:
        job.process.stop(5)


def newest(records: list[Received]) -> dict[bytes | None, bytes]:
    """Return the newest value of each key that is present."""
    found = {it.key: it.value for it in records}
    return {key: value for key, value in found.items() if value is not None}
