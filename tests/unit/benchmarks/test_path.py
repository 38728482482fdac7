"""Settings of the queries of Spark's own operators."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from benchmarks import path
from benchmarks.tsa.against import JOINS
from benchmarks.tsa.answers import JOINS as ANSWERING

if TYPE_CHECKING:
    import pytest

    from benchmarks.stack import Bench


def test_further_properties_of_spark_do_not_replace_its_archives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[dict[str, str]] = []

    def keep(*arguments: Any) -> None:  # noqa: ANN401 - those of ChildProcess
        found.append(json.loads(arguments[3]["COINCIDE_SPARK_PROPERTIES"]))

    monkeypatch.setattr(path, "ChildProcess", keep)
    monkeypatch.setattr(path, "connector_jars", lambda: [Path("connector.jar")])
    on = cast("Bench", SimpleNamespace(bootstrap="localhost:1", folder=Path("folder")))
    joins = [*JOINS, *ANSWERING]
    for join in joins:
        path.baseline_process(on, "module", [], join.name, join.batch, join.properties)
    expected = [{"spark.jars": "connector.jar", **join.properties} for join in joins]
    assert found == expected
    assert any(len(it) > 1 for it in found)
