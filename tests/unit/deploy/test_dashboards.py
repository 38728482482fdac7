"""The dashboards and recording rules are those that the code's metrics produce."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from deploy.dashboards import expressions, files
from deploy.dashboards.expressions import UnknownMetricError, chance_rate, metrics_of, rate
from deploy.dashboards.rules import quantiles, rules, share
from service.definitions import DEFINITIONS, Definition

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.needs_tool("promtool", "apt-get install prometheus")
# Variables and values of Grafana itself.
BUILT_IN = {"__rate_interval", "__all"}


def _boards() -> dict[str, dict[str, Any]]:
    paths = sorted(files.FOLDER.glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def _panels(board: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def _expressions() -> Iterator[str]:
    for board in _boards().values():
        for panel in _panels(board):
            yield from (target["expr"] for target in panel["targets"])
    yield from (rule.expression for rule in rules())


USED = sorted({it.name for expression in _expressions() for it in metrics_of(expression)})


def test_committed_files_are_those_that_the_generator_builds() -> None:
    for path, text in files.contents().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run `make dashboards`"
    assert {path for path in files.contents() if path.suffix == ".json"} == set(
        files.FOLDER.glob("*.json")
    )


def test_dashboards_are_those_of_the_manual() -> None:
    titles = {name: board["title"] for name, board in _boards().items()}
    assert titles == {
        "overview": "Coincide / Overview",
        "streams": "Coincide / Streams",
        "conditions": "Coincide / Conditions",
        "event-queries": "Coincide / Event queries",
        "topk": "Coincide / Top-k",
        "job": "Coincide / Job",
        "api": "Coincide / API",
    }
    assert {board["uid"] for board in _boards().values()} == {f"coincide-{name}" for name in titles}


def test_every_metric_is_in_a_dashboard() -> None:
    assert set(DEFINITIONS) - set(USED) == set()


@pytest.mark.parametrize("name", USED)
def test_build_fails_when_a_metric_is_renamed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    renamed = {it: known for it, known in DEFINITIONS.items() if it != name}
    monkeypatch.setattr(expressions, "DEFINITIONS", renamed)
    with pytest.raises(UnknownMetricError, match=f"^{name}: is not a metric"):
        files.contents()


@pytest.mark.parametrize("name", USED)
def test_build_fails_when_a_metric_changes_its_type(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = DEFINITIONS[name]
    changed = "counter" if found.type == "gauge" else "gauge"
    known = {**DEFINITIONS, name: Definition(name, changed, found.description)}  # type: ignore[arg-type]  # a str of two literals
    monkeypatch.setattr(expressions, "DEFINITIONS", known)
    with pytest.raises(UnknownMetricError, match=f"^{name}: is a {changed}, not a {found.type}"):
        files.contents()


def test_errors_name_the_remedy() -> None:
    with pytest.raises(UnknownMetricError) as misspelt:
        rate("event_consumed_total")
    assert str(misspelt.value).startswith("event_consumed_total: is not a metric")
    assert str(misspelt.value).endswith("; use events_consumed_total")
    with pytest.raises(UnknownMetricError, match=r"rules\.py$"):
        share("events_late_total", "stream", "5m")
    with pytest.raises(UnknownMetricError, match=r"rules\.py$"):
        quantiles("response_time_seconds", "stream")


def test_expressions_select_the_instance_and_the_filters_of_the_viewer() -> None:
    assert rate("alarms_total", "condition") == (
        'sum by (condition) (rate(coincide_alarms_total{instance="$instance",'
        'condition=~"$condition"}[$__rate_interval]))'
    )
    late = share("events_late_total", "stream", "15m")
    assert late == (
        'stream:coincide_events_late_total:ratio15m{instance="$instance",stream=~"$stream"}'
    )


def test_manual_lists_every_panel() -> None:
    page = files.PANELS_FILE.read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", page, re.MULTILINE))
    assert list(sections) == [board.title for board in files.boards()]
    for board in files.boards():
        titles = re.findall(r"^\| ([^|]+) \|", sections[board.title], re.MULTILINE)
        panels = [panel.title for row in board.rows for panel in row.panels]
        assert [it.replace("\\", "") for it in titles] == ["panel", *panels]
    row = "Running | Whether the job runs. | yes or no | `coincide_job_up`"
    assert f"| {row} |" in sections["Job"]


@pytest.mark.parametrize("name", _boards())
def test_dashboard_is_complete(name: str) -> None:
    board = _boards()[name]
    panels = _panels(board)
    titles = [panel["title"] for panel in panels]
    assert len(titles) == len(set(titles))
    numbers = [panel["id"] for panel in board["panels"]]
    assert numbers == list(range(1, len(numbers) + 1))
    for panel in panels:
        metrics = metrics_of(" ".join(target["expr"] for target in panel["targets"]))
        listed = panel["description"].splitlines()
        assert listed[0]
        assert {f"- `{it.exposed}`: {it.description}" for it in metrics} <= set(listed)
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in panels)
    defined = {variable["name"] for variable in board["templating"]["list"]}
    # "$1" is a group of label_replace.
    used = set(re.findall(r"\$\{?([a-z_]\w*)", json.dumps([board["panels"], board["templating"]])))
    assert used - BUILT_IN == defined


def _promtool(*arguments: str | Path) -> str:
    # The promtool of the path, on the project's own expressions.
    done = subprocess.run(  # noqa: S603
        [PROMTOOL or "promtool", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_promtool
def test_chance_rate_is_the_product_of_both_rates(tmp_path: Path) -> None:
    variables = {"instance": "i", "condition": ".*", "keys": "10", "__rate_interval": "5m"}
    expression = re.sub(r"\$([a-z_]\w*)", lambda it: variables[it.group(1)], chance_rate())
    # Two events per second of x, three of y; another instance of the service counts them too.
    series = {
        'coincide_chance_seconds{instance="i", condition="c", a="x", b="y"}': "5x20",
        'coincide_chance_seconds{instance="i", condition="d", a="x", b="y"}': "6x20",
        'coincide_chance_seconds{instance="i", condition="itself", a="x", b="x"}': "7x20",
        'coincide_events_consumed_total{instance="i", stream="x"}': "0+120x20",
        'coincide_events_consumed_total{instance="i", stream="y"}': "0+180x20",
        'coincide_events_consumed_total{instance="other", stream="y"}': "0+180x20",
    }
    samples = {"c": 5 * 2 * 3 / 10, "d": 6 * 2 * 3 / 10, "itself": 7 * 2 * 2 / 10}
    case = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": expression,
                "eval_time": "15m",
                "exp_samples": [
                    {"labels": f'{{condition="{name}"}}', "value": value}
                    for name, value in samples.items()
                ],
            }
        ],
    }
    file = tmp_path / "cases.yml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": [case]}), "utf-8")
    _promtool("test", "rules", file)


@needs_promtool
def test_expressions_are_valid(tmp_path: Path) -> None:
    # A rule file accepts what a query accepts.
    found = [re.sub(r"\$__rate_interval", "20s", it) for it in _expressions()]
    found = [re.sub(r"\$[a-z_]\w*", "1", it) for it in found]
    entries = [{"record": f"r{number}", "expr": it} for number, it in enumerate(found)]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": entries}]}), "utf-8")
    assert f"SUCCESS: {len(found)} rules found" in _promtool("check", "rules", file)


@pytest.mark.parametrize("name", _boards())
def test_panels_do_not_overlap(name: str) -> None:
    cells = [
        (panel["gridPos"]["x"] + dx, panel["gridPos"]["y"] + dy)
        for panel in _boards()[name]["panels"]
        for dx in range(panel["gridPos"]["w"])
        for dy in range(panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23
