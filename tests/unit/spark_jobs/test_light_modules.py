"""Imports of the processes of a job: a start has about twelve of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

_COMPILED = """
import gc
import correlation.kinds
from numba.core.dispatcher import Dispatcher
kernels = [it for it in gc.get_objects() if issubclass(type(it), Dispatcher)]
print(len(kernels) > 100, [it.__name__ for it in kernels if it.signatures])
"""
_HEAVY = {"confluent_kafka", "numba", "pandas", "pyarrow", "pydantic"}


@pytest.mark.parametrize(
    "name", ["spark_jobs.sink.sink", "spark_jobs.source.source", "spark_jobs.worker.operator"]
)
def test_description_of_the_query_needs_few_packages(name: str) -> None:
    code = f"import sys, {name}, spark_jobs.worker.in_force; print(*sys.modules)"
    assert not _HEAVY & set(_output(code).split())


def test_kernels_are_compiled_when_they_are_used() -> None:
    assert _output(_COMPILED) == "True []\n"


def _output(code: str) -> str:
    """Return the output of a Python process."""
    found = subprocess.run(  # noqa: S603 - the command is ours
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return found.stdout
