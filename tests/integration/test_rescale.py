"""The number of slots of a running job is changed by a request to the service."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from correlation.resources.streams import Stream
from service.settings import Settings
from spark_jobs.driver.streams_in_force import StreamsInForce
from tests.rest.running import running
from tests.support.every_kind import LIST, near
from tests.support.interrupted import (
    CONDITIONS,
    DELAY_US,
    WINDOW_US,
    World,
    assert_as_uninterrupted,
    present_keys,
)
from tests.support.job import total, unfinish_last_batch
from tests.support.kafka import Sent, produce
from tests.support.patience import SERVICE_SECONDS, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from tests.support.job import JobUnderTest

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

BLOCK = 10
IN_BLOCKS: dict[str, Any] = {"block_size": BLOCK, "block_interval_us": 3_600_000_000}
WIDE = {
    **CONDITIONS,
    # All events of "late" have one key: they wait for their block in one slot.
    "blocks": {**near(WINDOW_US), "a": "late", "b": "late", **IN_BLOCKS},
    "factored_blocks": {**near(WINDOW_US), **IN_BLOCKS, "output": "factored"},
    "cells": {**near(1_500), "a": "cells", "b": "cells", **IN_BLOCKS},
    "merged": {**LIST, "a": "cells", "report": "batch"},
}


class Rescaled(World):
    """A world with a service, and a stream whose events wait for their block."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        super().__init__(bootstrap, folder, {}, groups=3, COINCIDE_SLOTS="4")
        topic = f"{self.job.prefix}-late"
        self.job.add_stream(Stream("late", topic, 0, DELAY_US, clock="replay"))
        self.conditions = WIDE
        self.register(self.job)
        self._blocked = 0

    def settings(self) -> Settings:
        return Settings(
            bootstrap=self.job.bootstrap,
            prefix=self.job.prefix,
            broker_timeout_seconds=SERVICE_SECONDS,
            write_timeout_seconds=SERVICE_SECONDS,
        )

    def send_half_a_block(self) -> None:
        """Send half of a block of events that meet, after the times of all other events."""
        first = self._blocked
        self._blocked += BLOCK // 2
        times = {f"l{it}": 1_000_000_000 + 1_000 * it for it in range(first, self._blocked)}
        events = [{"id": name, "earliest": at, "latest": at} for name, at in times.items()]
        records = [Sent(json.dumps(it).encode(), b"k") for it in events]
        produce(self.job.bootstrap, self.job.streams["late"].topic, records)
        self.job.wait_for_slots(
            lambda slots: total(slots, "events_consumed_total", stream="late") == self._blocked
        )


def order(client: httpx.Client, slots: int) -> None:
    answer = client.put("/v1/job/slots", json={"slots": slots})
    assert answer.is_success, answer.text
    assert client.get("/v1/job").json()["wanted_slots"] == slots


def wait_for(world: World, client: httpx.Client, slots: int) -> None:
    """Wait until the job runs with a number of slots."""

    def runs() -> bool:
        world.job.process.check()
        found = client.get("/v1/job").json()
        return bool(found["up"]) and found["slots"] == slots

    wait_until(runs)
    assert client.get("/v1/job").json()["slots_problem"] is None


def outdate(job: JobUnderTest) -> None:
    """Change the checkpoint as if an earlier version had written it."""
    path = job.folder / "checkpoint" / "layout.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "v": 3}))


def is_flushing(job: JobUnderTest) -> bool:
    """Return whether the run of the job evaluates events that wait for a block."""
    stored = job.folder / "checkpoint" / "streams.json"
    return StreamsInForce.from_bytes(stored.read_bytes()).is_flushing


def test_every_result_is_written_once_while_the_number_of_slots_changes(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    world = Rescaled(kafka_bootstrap, tmp_path)
    job = world.job
    with running(world.settings()) as service:
        client = service.client
        try:
            job.start()
            world.send()
            order(client, 2)
            world.send()
            wait_for(world, client, 2)
            world.send()
            world.send_half_a_block()

            # Events wait for their block in one slot; those that complete it are in another one.
            order(client, 3)
            wait_for(world, client, 3)
            world.send_half_a_block()

            # The job is killed around the batch that evaluates the waiting events.
            order(client, 4)
            job.catch(lambda: is_flushing(job))
            job.kill()
            world.send()
            job.start()
            wait_for(world, client, 4)
            world.send_half_a_block()

            world.send()
            order(client, 2)
            job.catch((job.folder / "checkpoint" / "rebuild.json").is_file)
            job.kill()
            world.send()
            job.start()
            wait_for(world, client, 2)

            # All of the unfinished batch is written. The query of an earlier version is replaced by
            # one with the registered number.
            world.wait_until_read()
            unfinish_last_batch(job)
            order(client, 1)
            world.send()
            outdate(job)
            job.start()
            wait_for(world, client, 1)
            wait_until(lambda: {key.partition(b"/")[0] for key in present_keys(job)} == {b"5"})
            world.close(job)
            assert_as_uninterrupted(world, tmp_path)
            assert client.get("/v1/job").json()["slots"] == 1
        finally:
            job.process.stop(5)
