"""Spark's baseline of the benchmark of event queries finds the alarms of the running example."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own habit

from benchmarks.spark_join import open_baseline
from benchmarks.tsa.outer_join import unreported
from benchmarks.tsa.workload import DEADLINE_US, MINUTE_US
from spark_jobs.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Row = tuple[str, str, int]


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    session = open_baseline(Settings(spark_master="local[2]"))
    yield session
    session.stop()


def test_baseline_compiles_its_plan(session: SparkSession) -> None:
    settings = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")
    assert [session.conf.get(it) for it in settings] == ["true", "FALLBACK"]


def frame(session: SparkSession, *rows: Row) -> DataFrame:
    events = session.createDataFrame(list(rows), "id string, area string, latest bigint")
    return events.withColumn("moment", F.timestamp_micros("latest"))


def test_baseline_finds_smokes_without_a_report_in_time(session: SparkSession) -> None:
    smokes = frame(
        session,
        ("reported at once", "lab", 10 * MINUTE_US),
        ("reported at the deadline", "hall", 10 * MINUTE_US),
        ("too late", "roof", 10 * MINUTE_US),
        ("too early", "yard", 10 * MINUTE_US),
        ("elsewhere", "gate", 10 * MINUTE_US),
    )
    reports = frame(
        session,
        ("r1", "lab", 10 * MINUTE_US),
        ("r2", "lab", 11 * MINUTE_US),
        ("r3", "hall", 10 * MINUTE_US + DEADLINE_US),
        ("r4", "roof", 10 * MINUTE_US + DEADLINE_US + 1),
        ("r5", "yard", 10 * MINUTE_US - 1),
    )
    found = unreported(smokes, reports, DEADLINE_US).collect()
    values = [orjson.loads(row["value"]) for row in found]
    assert sorted(it["id"] for it in values) == ["elsewhere", "too early", "too late"]
    assert {it["latest"] for it in values} == {10 * MINUTE_US}
    assert {row["key"] for row in found} == {it["id"] for it in values}
