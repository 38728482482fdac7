"""The job on a Spark standalone cluster: a master, two workers, and `spark-submit`."""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from correlation.topk.results import CHANGES, PRESENT
from spark_jobs.worker.worker_daemon import ROLE, SLOTS, WARM_KINDS
from tests.oracle.topk import TokenSet, ranked_pairs
from tests.support.cluster import WORKERS, ClusterJob, SparkCluster
from tests.support.command import is_python_worker, process_tree, variables
from tests.support.hanging import stop_processes
from tests.support.job import total
from tests.support.kafka import Sent, produce
from tests.support.patience import MAX_DELAY_US, wait_until
from tests.support.topk import DELAY, make_tag_streams, topk_control
from tests.support.topk_lists import Lists, folded, newest_lists, read_json
from tests.support.workload import NearCondition, Occurrence, Workload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tests.support.kafka import Received

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PREFIX = f"cluster{uuid.uuid4().hex[:10]}"
MAX_UNCERTAINTY_US = 20_000
NEAR = NearCondition("near", "a", "b", 30_000, "0.6")
BURST, BURST_SECONDS = 40, 0.1
# Sets of a burst, their distance, and the list of the best pairs in a window.
SETS, SPACING_US = 6, 2
K, WINDOW_US = 5, 60


class Load:
    """Bursts of events and of sets, sent to a job; all that was sent is kept."""

    def __init__(self, job: ClusterJob) -> None:
        self.job = job
        self.events: list[Occurrence] = []
        self.sets: list[TokenSet] = []
        self._random = random.Random(7)  # noqa: S311 - a reproducible choice, no secret
        self._pace = threading.Event()
        self._bursts = 0

    def send(self, bursts: int = 1) -> None:
        """Send bursts, with a pause after each."""
        for _ in range(bursts):
            self._bursts += 1
            begin_us = time.time_ns() // 1_000 - 50_000
            workload = Workload("ab", self._bursts, begin_us, max_uncertainty_us=MAX_UNCERTAINTY_US)
            events = [replace(it, id=f"{self._bursts}.{it.id}") for it in workload.take(BURST)]
            self.job.send(events)
            self.events += events
            self._send_sets()
            self._pace.wait(BURST_SECONDS)

    def _send_sets(self) -> None:
        begin = len(self.sets)
        sets = [
            TokenSet(it, it * SPACING_US, frozenset(self._random.sample(range(6), 3)))
            for it in range(begin, begin + SETS)
        ]
        self.sets += sets
        events = [
            {
                "id": str(it.number),
                "time": it.time,
                "color": "red",
                "tags": [str(token) for token in sorted(it.tokens)],
            }
            for it in sets
        ]
        records = [Sent(json.dumps(it).encode()) for it in events]
        produce(self.job.bootstrap, self.job.streams["left"].topic, records)

    @property
    def list(self) -> list[tuple[str, str, int]]:
        """The list after all sets, by comparing all pairs."""
        as_of_us = self.sets[-1].time - DELAY - 1
        valid = [it for it in self.sets if as_of_us - WINDOW_US <= it.time <= as_of_us]
        pairs = ranked_pairs("jaccard", valid, crossed=False)[:K]
        return [
            (str(it.older.number), str(it.newer.number), len(it.older.tokens & it.newer.tokens))
            for it in pairs
        ]

    def _changes(self) -> Sequence[Received]:
        return self.job.read(self.job.topics.of(CHANGES))

    def check(self) -> None:
        """Check that every result of everything that was sent is written, once."""
        job = self.job
        expected = sorted(NEAR.pairs(self.events))
        assert len(expected) > BURST
        assert job.alarms("near", awaited=expected) == expected
        lists: Lists = {"t": self.list}
        wait_until(lambda: newest_lists(job.read(job.topics.of(PRESENT))) == lists)
        # A commit reaches the partitions of a transaction one after the other.
        wait_until(lambda: folded(map(read_json, self._changes())) == lists)
        changes = self._changes()
        assert len({it.headers["ce_id"] for it in changes}) == len(changes)
        sent = len(self.events) + len(self.sets)
        slots = job.wait_for_slots(lambda slots: total(slots, "events_consumed_total") >= sent)
        assert total(slots, "events_consumed_total") == sent
        assert total(slots, "events_late_total") == 0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """Return a running cluster."""
    with SparkCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def load(
    cluster: SparkCluster,
    kafka_bootstrap: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Load]:
    """Return the load of a running job with a condition on pairs and a list over a grid."""
    folder = tmp_path_factory.mktemp("job")
    # A batch that hangs is reported after a minute and a half.
    settings = {"COINCIDE_HEARTBEAT_SECONDS": "3"}
    job = ClusterJob(kafka_bootstrap, PREFIX, folder, settings, cluster=cluster)
    for name in "ab":
        job.add_stream(Stream(name, f"{PREFIX}-{name}", MAX_UNCERTAINTY_US, MAX_DELAY_US))
    sets = make_tag_streams(keyed=False, groups=2)["left"]
    job.add_stream(replace(sets, topic=f"{PREFIX}-left"), partitions=1)
    record = topk_control(0, {"k": K, "window_us": WINDOW_US, "report": "every"}).record
    assert isinstance(record, dict)
    job.register(NEAR.resource, Resource.from_record(record))
    try:
        job.start()
        yield Load(job)
    finally:
        job.process.stop(5)


def slot_workers(pids: Iterable[int]) -> list[int]:
    """Return the Python workers that hold the programs of slots, and those that fork them."""
    return [it for it in pids if is_python_worker(it) and variables(it).get(ROLE) == SLOTS]


def wait_for_slots_on_all(cluster: SparkCluster) -> None:
    """Wait until all executors evaluate slots; heartbeats make batches."""
    workers = range(WORKERS)
    wait_until(lambda: all(slot_workers(cluster.python_workers(number)) for number in workers))


@pytest.mark.nightly
def test_results_are_exact_across_a_restart(load: Load) -> None:
    load.send(5)
    load.check()
    load.job.stop()
    load.send(5)
    load.job.start()
    load.check()


def test_all_executors_evaluate_slots_with_the_variables_of_the_command(
    cluster: SparkCluster, load: Load
) -> None:
    job = load.job
    wait_for_slots_on_all(cluster)
    driver = process_tree(job.process.pid or 0)
    assert not slot_workers(driver)
    for number in range(WORKERS):
        found = [*map(variables, slot_workers(cluster.python_workers(number)))]
        # A process that has ended has no variables.
        assert {it["NUMBA_CACHE_DIR"] for it in found if it} == {cluster.kernels}
        assert {it[WARM_KINDS] for it in found if it} == {"mutual_deadline,topk_similarity"}
    assert not cluster.unused_kernels.exists()


def test_messages_of_python_workers_are_in_the_logs_of_the_executors(
    cluster: SparkCluster, load: Load
) -> None:
    job = load.job
    topic = f"{PREFIX}-missing"
    found = NearCondition("lost", "a", "b", 30_000, "0.6").resource
    found = replace(found, document={**found.document, "output_topic": topic})
    job.register(found)
    job.wait_for_slots(lambda slots: all("lost" in slot["conditions"] for slot in slots))
    load.send()
    assert job.read(job.topics.dead_letter, bool)
    job.delete(found)
    logs = [cluster.executor_logs(number) for number in range(WORKERS)]
    assert any(f"topic {topic}: " in log for log in logs)
    load.check()


def test_worker_killed_in_the_middle_of_a_batch_loses_nothing(
    cluster: SparkCluster, load: Load
) -> None:
    job = load.job
    wait_for_slots_on_all(cluster)
    load.check()
    # The other executor completes its part of the batch.
    stop_processes(lambda: slot_workers(cluster.python_workers(0)))
    load.send(3)
    job.wait_for_job(lambda record: record["state"] == "stalled")
    cluster.kill_worker(0)
    load.send(3)
    load.check()
    cluster.start_worker(0)
    wait_for_slots_on_all(cluster)
    load.send(random.Random(8).randint(1, 10))  # noqa: S311 - no secret
    cluster.kill_worker(1)
    cluster.start_worker(1)
    load.send(5)
    load.check()
    assert job.process.running


@pytest.mark.nightly
def test_job_goes_on_without_a_master_and_lost_workers_are_replaced_after_its_restart(
    cluster: SparkCluster, load: Load
) -> None:
    wait_for_slots_on_all(cluster)
    (application,) = cluster.applications()
    cluster.master.kill()
    load.send(5)
    load.check()
    cluster.start_master()
    cluster.wait_for_workers()
    assert cluster.applications() == [application]
    load.send(5)
    cluster.kill_worker(0)
    load.send(5)
    cluster.start_worker(0)
    wait_for_slots_on_all(cluster)
    load.check()
    assert load.job.process.running
