"""Failures of the checkpoint's store: reported, retried, and without lost records."""

from __future__ import annotations

import shutil
import time
import uuid
from typing import TYPE_CHECKING

import pytest

from cli.errors import ProcessError
from correlation.resources.streams import Stream
from tests.support.job import JobUnderTest
from tests.support.messages import assert_names
from tests.support.patience import END_SECONDS, MAX_DELAY_US
from tests.support.workload import NearCondition, Workload

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.workload import Occurrence

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
]

MAX_UNCERTAINTY_US = 20_000
NEAR = NearCondition("near", "a", "b", 30_000, "0.6")


class Store:
    """The folder of a checkpoint, which a test replaces by a file in one step."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "checkpoint"
        self._data = folder / "data"
        self._data.mkdir()
        self._spare = folder / "spare"
        self.mend()
        # The workers' cache of blobs in it cannot be written, and is not missed.
        (self._data / "cache").write_bytes(b"")

    def fail(self) -> None:
        """Let every write fail."""
        self._spare.write_bytes(b"")
        self._spare.replace(self.path)

    def mend(self) -> None:
        """Put the folder back in its place."""
        self._spare.symlink_to(self._data)
        self._spare.replace(self.path)

    def is_named_in(self, text: str) -> bool:
        return text.startswith("the checkpoint's store: ") and text.endswith(f" at {self.path}")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


@pytest.fixture
def job(kafka_bootstrap: str, tmp_path: Path, store: Store) -> JobUnderTest:
    """Return an installation with two streams and a condition; its job is not started."""
    prefix = f"store{uuid.uuid4().hex[:10]}"
    settings = {"COINCIDE_CHECKPOINT": str(store.path)}
    job = JobUnderTest(kafka_bootstrap, prefix, tmp_path, settings, own_java=True)
    for name in "ab":
        # Events are kept longer than the test takes.
        job.add_stream(Stream(name, f"{prefix}-{name}", MAX_UNCERTAINTY_US, MAX_DELAY_US))
    job.register(NEAR.resource)
    return job


def test_job_goes_on_by_itself_when_its_store_works_again(job: JobUnderTest, store: Store) -> None:
    now = time.time_ns() // 1_000
    workload = Workload("ab", 1, begin_us=now - 1_000_000, max_uncertainty_us=MAX_UNCERTAINTY_US)
    events: list[Occurrence] = []

    def send() -> None:
        more = workload.take(100)
        job.send(more)
        events.extend(more)

    # However long it takes to look at it.
    job.process = job.make_process(COINCIDE_MAX_FAILURES="1000")
    try:
        job.start()
        send()
        job.alarms("near", awaited=NEAR.pairs(events))
        pid = job.process.pid
        for _ in range(2):
            store.fail()
            send()
            job.wait_for_job(lambda record: record["state"] == "failing")
            assert store.is_named_in(job.job_records()[-1]["exception"])
            send()
            store.mend()
            expected = sorted(NEAR.pairs(events))
            assert job.alarms("near", awaited=expected) == expected
            job.wait_for_job(lambda record: record["state"] == "running")
        assert len(expected) > 100
        assert job.job_records()[-1]["exception"] is None
        assert job.process.pid == pid
        assert job.stop() == 0
    finally:
        job.process.stop(5)


def test_job_whose_store_keeps_failing_ends_and_names_it(job: JobUnderTest, store: Store) -> None:
    job.process = job.make_process(COINCIDE_MAX_FAILURES="2")
    try:
        job.start()
        store.fail()
        with pytest.raises(ProcessError):
            job.process.wait_until(lambda: False, END_SECONDS)
        assert job.process.exit_code == 1
        record = job.job_records()[-1]
        assert record["state"] == "failed"
        assert store.is_named_in(record["exception"])
        said = job.process.log_path.read_text(encoding="utf-8")
        assert f"the job ends: {record['exception']}" in said
        assert job.states()[-2:] == ["failing", "failed"]
    finally:
        job.process.stop(5)


def test_job_whose_checkpoint_is_removed_ends_and_rebuilds_its_state(
    job: JobUnderTest, tmp_path: Path
) -> None:
    now = time.time_ns() // 1_000
    workload = Workload("ab", 2, begin_us=now - 1_000_000, max_uncertainty_us=MAX_UNCERTAINTY_US)
    events: list[Occurrence] = []
    changes = {"COINCIDE_MAX_FAILURES": "2", "COINCIDE_CHECKPOINT": str(tmp_path / "removed")}

    def find_pairs() -> None:
        more = workload.take(100)
        job.send(more)
        events.extend(more)
        expected = sorted(NEAR.pairs(events))
        assert job.alarms("near", awaited=expected) == expected

    job.process = job.make_process("first", **changes)
    try:
        job.start()
        find_pairs()
        # At one stroke: the job writes to the folder.
        (tmp_path / "removed").rename(tmp_path / "gone")
        shutil.rmtree(tmp_path / "gone")
        with pytest.raises(ProcessError):
            job.process.wait_until(lambda: False, END_SECONDS)
        assert job.process.exit_code == 1
        assert_names(job.job_records()[-1]["exception"], "layout.json", "missing")
        # Spark has created some files again.
        job.process = job.make_process("second", **changes)
        job.start()
        find_pairs()
        find_pairs()
        assert job.stop() == 0
    finally:
        job.process.stop(5)
