"""Fixtures of tests that share a job.

A file of such tests has a fixture `installation`, the job with its streams and conditions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.job import JobUnderTest


@pytest.fixture
def job(installation: JobUnderTest) -> JobUnderTest:
    """Return the job that the tests of a file share; it runs."""
    if not installation.process.running:
        installation.start()
    return installation
