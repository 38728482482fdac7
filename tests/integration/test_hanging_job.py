"""Python workers that stop responding: the job reports it and restarts its query by itself."""

from __future__ import annotations

import signal
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from correlation.resources.streams import Stream
from spark_jobs.worker.worker_daemon import GENERATION
from tests.support.command import is_python_worker, process_tree, send_signal, variables
from tests.support.hanging import process_state, stop_processes
from tests.support.job import JobUnderTest, total
from tests.support.patience import MAX_DELAY_US, PATIENCE_SECONDS, wait_until
from tests.support.workload import NearCondition, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

MAX_UNCERTAINTY_US = 20_000
NEAR = NearCondition("near", "a", "b", 30_000, "0.6")
MIN_LIMIT_SECONDS = 30
# A query with unread records is stalled after this time without a batch.
STALLED_US = 15_000_000


@pytest.fixture
def job(kafka_bootstrap: str, tmp_path: Path) -> JobUnderTest:
    """Return a running job with two streams, a condition, and no unread records."""
    prefix = f"hang{uuid.uuid4().hex[:10]}"
    settings = {"COINCIDE_HEARTBEAT_SECONDS": "0.5"}
    job = JobUnderTest(kafka_bootstrap, prefix, tmp_path, settings, own_java=True)
    for name in "ab":
        job.add_stream(Stream(name, f"{prefix}-{name}", MAX_UNCERTAINTY_US, MAX_DELAY_US))
    job.register(NEAR.resource)
    return job


def python_workers(job: JobUnderTest) -> set[int]:
    """Return the ids of the job's Python workers and of the processes that fork them."""
    assert job.process.pid is not None
    return {pid for pid in process_tree(job.process.pid) if is_python_worker(pid)}


def generation(pid: int) -> str:
    """Return the generation of a worker, or "" of a worker of the first generation."""
    return variables(pid).get(GENERATION, "")


@contextmanager
def stopped(job: JobUnderTest) -> Iterator[set[int]]:
    """Stop all Python workers of the job; end those that remain when the context ends."""
    known = stop_processes(lambda: python_workers(job))
    try:
        yield known
    finally:
        job.process.stop(5)
        for pid in known:
            # An id may belong to another process by now, but not to a stopped worker.
            if process_state(pid) == "T" and is_python_worker(pid):
                send_signal(pid, signal.SIGKILL)


def unread(record: dict[str, Any]) -> int:
    return sum(sum(partitions.values()) for partitions in record["lag"].values())


def stalled(job: JobUnderTest, count: int) -> list[dict[str, Any]]:
    """Return the records in which the query is stalled with a number of unread records."""
    return [it for it in job.job_records() if it["state"] == "stalled" and unread(it) == count]


def failed_since(job: JobUnderTest, at_us: int) -> bool:
    """Return whether the query has failed since a time."""
    return any(it["state"] == "failing" and it["at"] >= at_us for it in job.job_records())


def test_query_with_stopped_workers_is_stalled_then_restarted_with_others(
    job: JobUnderTest,
) -> None:
    began_us = time.time_ns() // 1_000
    workload = Workload("ab", 7, begin_us=began_us, max_uncertainty_us=MAX_UNCERTAINTY_US)
    before, meanwhile, after = (workload.take(count) for count in (400, 800, 400))
    try:
        # Without a limit: kernels that are not in numba's cache are compiled for minutes.
        begin = time.monotonic()
        job.start()
        # Longer than the first batch of new workers takes on this machine.
        limit = max(MIN_LIMIT_SECONDS, 2 * (time.monotonic() - begin))
        job.send(before)
        job.wait_for_slots(lambda slots: total(slots, "events_consumed_total") == len(before))
        assert job.stop() == 0
        job.process = job.make_process(
            COINCIDE_MAX_BATCH_SECONDS=str(limit), COINCIDE_MAX_FAILURES="1000"
        )
        job.start()
        job.wait_for_job(lambda record: record["state"] == "running" and unread(record) == 0)
        with stopped(job) as workers:
            job.send(meanwhile)
            # The states stalled and failing end by themselves: all records are looked at.
            job.process.wait_until(lambda: bool(stalled(job, len(meanwhile))), PATIENCE_SECONDS)
            record = stalled(job, len(meanwhile))[0]
            assert began_us < record["last_batch_at"] <= record["at"] - STALLED_US
            stalled_at = record["at"]
            job.process.wait_until(lambda: failed_since(job, stalled_at), PATIENCE_SECONDS)
            assert "COINCIDE_MAX_BATCH_SECONDS" in job.failures()[-1]
            job.wait_for_job(lambda record: record["state"] == "running")
            job.send(after)
            expected = sorted(NEAR.pairs([*before, *meanwhile, *after]))
            assert len(expected) > 100
            assert job.alarms("near", awaited=expected) == expected
            job.wait_for_job(
                lambda record: (
                    unread(record) == 0
                    and (record["state"], record["exception"]) == ("running", None)
                    and record["last_batch_at"] > stalled_at
                )
            )
            # The former workers were killed.
            wait_until(lambda: not [pid for pid in workers if process_state(pid) == "T"])
            fresh = {pid for pid in python_workers(job) if process_state(pid) != "T"}
            assert fresh
            assert fresh.isdisjoint(workers)
            # A slow machine may need more than one restart.
            assert all(generation(pid) for pid in fresh)
            assert job.stop() == 0
    finally:
        job.process.stop(5)
