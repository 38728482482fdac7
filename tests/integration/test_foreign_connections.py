"""Foreign clients that connect to the job's ports neither stop it nor change its output."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from correlation.resources.streams import Stream
from tests.support.job import JobUnderTest
from tests.support.knocking import knocking
from tests.support.patience import MAX_DELAY_US
from tests.support.workload import NearCondition, Workload

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

NEAR = NearCondition("near", "a", "b", 30_000, "0.6")
MAX_UNCERTAINTY_US = 20_000


def test_job_goes_on_when_foreign_clients_connect_to_its_ports(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    prefix = f"knock{uuid.uuid4().hex[:10]}"
    job = JobUnderTest(kafka_bootstrap, prefix, tmp_path, own_java=True)
    for name in "ab":
        job.add_stream(
            Stream(name, f"{prefix}-{name}", MAX_UNCERTAINTY_US, MAX_DELAY_US, clock="replay")
        )
    job.register(NEAR.resource)
    workload = Workload("ab", seed=11, max_uncertainty_us=MAX_UNCERTAINTY_US)
    try:
        job.start()
        assert job.process.pid is not None
        sent = []
        with knocking(job.process.pid) as knocked:
            for _ in range(6):
                events = workload.take(100)
                sent += events
                job.send(events)
                expected = sorted(NEAR.pairs(sent))
                assert job.alarms("near", awaited=expected) == expected
        assert len(knocked) > 1
        assert job.stop() == 0
    finally:
        job.process.stop(5)
