"""Two jobs of one installation: after the second has claimed it, the first writes nothing.

The tests share an installation: the job that remains from one is the first job of the next.
"""

from __future__ import annotations

import json
import signal
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.command import command_line, process_tree, send_signal
from tests.support.job import JobUnderTest
from tests.support.near_pairs import near_installation, send_pairs
from tests.support.patience import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.stack.processes import ChildProcess

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

# Pairs that a test sends at once.
COUNT = 20
LOST = "another job has claimed the installation"
Pairs = list[tuple[str, str, str]]


@pytest.fixture(scope="module")
def installation(
    kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JobUnderTest]:
    """Return an installation with two streams and a condition."""
    folder = tmp_path_factory.mktemp("job")
    with near_installation(kafka_bootstrap, "rivals", folder, own_java=True) as job:
        yield job


@pytest.fixture
def job(installation: JobUnderTest) -> JobUnderTest:
    """Return the installation with a job that runs."""
    if not installation.process.running:
        installation.process = make_job(installation)
        installation.start()
    return installation


def make_job(job: JobUnderTest) -> ChildProcess:
    """Build a job with a checkpoint of its own, in the folder of its name."""
    name = f"job-{uuid.uuid4().hex[:10]}"
    return job.make_process(name, COINCIDE_CHECKPOINT=str(job.folder / name))


def suspend(process: ChildProcess) -> list[int]:
    """Stop a job with all its processes; return their ids, parents first."""
    stopped: list[int] = []
    # A process may have started another before it was stopped.
    while fresh := [it for it in process_tree(process.pid or 0) if it not in stopped]:
        for it in fresh:
            send_signal(it, signal.SIGSTOP)
        stopped += fresh
    return stopped


def resume(processes: list[int]) -> None:
    for it in processes:
        send_signal(it, signal.SIGCONT)


def start_rival(job: JobUnderTest, rival: ChildProcess) -> None:
    """Start a job, and wait until it has claimed the installation and runs."""
    former = newest_claim(job)
    rival.start()
    rival.wait_until(
        lambda: newest_claim(job) > former and job.job_records()[-1]["state"] == "running",
        PATIENCE_SECONDS,
    )


def newest_claim(job: JobUnderTest) -> int:
    return max(record["claim"] or 0 for record in job.job_records())


def checkpoint_id(job: JobUnderTest, name: str) -> str:
    found: dict[str, Any] = json.loads((job.folder / name / "layout.json").read_bytes())
    return str(found["id"])


def counted(job: JobUnderTest) -> dict[tuple[str, str, str], int]:
    return dict(Counter(job.alarms("near")))


def expect_loss(job: JobUnderTest, process: ChildProcess, claim: int, rival: ChildProcess) -> None:
    """Wait until a job has ended, and check its message and its records."""
    wait_until(lambda: not process.running)
    assert process.exit_code == 1
    # Java may have logged the end of a running batch after it.
    said = process.log_path.read_text(encoding="utf-8").split(f"the job ends: {LOST} {job.prefix}")
    assert len(said) == 2
    for it in (process, rival):
        assert checkpoint_id(job, it.name) in said[1]
    states = {record["state"] for record in job.job_records() if record["claim"] == claim}
    assert not states & {"failing", "failed"}


@pytest.mark.nightly
def test_suspended_job_without_unread_records_ends_when_another_has_claimed(
    job: JobUnderTest,
) -> None:
    first, rival = job.process, make_job(job)
    stopped: list[int] = []
    try:
        others = job.alarms("near")
        claim = newest_claim(job)
        stopped = suspend(first)
        start_rival(job, rival)
        # The driver alone looks at the claim.
        driver = [it for it in stopped if "spark_jobs.main" in command_line(it)]
        resume([it for it in stopped if it not in driver])
        resume(driver)
        expect_loss(job, first, claim, rival)
        pairs = send_pairs(job, "pair", COUNT)
        assert job.alarms("near", awaited=pairs) == sorted([*others, *pairs])
    finally:
        resume([it for it in stopped if command_line(it)])
        first.stop(5)
        job.process = rival


def test_suspended_job_writes_nothing_after_another_has_claimed_the_installation(
    job: JobUnderTest,
) -> None:
    first, rival = job.process, make_job(job)
    stopped: list[int] = []
    try:
        others = counted(job)
        pairs = send_pairs(job, "first", COUNT)
        # The sink of the first job has open producers.
        job.alarms("near", awaited=pairs)
        claim = newest_claim(job)
        stopped = suspend(first)
        second = send_pairs(job, "second", COUNT)
        start_rival(job, rival)
        job.alarms("near", awaited=second)
        # It has a checkpoint of its own, and continues where the first job has written.
        expected = others | dict.fromkeys([*pairs, *second], 1)
        assert counted(job) == expected

        # Its sink may be in the middle of a batch; the driver or the sink notices the claim first.
        resume(stopped)
        expect_loss(job, first, claim, rival)
        assert counted(job) == expected

        third = send_pairs(job, "third", COUNT)
        job.alarms("near", awaited=third)
        assert counted(job) == expected | dict.fromkeys(third, 1)
        assert job.job_records()[-1]["state"] == "running"
    finally:
        resume([it for it in stopped if command_line(it)])
        first.stop(5)
        job.process = rival
