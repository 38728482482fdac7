"""The job's own record: its size is limited, and a refused record does not stop the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from correlation.config_records import Unreadable
from correlation.resources.topics import Topics
from spark_jobs.driver.reports import Reporter

if TYPE_CHECKING:
    import pytest

    from kafka_client.settings import Properties


def reporter() -> Reporter:
    # Nothing listens there: what is produced waits in the client, which does not log its attempts.
    client: Properties = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    return Reporter(client, Topics("p"), lambda: 0, str)


def test_records_that_cannot_be_read_do_not_fill_the_record_of_the_job(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reports = reporter()
    reports.unreadable_records(
        [Unreadable(b"k" * 1_000_000, offset, "p" * 1_000) for offset in range(50)]
    )
    reports.state("running")
    assert caplog.messages == []


def test_record_that_the_client_refuses_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    reports = reporter()
    reports.state("failed", streams=["s" * 2_000_000])
    (message,) = caplog.messages
    assert "p.metrics was rejected" in message
    assert "MSG_SIZE_TOO_LARGE" in message
