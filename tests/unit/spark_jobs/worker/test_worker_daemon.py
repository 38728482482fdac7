"""Modules imported, and kernels loaded, before Spark's Python workers are forked."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from correlation.kinds import KINDS
from spark_jobs.worker.warm_up import group_kinds
from spark_jobs.worker.worker_daemon import SLOTS

_LOADED = """
import json
import os
import sys
from spark_jobs.worker import worker_daemon

def kernels():
    return [
        f"{module.__name__}.{name}"
        for module in list(sys.modules.values())
        if module.__name__.startswith("correlation.")
        for name, it in vars(module).items()
        if getattr(it, "signatures", None)
    ]

role, kinds = sys.argv[1:]
worker_daemon.import_all(role)
threads = len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 1
assert not kernels()
worker_daemon.warm_up(role, kinds)
modules = [it for it in ("confluent_kafka", "pandas", "pydantic") if it in sys.modules]
print(json.dumps({"threads": threads, "modules": modules, "kernels": kernels()}))
"""


@pytest.mark.parametrize(
    ("role", "kinds", "modules", "packages"),
    [
        ("", "within", ["confluent_kafka"], {"buffers"}),
        (SLOTS, "within,delay", ["pandas"], {"buffers", "timing"}),
    ],
)
def test_modules_and_kernels_of_the_role_are_loaded_without_a_thread_before_the_fork(
    role: str, kinds: str, modules: list[str], packages: set[str]
) -> None:
    # The command is this test's own.
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", _LOADED, role, kinds], capture_output=True, check=True, text=True
    )
    found = json.loads(done.stdout)
    assert found["threads"] == 1
    assert found["modules"] == modules
    # Of the kinds, only those that the job has.
    assert {it.split(".")[1] for it in found["kernels"]} == packages


def test_kernels_of_all_kinds_are_loaded_if_the_kinds_are_not_known() -> None:
    def kinds(*given: str) -> set[str]:
        groups = group_kinds("defaults", "intervals", given or None)
        records = [it.record for group in groups for it in group.controls]
        return {it["document"]["kind"] for it in records if isinstance(it, dict)}

    assert kinds() == set(KINDS)
    assert kinds("topk_similarity", "unknown") == {"topk_similarity"}
