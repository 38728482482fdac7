"""Plans of all kinds of conditions, as the command `plan` shows them."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from rich.console import Console

from cli.client.plan import show_plan
from cli.main import main
from correlation.kinds import KINDS, condition_from_document
from correlation.resources.attributes import Attribute
from correlation.resources.streams import Stream

if TYPE_CHECKING:
    from pathlib import Path

AREA = (Attribute("area", ("area",)),)
STREAMS = {
    "smoke": Stream("smoke", "smoke", 0, 1, attributes=AREA),
    "report": Stream("report", "report", 0, 1, attributes=AREA),
    "acoustic": Stream("acoustic", "acoustic", 200_000, 1_000_000),
    "seismic": Stream("seismic", "seismic", 200_000, 1_000_000),
}
PAIR = {"a": "acoustic", "b": "seismic", "threshold": "0.6"}


def plan_of(document: dict[str, Any]) -> dict[str, Any]:
    condition = condition_from_document("c", 1, document)
    return KINDS[condition.kind].plan(condition, STREAMS)


def show(plan: dict[str, Any]) -> list[str]:
    console = Console(file=StringIO(), width=90)
    show_plan("fire", plan, console)
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_plan_of_an_event_query_begins_with_its_sentences() -> None:
    lines = show(plan_of(dict(KINDS["event_query"].example)))
    assert lines[:4] == [
        "fire",
        (
            "A Report event r stops a combination if the end of r is at or after the end of s and "
            "at most 5 min after it."
        ),
        "A result is final when Report has reached its end + 5 min, and Smoke its end.",
        "A Smoke event s is kept until Report has reached its end + 5 min, and Smoke its end.",
    ]
    assert "  ON event s: Smoke {area {var X}}" in lines
    # Durations in µs have a unit.
    assert "    report  -5min" in lines
    assert "  s      Smoke   smoke   no       keep(s.rt.end) = progress(Alarm)  0s" in lines


def test_alternatives_of_a_plan_are_joined_by_or() -> None:
    query = """DETECT A ON event s: Smoke not event r: Report
    WHERE (s.rt.end <= r.rt.end and r.rt.end <= s.rt.end + 5 min) or r.rt.end = s.rt.end - 3 min
    END"""
    lines = show(plan_of({"kind": "event_query", "query": query}))
    header = next(place for place, line in enumerate(lines) if "further clauses" in line)
    assert [" ".join(line.split()) for line in lines[header + 1 :][:3]] == [
        "- - 0",
        "r r.rt.end <= s.rt.end + 5 min and s.rt.end <= r.rt.end 0",
        "or r.rt.end = s.rt.end - 3 min",
    ]


def test_plan_of_a_timing_condition_has_its_regions_in_a_table() -> None:
    lines = show(plan_of({"kind": "mutual_deadline", **PAIR, "window_us": 2_000_000}))
    assert "algorithm  lazy_lookup" in lines
    assert any(line.split()[:3] == ["length", "LH", "LL"] for line in lines)
    assert "  seismic   watermark of acoustic + (-2080ms)" in lines


def test_unknown_fields_of_other_kinds_are_shown() -> None:
    lines = show({"compares": "[b]2 s[/]\\x1b", "keeps_us": {"a": 0}, "none": None, "empty": []})
    assert "compares  [b]2 s[/]\\x1b" in lines
    assert "  a  0s" in lines
    assert not any("none" in line or "empty" in line for line in lines)
    lines = show({"rows": [{"filter": {"area": "\x9b2J\u202e"}}]})
    assert lines[-1] == r'  {"area": "\x9b2J\u202e"}'


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer with a plan as JSON or as a picture, as the Accept header asks."""

    def answer(_: httpx.Client, method: str, path: str, **options: Any) -> httpx.Response:  # noqa: ANN401 - as httpx
        request = httpx.Request(method, f"http://here{path}")
        if path != "/v1/conditions/fire/plan":
            return httpx.Response(404, json={"detail": "no such condition"}, request=request)
        if (options.get("headers") or {}).get("Accept") == "image/svg+xml":
            headers = {"Content-Type": "image/svg+xml; charset=utf-8"}
            return httpx.Response(200, text="<svg>→</svg>\n", headers=headers, request=request)
        return httpx.Response(200, json={"sentences": ["All is kept."]}, request=request)

    monkeypatch.setattr(httpx.Client, "request", answer)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@pytest.mark.usefixtures("service")
def test_command_writes_sentences_json_or_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("plan", "fire") == 0
    assert capsys.readouterr().out == "fire\nAll is kept.\n"
    assert run("plan", "fire", "--json") == 0
    assert capsys.readouterr().out == '{"sentences":["All is kept."]}\n'
    file = tmp_path / "plan.svg"
    assert run("plan", "fire", "--svg", str(file)) == 0
    assert file.read_text(encoding="utf-8") == "<svg>→</svg>\n"
    assert capsys.readouterr().out == ""
    assert run("plan", "fire", "--svg", "-") == 0
    assert capsys.readouterr().out == "<svg>→</svg>\n"


@pytest.mark.usefixtures("service")
def test_command_refuses_what_it_cannot_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("plan", "other") == 6
    assert run("plan", "fire", "--svg", "x", "--json") == 2
    assert run("plan", "fire", "--svg", str(tmp_path / "missing" / "x.svg")) == 2
    assert "written: No such file" in capsys.readouterr().err
