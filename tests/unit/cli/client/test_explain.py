"""Requests of `explain`, and the format of its answer."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cli.client.explain import read_request, show_explanation
from cli.client.picture import WIDTH, draw_pair
from cli.errors import UsageError
from cli.main import main
from correlation.explaining import GivenRecord
from correlation.kinds import KINDS, condition_from_document
from correlation.limits import DURATION_LIMIT_US, LENGTH_LIMIT_US, TIME_LIMIT_US
from correlation.resources.streams import Stream

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000
NOON_US = 1_767_268_800_000_000
NEAR = {"kind": "mutual_deadline", "window_us": 3 * SECOND, "threshold": "0.6"}


def explain(
    a: tuple[int, int],
    b: tuple[int, int],
    /,
    max_uncertainty_us: int = 2 * SECOND,
    **changes: object,
) -> dict[str, Any]:
    document = {**NEAR, "a": "acoustic", "b": "seismic", **changes}
    condition = condition_from_document("footsteps", 1, document)
    streams = {
        name: Stream(name, name, max_uncertainty_us, SECOND, clock="replay")
        for name in condition.streams
    }
    records = {
        role: GivenRecord({"id": event_id, "key": "k", "earliest": span[0], "latest": span[1]})
        for role, event_id, span in (("a", "mic-1", a), ("b", "geo-7", b))
    }
    kind = KINDS[condition.kind]
    common = {"condition": "footsteps", "version": 1, "kind": kind.name}
    answer = kind.explain(condition, streams, records)
    return {**common, "roles": list(kind.roles(condition)), **answer}


def show(answer: dict[str, Any]) -> str:
    console = Console(file=io.StringIO(), width=80, highlight=False)
    show_explanation(answer, console)
    file = console.file
    assert isinstance(file, io.StringIO)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


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
    assert "A and B were swapped" in shown
    assert shown.endswith("note: 2 records [have] the id of A")


def test_answer_of_a_kind_that_has_no_picture_is_shown() -> None:
    answer = explain((0, 0), (0, 0))
    plain = {name: answer[name] for name in answer if name not in {"window", "regions"}}
    assert "SATISFIED" in show({**plain, "decided_by": None})


@st.composite
def pairs(draw: st.DrawFn) -> dict[str, Any]:
    """Draw an explanation of any two events, far apart or near, in any unit."""
    scale = draw(st.sampled_from([1, 1_000, SECOND, 3600 * SECOND]))
    latest = draw(st.integers(-TIME_LIMIT_US // 4, TIME_LIMIT_US // 4))
    apart = draw(st.integers(-100, 100)) * scale + draw(st.sampled_from([0, 0, 1, 2**55]))
    lengths = [draw(st.integers(0, min(50 * scale, LENGTH_LIMIT_US))) for _ in "ab"]
    window = min(draw(st.integers(0, 100)) * scale, DURATION_LIMIT_US)
    end = latest + apart
    changes: dict[str, Any] = {}
    if draw(st.booleans()):
        kind = draw(st.sampled_from(["deadline", "delay"]))
        changes = {"kind": kind, f"{kind}_us": window // 2, "horizon_us": window}
    return explain(
        (latest - lengths[0], latest),
        (end - lengths[1], end),
        max_uncertainty_us=max(lengths),
        window_us=window,
        **changes,
    )


@given(pairs())
def test_picture_fits_and_is_true_to_scale(answer: dict[str, Any]) -> None:
    lines = draw_pair(answer)
    assert all(len(line) <= WIDTH for line in lines)
    rows = {line[:11].strip(): line[11:] for line in lines[:5]}
    bars = {}
    for role, sign, span in (
        ("A", "█", (answer["a"]["earliest"], answer["a"]["latest"])),
        ("B", "█", (answer["b"]["earliest"], answer["b"]["latest"])),
        ("B ends", "▲", (answer["b"]["latest"],) * 2),
    ):
        first, last = rows[role].find(sign), rows[role].rfind(sign)
        assert first >= 0
        assert rows[role][first : last + 1] == sign * (last - first + 1)
        bars[role] = (first, last, span)
    # Equal times are in equal columns; between any two the columns are in proportion.
    ends = [
        (column, time)
        for first, last, span in bars.values()
        for column, time in ((first, span[0]), (last, span[1]))
    ]
    widest = max(ends, key=lambda end: end[1])[1] - min(ends, key=lambda end: end[1])[1]
    low, high = min(ends), max(ends)
    for column, time in ends:
        if widest and high[0] > low[0]:
            expected = low[0] + (time - low[1]) / (high[1] - low[1]) * (high[0] - low[0])
            assert abs(column - expected) <= 2
    # The axis has its zero, where A ends.
    axis, labels = lines[-2], lines[-1].ljust(WIDTH)
    zero = 11 + bars["A"][1]
    assert axis[zero] == "┼"
    assert "0" in labels[max(0, zero - 3) : zero + 4]


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
    assert "s has several events; write one --event for each role" in shown


def test_a_rejected_record_has_no_name_and_an_exact_time_is_one_moment() -> None:
    answer = explain((NOON_US, NOON_US), (0, 3 * SECOND))
    assert answer["b"]["reason"] == "longer_than_declared"
    shown = show(answer).splitlines()
    assert shown[shown.index("A  acoustic:mic-1 @k") + 1] == "   2026-01-01T12:00:00Z"
    assert "B  seismic" in shown
