"""Modules that Spark imports in the processes which describe the query, about eight at a start."""

from __future__ import annotations

import subprocess
import sys

import pytest

_HEAVY = {"confluent_kafka", "numba", "pandas", "pyarrow", "pydantic"}


@pytest.mark.parametrize(
    "name", ["spark_jobs.sink.sink", "spark_jobs.source.source", "spark_jobs.worker.operator"]
)
def test_description_of_the_query_needs_few_packages(name: str) -> None:
    code = f"import sys, {name}, spark_jobs.worker.in_force; print(*sys.modules)"
    found = subprocess.run(  # noqa: S603 - the command is ours
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not _HEAVY & set(found.stdout.split())
