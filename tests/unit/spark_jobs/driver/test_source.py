"""The options that reach the tasks which read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from correlation.resources.topics import Topics
from spark_jobs.driver.source import read_ranges, read_topics
from spark_jobs.settings import Settings
from spark_jobs.worker.in_force import InForce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.worker.packing import Packing

SETTINGS = Settings(max_record_bytes=123)
IN_FORCE = InForce("run", Topics("p"), {}, {}, (5, 9), "/folder/of/files", {})


class Session:
    """A session that keeps the data sources that are registered."""

    def __init__(self) -> None:
        self.registered: list[Any] = []
        self.dataSource = SimpleNamespace(register=self.registered.append)
        loading = SimpleNamespace(format=lambda _: SimpleNamespace(load=lambda: None))
        self.readStream = self.read = loading


@pytest.mark.parametrize("refills", [False, True])
def test_tasks_know_the_folder_of_the_watermarks_of_the_batch_before(*, refills: bool) -> None:
    session = Session()
    spark = cast("SparkSession", session)
    if refills:
        read_ranges(spark, SETTINGS, IN_FORCE, {}, 2)
    else:
        read_topics(spark, SETTINGS, IN_FORCE, {}, 1_000, 2)
    (source,) = session.registered
    packing: Packing = source.given.packing
    assert packing.cache_folder == IN_FORCE.cache_folder
    assert packing.refills is refills
    assert (packing.slot_keys, packing.max_record_bytes) == ((5, 9), 123)
