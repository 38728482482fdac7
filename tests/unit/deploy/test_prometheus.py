"""promtool accepts deploy/prometheus.yml and deploy/alerts.yml, and all metrics in them exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.dashboards.files import boards
from deploy.dashboards.rules import rules
from service.definitions import DEFINITIONS, PREFIX

HERE = Path(__file__).parent
DEPLOY = HERE.parents[2] / "deploy"
ALERTS = DEPLOY / "alerts.yml"
# The page of an external label, or that of this repository; alerts_test.yml has a case for both.
RUNBOOK = "{{ with $externalLabels.coincide_runbook }}{{ . }}{{ else }}docs/runbook.md{{ end }}"
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.needs_tool("promtool", "apt-get install prometheus")


def _promtool(*arguments: str | Path) -> None:
    # Our own files, checked by the promtool of the path.
    done = subprocess.run(  # noqa: S603
        [PROMTOOL or "promtool", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=HERE,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_configuration_is_valid() -> None:
    _promtool("check", "config", DEPLOY / "prometheus.yml")


@needs_promtool
def test_alerts_come_when_they_must_and_only_then() -> None:
    _promtool("test", "rules", HERE / "alerts_test.yml")


@needs_promtool
def test_configuration_is_valid_with_the_label_of_the_manual(tmp_path: Path) -> None:
    manual = (DEPLOY.parent / "docs" / "operations.md").read_text(encoding="utf-8")
    (label,) = re.findall(
        r"^```\nglobal:\n(  external_labels:\n.*?)^```", manual, re.MULTILINE | re.DOTALL
    )
    configuration = (DEPLOY / "prometheus.yml").read_text(encoding="utf-8")
    for name in ("alerts.yml", "recording_rules.yml"):
        configuration = configuration.replace(f"- {name}", f"- {DEPLOY / name}")
    file = tmp_path / "prometheus.yml"
    file.write_text(configuration.replace("global:\n", f"global:\n{label}"), encoding="utf-8")
    _promtool("check", "config", file)
    # alerts_test.yml has the address that an alert gets by it.
    page = yaml.safe_load(label)["external_labels"]["coincide_runbook"]
    assert f"runbook_url: {page}#" in (HERE / "alerts_test.yml").read_text(encoding="utf-8")


def _rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_alerts_use_metrics_that_exist() -> None:
    recorded = {rule.record for rule in rules()}
    found = [name for it in _rules() for name in re.findall(r"[\w:]*coincide_[\w:]+", it["expr"])]
    assert recorded & set(found)
    assert {it.removeprefix(PREFIX) for it in set(found) - recorded} <= set(DEFINITIONS)


def test_every_alert_has_a_section_in_the_runbook() -> None:
    page = (DEPLOY.parent / "docs" / "runbook.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    alerts = [rule["alert"] for rule in _rules()]
    # Incidents without an alert follow.
    assert list(sections)[: len(alerts)] == alerts
    assert not any(name.startswith("Coincide") for name in list(sections)[len(alerts) :])
    for rule in _rules():
        name = rule["alert"]
        # The site and the viewers of repositories make the anchor of a heading in lower case.
        assert rule["annotations"]["runbook_url"] == f"{RUNBOOK}#{name.lower()}"
    for name, section in sections.items():
        parts = re.findall(r"^\*\*(Seen|Why|What to do|Over when)\b", section, re.MULTILINE)
        assert parts == ["Seen", "Why", "What to do", "Over when"], name


def test_panels_that_the_runbook_names_exist() -> None:
    page = (DEPLOY.parent / "docs" / "runbook.md").read_text(encoding="utf-8")
    titles = {
        board.title: {panel.title for row in board.rows for panel in row.panels}
        for board in boards()
    }
    named = re.findall(r"\*([A-Z][^*]+)\*\s+of\s+the\s+dashboard\s+\*([^*]+)\*", page)
    assert len(named) > 5
    for panel, board in named:
        assert " ".join(panel.split()) in titles[board]


def test_every_alert_has_a_case_and_a_place_in_the_manual() -> None:
    manual = (DEPLOY.parent / "docs" / "operations.md").read_text(encoding="utf-8")
    cases = (HERE / "alerts_test.yml").read_text(encoding="utf-8")
    for rule in _rules():
        assert f"alertname: {rule['alert']}\n" in cases
        assert f"`{rule['alert']}`" in manual
