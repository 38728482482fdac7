"""Number of tasks of a batch, on one machine and on a cluster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from spark_jobs.driver.session import max_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("master", "slots", "tasks"),
    [
        ("local[*]", 1, 1),
        ("local[*]", 3, 3),
        ("local[*]", 16, 4),
        ("spark://spark:7077", 16, 16),
        ("k8s://https://kubernetes:6443", 16, 16),
        ("yarn", 3, 3),
    ],
)
def test_each_slot_has_a_task_on_a_cluster_whose_cores_are_not_known(
    master: str, slots: int, tasks: int
) -> None:
    context = SimpleNamespace(master=master, defaultParallelism=4)
    session = cast("SparkSession", SimpleNamespace(sparkContext=context))
    assert max_tasks(session, slots) == tasks
