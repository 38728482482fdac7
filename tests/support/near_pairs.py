"""An installation with two streams and a condition, for tests that count its pairs."""

from __future__ import annotations

import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

from correlation.resources.streams import Stream
from tests.support.job import JobUnderTest, Pairs
from tests.support.patience import MAX_DELAY_US
from tests.support.workload import NearCondition, Occurrence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_UNCERTAINTY_US = 20_000
NEAR = NearCondition("near", "a", "b", 30_000, "0.6")


@contextmanager
def near_installation(
    bootstrap: str, name: str, folder: Path, *, own_java: bool = False
) -> Iterator[JobUnderTest]:
    """Yield the installation, whose job is not started; it is stopped at the end."""
    prefix = f"{name}{uuid.uuid4().hex[:10]}"
    job = JobUnderTest(bootstrap, prefix, folder, own_java=own_java)
    for stream in "ab":
        # Events are kept longer than the tests take.
        job.add_stream(
            Stream(stream, f"{prefix}-{stream}", MAX_UNCERTAINTY_US, MAX_DELAY_US), partitions=1
        )
    job.register(NEAR.resource)
    try:
        yield job
    finally:
        job.process.stop(5)


def send_pairs(job: JobUnderTest, name: str, count: int = 4) -> Pairs:
    """Send events that make one pair for each key; return the pairs."""
    now = time.time_ns() // 1_000
    job.send(
        Occurrence(
            stream, f"{name}{number}{stream}", f"{name}{number}", now - MAX_UNCERTAINTY_US, now
        )
        for number in range(count)
        for stream in "ab"
    )
    return [("near", f"{name}{number}a", f"{name}{number}b") for number in range(count)]
