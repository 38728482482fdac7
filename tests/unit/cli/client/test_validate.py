"""The command `validate`: its requests, what it shows, and what it refuses."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from io import StringIO
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from rich.console import Console

from cli.client.validate import show_validation
from cli.main import main
from tests.support.messages import assert_names

if TYPE_CHECKING:
    from pathlib import Path

_TWO = """\
kind: topk_similarity
name: one
a: alerts
k: 10
window: 1h
---
kind: topk_similarity
name: two
a: alerts
b: tickets
k: 10
window: 1h
"""
_VALID = {"valid": True, "errors": [], "document": {}, "derived": {}, "sample": None}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Answer that each condition is valid; return the paths and bodies of requests."""
    found: list[tuple[str, Any]] = []

    def answer(_: httpx.Client, method: str, path: str, **options: Any) -> httpx.Response:  # noqa: ANN401 - as httpx
        found.append((path, json.loads(options["content"], parse_float=Decimal)))
        request = httpx.Request(method, f"http://here{path}")
        return httpx.Response(200, json=_VALID, request=request)

    monkeypatch.setattr(httpx.Client, "request", answer)
    return found


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["validate", *arguments])
    return int(ended.value.code or 0)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Return a file with two conditions, and one with three records and an empty line."""
    conditions, records = tmp_path / "c.yaml", tmp_path / "r.jsonl"
    conditions.write_text(_TWO)
    records.write_text('{"at": 0.70000000000000000001}\n{"at": 2}\n\n{"at": 3}')
    return str(conditions), str(records)


def test_each_condition_gets_the_samples_and_rates_of_its_streams(
    files: tuple[str, str], asked: list[tuple[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    conditions, records = files
    options = ("--sample", f"tickets={records}", "--rate", "alerts=0.1", "--rate", "tickets=2")
    assert run("-f", conditions, *options, "--json") == 0
    (path, one), (_, two) = asked
    assert path == "/v1/conditions:validate"
    assert one["condition"]["kind"] == "topk_similarity"
    assert {name: it for name, it in one.items() if name != "condition"} == {
        "rates": {"alerts": Decimal("0.1")}
    }
    assert two["rates"] == {"alerts": Decimal("0.1"), "tickets": 2}
    # Every digit is sent.
    assert two["sample"] == {
        "tickets": [{"at": Decimal("0.70000000000000000001")}, {"at": 2}, {"at": 3}]
    }
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line) for line in lines] == [{"name": it, **_VALID} for it in ("one", "two")]


def test_only_the_last_records_of_a_file_are_sent(
    files: tuple[str, str], asked: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    conditions, records = files
    given = ("--sample", f"alerts={records}", "--records", "2", "--keys", "5")
    assert run("-f", conditions, *given) == 0
    assert asked[0][1]["sample"] == {"alerts": [{"at": 2}, {"at": 3}]}
    assert asked[0][1]["keys"] == 5
    stdin = io.TextIOWrapper(io.BytesIO(b'{"at": 4}\n'))
    monkeypatch.setattr("sys.stdin", stdin)
    asked.clear()
    assert run("-f", conditions, "--sample", "alerts=-") == 0
    assert asked[0][1]["sample"] == {"alerts": [{"at": 4}]}


def test_a_sample_of_the_topic_is_asked_for_with_its_size(
    files: tuple[str, str], asked: list[tuple[str, Any]]
) -> None:
    assert run("-f", files[0], "--from-topic", "--records", "50") == 0
    path, body = asked[0]
    assert path == "/v1/conditions:validate?sample_from_topic=true&sample_records=50"
    assert set(body) == {"condition"}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--sample", "alerts"), ["--sample", "'alerts'", "STREAM=VALUE"]),
        (("--sample", "a=x", "--sample", "a=y"), ["--sample: a", "several times"]),
        (("--sample", "other=x"), ["--sample", "no condition", "stream other"]),
        (("--rate", "other=1"), ["--rate", "no condition", "stream other"]),
        (("--rate", "alerts=fast"), ["--rate: alerts=fast", "events per second"]),
        (("--rate", "alerts=inf"), ["--rate: alerts=inf", "events per second"]),
        (("--sample", "alerts=/no/file"), ["--sample: /no/file", "No such file"]),
        (("--sample", "alerts=/dev/null"), ["--sample: /dev/null", "no records"]),
        (("--from-topic", "--sample", "alerts=x"), ["--from-topic and --sample", "combined"]),
        (("--sample", "a=-", "--sample", "b=-"), ["only one file", "standard input"]),
    ],
)
@pytest.mark.usefixtures("asked")
def test_options_that_are_not_valid_are_named(
    files: tuple[str, str],
    options: tuple[str, ...],
    names: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("-f", files[0], *options) == 2
    assert_names(capsys.readouterr().err, *names)


@pytest.mark.usefixtures("asked")
def test_files_that_are_not_valid_are_named(
    tmp_path: Path, files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text("{}\n{")
    assert run("-f", files[0], "--sample", f"alerts={wrong}") == 2
    assert f"--sample: {wrong}, line 2: must be one JSON document" in capsys.readouterr().err
    stream = tmp_path / "stream.yaml"
    stream.write_text("kind: stream\nname: alerts\n")
    assert run("-f", str(stream)) == 2
    assert "no condition" in capsys.readouterr().err


def show(answer: dict[str, Any]) -> list[str]:
    console = Console(file=StringIO(), width=90)
    show_validation("alike", answer, console)
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_warnings_come_first_and_durations_and_times_have_units() -> None:
    facts = {"records": 2, "first_time": 0, "last_time": 1_500_000, "rejected": {"bad_tokens": 1}}
    sample = {
        "streams": {"alerts": facts},
        "expected": {"valid_sets": {"alerts": 10}, "list_bytes": 9},
        "warnings": ["alerts: [b]one[/]"],
    }
    derived = {"worst_case_alarm_latency_us": 2_000_000}
    lines = show({**_VALID, "derived": derived, "sample": sample})
    assert lines[:3] == ["alike", "valid", "warning: alerts: [b]one[/]"]
    assert "worst case alarm latency  2s" in lines
    assert "  last time   1970-01-01T00:00:01.500000Z" in [it[2:] for it in lines]
    assert "  list bytes  9" in lines
    assert show({**_VALID, "derived": {}})[:2] == ["alike", "valid"]


def test_problems_are_listed_with_remedies() -> None:
    errors = [{"field": it, "problem": "is odd", "remedy": "use 2"} for it in ("k", "")]
    assert show({**_VALID, "valid": False, "errors": errors, "derived": None}) == [
        "alike is not valid",
        "k: is odd; use 2",
        "document: is odd; use 2",
    ]


def test_exit_code_is_1_if_a_condition_is_not_valid(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(_: httpx.Client, method: str, path: str, **__: object) -> httpx.Response:
        wrong = {**_VALID, "valid": False, "derived": None}
        return httpx.Response(200, json=wrong, request=httpx.Request(method, f"http://h{path}"))

    monkeypatch.setattr(httpx.Client, "request", answer)
    assert run("-f", files[0]) == 1
