"""Errors of a worker, which reach the driver as a string."""

from __future__ import annotations

from spark_jobs.errors import ClaimLostError, StaleCheckpointError

TRACEBACK = """\
Traceback (most recent call last):
  File "worker.py", line 1, in main
spark_jobs.errors.{name}: {error}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException
"""


def quoted(error: Exception) -> str:
    return TRACEBACK.format(name=type(error).__name__, error=error)


def test_lost_claim_is_parsed_from_the_report_of_a_failed_task() -> None:
    error = ClaimLostError("coincide", "1f", "2e")
    found = ClaimLostError.from_text(quoted(error))
    assert found is not None
    assert (found.prefix, found.owner, found.own) == ("coincide", "1f", "2e")
    assert str(found) == str(error)
    assert StaleCheckpointError.from_text(quoted(error)) is None


def test_other_errors_are_not_a_lost_claim() -> None:
    assert ClaimLostError.from_text(quoted(StaleCheckpointError(1, 2))) is None
    unnamed = "another job has claimed the installation"
    assert ClaimLostError.from_text(unnamed) is None
