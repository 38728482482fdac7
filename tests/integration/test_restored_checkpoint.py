"""The job refuses a checkpoint that is older than its output in Kafka; no alarm is dropped.

The tests share a job.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from cli.errors import ProcessError
from spark_jobs.sink.ownership import claims_of
from spark_jobs.sink.transactions import PartitionProducer
from spark_jobs.worker.envelope import Record
from tests.support.claims import target
from tests.support.job import JobUnderTest, query_folder
from tests.support.near_pairs import near_installation, send_pairs
from tests.support.patience import END_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.stack.processes import ChildProcess
    from spark_jobs.settings import Properties

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def installation(
    kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JobUnderTest]:
    """Return an installation with two streams and a condition."""
    folder = tmp_path_factory.mktemp("job")
    with near_installation(kafka_bootstrap, "restored", folder) as job:
        yield job


def wait_for_failure(process: ChildProcess) -> None:
    with pytest.raises(ProcessError):
        process.wait_until(lambda: False, END_SECONDS)
    assert process.exit_code == 1


def assert_refused(job: JobUnderTest) -> None:
    """Check that the job has ended, and says why in words for the operator."""
    record = job.job_records()[-1]
    assert record["state"] == "failed"
    assert record["exception"].startswith("COINCIDE_CHECKPOINT: ")
    assert "is older than" in record["exception"]
    assert "start once with --rebuild" in record["exception"]
    assert "\n" not in record["exception"]
    assert record["exception"] in job.process.log_path.read_text(encoding="utf-8")


def test_restored_checkpoint_is_refused_and_a_rebuild_continues(
    job: JobUnderTest,
) -> None:
    checkpoint, backup = job.folder / "checkpoint", job.folder / "backup"
    others = job.alarms("near")
    first = send_pairs(job, "first")
    job.alarms("near", awaited=first)
    assert job.stop() == 0
    shutil.copytree(checkpoint, backup)
    job.start()
    second = send_pairs(job, "second")
    written = job.alarms("near", awaited=second)
    assert job.stop() == 0

    shutil.rmtree(checkpoint)
    backup.rename(checkpoint)
    third = send_pairs(job, "third")
    job.process.start()
    wait_for_failure(job.process)
    assert_refused(job)
    assert job.alarms("near") == written

    job.process = job.make_process(option="--rebuild")
    job.start()
    assert set(third) <= set(job.alarms("near", awaited=third))
    counts = Counter(
        json.loads(record.value or b"")["alarm_id"] for record in job.read(job.topics.alarms)
    )
    assert list(counts.values()) == [1] * len(others + first + second + third)


def test_job_ends_at_once_when_another_has_written_later_batches_with_its_checkpoint(
    job: JobUnderTest,
) -> None:
    failing = job.states().count("failing")
    pairs = send_pairs(job, "before")
    written = job.alarms("near", awaited=pairs)
    # As a job does that works with a copy of this checkpoint and is ahead. A job that claims
    # the installation ends this one for another reason.
    reports = job.read(job.topics.metrics)
    query = json.loads((query_folder(job) / "metadata").read_bytes())["id"]
    ahead = job.job_records()[-1]["batch"] + 1_000
    properties: Properties = {"bootstrap.servers": job.bootstrap}
    owner = claims_of(job.topics, properties).read()
    assert owner is not None
    for partition in range(2):
        record = Record(job.topics.metrics, b"other", reports[0].value)
        place = target(job.topics, owner, partition, query)
        writer = PartitionProducer(place, properties)
        assert writer.write(ahead, [record]) == 1
    send_pairs(job, "after")
    wait_for_failure(job.process)
    assert_refused(job)
    assert job.states().count("failing") == failing
    assert job.alarms("near") == written
