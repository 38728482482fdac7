"""Processes of a Spark cluster that stop responding: the query is restarted with others."""

from __future__ import annotations

import signal
import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from correlation.resources.streams import Stream
from tests.support.cluster import WORKERS, ClusterJob, SparkCluster
from tests.support.command import is_python_worker, process_tree, send_signal
from tests.support.hanging import process_state, stop_processes
from tests.support.job import total
from tests.support.patience import MAX_DELAY_US, PATIENCE_SECONDS
from tests.support.workload import NearCondition, Occurrence, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.nightly]

MAX_UNCERTAINTY_US = 20_000
NEAR = NearCondition("near", "a", "b", 30_000, "0.6")
MIN_LIMIT_SECONDS = 30


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    """Return a running cluster."""
    with SparkCluster(tmp_path / "cluster") as cluster:
        yield cluster


@pytest.fixture
def job(kafka_bootstrap: str, tmp_path: Path, cluster: SparkCluster) -> Iterator[ClusterJob]:
    """Return a job that is not started, with two streams and a condition."""
    prefix = f"hang{uuid.uuid4().hex[:10]}"
    settings = {"COINCIDE_HEARTBEAT_SECONDS": "0.5"}
    job = ClusterJob(kafka_bootstrap, prefix, tmp_path, settings, cluster=cluster)
    for name in "ab":
        job.add_stream(Stream(name, f"{prefix}-{name}", MAX_UNCERTAINTY_US, MAX_DELAY_US))
    job.register(NEAR.resource)
    yield job
    job.process.stop(5)


def prepared(job: ClusterJob, cluster: SparkCluster) -> tuple[Workload, list[Occurrence]]:
    """Start a job, and return its workload with the events that all executors have read."""
    begin_us = time.time_ns() // 1_000
    workload = Workload("ab", 7, begin_us=begin_us, max_uncertainty_us=MAX_UNCERTAINTY_US)
    sent = workload.take(400)
    job.start()
    job.send(sent)
    job.wait_for_slots(lambda slots: total(slots, "events_consumed_total") == len(sent))
    job.process.wait_until(lambda: len(cluster.executors()) == WORKERS, PATIENCE_SECONDS)
    return workload, sent


@contextmanager
def stopped(find: Callable[[], list[int]]) -> Iterator[set[int]]:
    """Stop the processes that a function finds; end those that remain when the context ends."""
    known = stop_processes(find)
    try:
        yield known
    finally:
        for pid in known:
            # An id may belong to another process by now, but not to a stopped one.
            if process_state(pid) == "T":
                send_signal(pid, signal.SIGKILL)


def check(job: ClusterJob, sent: list[Occurrence]) -> None:
    """Check that every pair is written, once, and that the job runs."""
    expected = sorted(NEAR.pairs(sent))
    assert len(expected) > 100
    assert job.alarms("near", awaited=expected) == expected
    job.wait_for_job(lambda record: (record["state"], record["exception"]) == ("running", None))


@pytest.mark.parametrize("are_dead", [False, True], ids=["stopped", "dead, daemons stopped"])
def test_query_on_a_cluster_is_restarted_with_others_when_its_workers_are_stopped(
    cluster: SparkCluster, job: ClusterJob, *, are_dead: bool
) -> None:
    # Without a limit: kernels that are not in numba's cache are compiled for minutes.
    begin = time.monotonic()
    workload, sent = prepared(job, cluster)
    # Longer than the first batch of new executors takes on this machine.
    limit = max(MIN_LIMIT_SECONDS, 2 * (time.monotonic() - begin))
    job.stop()
    job.process = job.make_process(
        COINCIDE_MAX_BATCH_SECONDS=str(limit), COINCIDE_MAX_FAILURES="1000"
    )
    job.start()
    job.process.wait_until(lambda: len(cluster.executors()) == WORKERS, PATIENCE_SECONDS)

    def find() -> list[int]:
        return [it for it in cluster.processes() if is_python_worker(it)]

    with stopped(find) as known:
        if are_dead:
            # Spark asks a daemon for another worker, and waits for its answer.
            for daemon in known:
                for pid in {*process_tree(daemon)} - {daemon}:
                    send_signal(pid, signal.SIGKILL)
        meanwhile, after = workload.take(800), workload.take(400)
        before = too_long(job)
        job.send(meanwhile)
        job.process.wait_until(lambda: too_long(job) > before, PATIENCE_SECONDS)
        job.send(after)
        check(job, [*sent, *meanwhile, *after])
        fresh = {it for it in find() if process_state(it) != "T"}
        assert fresh
        assert fresh.isdisjoint(known)


def test_executors_that_are_stopped_are_replaced(cluster: SparkCluster, job: ClusterJob) -> None:
    workload, sent = prepared(job, cluster)
    with stopped(cluster.executors) as known:
        meanwhile, after = workload.take(800), workload.take(400)
        job.send(meanwhile)
        # Spark gives up executors of which it has not heard for spark.network.timeout.
        job.process.wait_until(lambda: bool({*cluster.executors()} - known), PATIENCE_SECONDS)
        job.send(after)
        check(job, [*sent, *meanwhile, *after])
        assert not job.failures()


def too_long(job: ClusterJob) -> int:
    """Return how often the query was ended because of a batch that took too long."""
    return sum("COINCIDE_MAX_BATCH_SECONDS" in it for it in job.failures())
