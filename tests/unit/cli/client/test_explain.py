"""Requests of `explain`, and the format of its answer."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from cli.client.explain import read_request, show_explanation
from cli.errors import UsageError
from cli.main import main
from tests.support.messages import assert_names
from tests.unit.correlation.timing.test_drawing import NOON_US, SECOND, explain

if TYPE_CHECKING:
    from pathlib import Path


def show(answer: dict[str, Any], width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, emoji=False)
    show_explanation(answer, console)
    file = console.file
    assert isinstance(file, io.StringIO)
    return "\n".join(line.rstrip() for line in file.getvalue().split("\n")).rstrip("\n")


SHOWN = """\
SATISFIED  footsteps version 1, mutual_deadline
the probability is 1, the threshold is 0.6

✓ contract  A and B are valid events of their streams
✓ key       A and B have the key 'k'
✓ distance  B ends 2s after A: within reach of these streams
✓ threshold

A  acoustic:mic-1 @k
   2026-01-01T11:59:59.500000Z … 2026-01-01T12:00:00Z  500ms long
B  seismic:geo-7 @k
   2026-01-01T12:00:01Z … 2026-01-01T12:00:02Z  1s long

A                                       ██████
B                                                     ███████████
in window  ─────━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━─────
B may end     ░░░░░░░░░░░▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓░░░░░░░░
B ends                                                          ▲
           ──────────────┼───────────────────┼──────────────────┼───────────────
                        -2s                  0                 2s
━ B is in the window for every time of A, ─ for some times of A
▓ B that ends here is satisfied, ░ depends on its length, else violated
axis: from the end of A
"""


def test_answer_is_shown_with_its_picture() -> None:
    shown = show(
        explain((NOON_US - SECOND // 2, NOON_US), (NOON_US + SECOND, NOON_US + 2 * SECOND))
    )
    assert shown.startswith(SHOWN)
    assert shown.splitlines()[-1] == "decided by satisfaction region (lazy_lookup)"
    assert "A           -3.2s  -2.05s  2.7s  3.55s  2s              satisfaction region" in shown


def test_what_failed_is_said_once_and_first() -> None:
    shown = show(explain((0, 0), (90 * SECOND, 91 * SECOND)))
    assert shown.startswith("NOT SATISFIED  footsteps")
    assert shown.count("too far") == 1
    assert "✗ distance\n· threshold\n" in shown
    assert "outside: violated" in shown


def test_record_that_is_no_event_has_no_picture() -> None:
    shown = show(explain((0, 0), (5, 0)))
    assert "✗ contract\n· key\n" in shown
    assert "B  seismic\n   earliest_after_latest: earliest is 5 us after latest" in shown
    assert "█" not in shown


def test_notes_and_exchanged_events_are_told() -> None:
    answer = explain((SECOND, SECOND), (0, 0), b="acoustic")
    shown = show({**answer, "notes": ["2 records [have] the id of A"]})
    assert "swapped" in shown
    assert shown.endswith("note: 2 records [have] the id of A")


NASTY = "\x1b[2J\x1b[31mowned\nforged line\u202e\x9b[bold]:x:"
HARMLESS = r"\x1b[2J\x1b[31mowned\nforged line\u202e\x9b[bold]:x:"


def test_strings_of_events_cannot_write_lines_or_codes() -> None:
    answer = explain((0, 0), (SECOND, SECOND))
    event = answer["a"]
    assert answer["steps"][0]["detail"]
    place = {"topic": "t", "partition": 0, "offset": 1}
    nasty = {
        **answer,
        "explanation": f"explanation {NASTY}",
        "steps": [{**it, "detail": f"detail {NASTY}"} for it in answer["steps"]],
        "notes": [f"note {NASTY}"],
        "a": {**event, "id": NASTY, "key": NASTY, "place": place},
        "b": {**event, "attributes": {"area": NASTY}, "tokens": [NASTY]},
    }
    rejected = {**event, "earliest": None, "reason": "bad_tokens", "detail": f"reason {NASTY}"}
    aliases = {"events": {"a": nasty["a"], "b": rejected}}
    for changes in ({}, {"b": rejected, "window": None}, {**aliases, "window": None}):
        shown = show({**nasty, **changes}, width=10_000)
        lines = shown.split("\n")
        assert [it for it in lines if not it.isprintable()] == []
        assert [it for it in lines if it.startswith("forged")] == []
        for word in ("explanation", "detail", "note: note"):
            assert f"{word} {HARMLESS}" in shown
        # An id, and a key.
        assert shown.count(HARMLESS) >= 2 + len(nasty["steps"]) + 2
        assert f"reason {HARMLESS}" in shown or not changes


def test_answer_of_a_kind_that_has_no_picture_is_shown() -> None:
    answer = explain((0, 0), (0, 0))
    plain = {name: answer[name] for name in answer if name not in {"window", "regions"}}
    assert "SATISFIED" in show({**plain, "decided_by": None})


def test_events_are_json_files_or_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "event.json"
    file.write_text('{"earliest": 1, "latest": 1e3}\n')
    request = read_request({"a": ' {"id": "x"}', "b": str(file)}, "12", "2026-01-01T00:00:00Z")
    assert request == {
        "a": {"id": "x"},
        "b": {"earliest": 1, "latest": 1000.0},
        "since": 12,
        "until": "2026-01-01T00:00:00Z",
    }
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"time": 5}')))
    request = read_request({"a": "-", "b": "acoustic-0-17"}, None, None)
    assert request == {"a": {"time": 5}, "b": {"id": "acoustic-0-17"}}
    aliases = {"since": "s1", "until": '{"id": 2}'}
    assert read_request({}, "5", None, aliases) == {
        "since": 5,
        "events": {"since": {"id": "s1"}, "until": {"id": 2}},
    }
    # Names that no file can have are ids too.
    for name in ("x" * 5000, "a\0b", ""):
        assert read_request({"a": name}, None, None)["a"] == {"id": name}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "must be one JSON document"),
        ('{"a": 1}\n{"a": 2}', "must be one JSON document"),
        ("[1]", "must be a JSON object"),
        ('{"a": NaN}', "must be one JSON document"),
    ],
)
def test_file_that_is_no_event_is_refused(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "event.json"
    file.write_text(content)
    with pytest.raises(UsageError, match=words) as told:
        read_request({"a": str(file), "b": "x"}, None, None)
    assert str(file) in str(told.value)


def test_only_one_event_can_be_standard_input() -> None:
    with pytest.raises(UsageError, match="only one"):
        read_request({"a": "-", "b": "-"}, None, None)
    with pytest.raises(UsageError, match="only one"):
        read_request({}, None, None, {"s": "-", "r": "-"})


def test_folder_is_an_id_not_a_file(tmp_path: Path) -> None:
    assert read_request({"a": str(tmp_path)}, None, None)["a"] == {"id": str(tmp_path)}
    assert json.dumps(read_request({"a": "{}", "b": "{}"}, None, None)) == '{"a": {}, "b": {}}'


def test_role_has_one_event(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["explain", "c", "--event", "s=1", "--event", "r=2", "--event", "s=3"])
    assert ended.value.code == 2
    shown = " ".join(capsys.readouterr().err.replace("│", "").split())
    assert_names(shown, "s has several events", "--event")


def test_a_rejected_record_has_no_name_and_an_exact_time_is_one_moment() -> None:
    answer = explain((NOON_US, NOON_US), (0, 3 * SECOND))
    assert answer["b"]["reason"] == "longer_than_declared"
    shown = show(answer).splitlines()
    assert shown[shown.index("A  acoustic:mic-1 @k") + 1] == "   2026-01-01T12:00:00Z"
    assert "B  seismic" in shown
