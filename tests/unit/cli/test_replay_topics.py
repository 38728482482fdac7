"""`coincide replay --topics` as typed: combinations of options, and immediate errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.replay.slot_records import check_closed

from cli.errors import ProcessError
from cli.main import main
from cli.replay.setup import read_topic_setup
from correlation.engine.heartbeats import CLOSED
from correlation.kinds import to_condition

RESOURCES = """\
{kind: stream, name: a, topic: ta, max_uncertainty: 1s, max_delay: 1s}
---
{kind: stream, name: b, topic: tb, max_uncertainty: 1s, max_delay: 2s, clock: replay}
---
{kind: stream, name: unused, topic: tc, max_uncertainty: 1s, max_delay: 1s}
---
{kind: mutual_deadline, name: near, a: a, b: b, window: 1s, threshold: 0.5, output_topic: live}
---
{kind: mutual_deadline, name: other, a: a, b: unused, window: 1s, threshold: 0.5}
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "where are the events? give --events STREAM=FILE, or --topics"),
        (["--topics", "--events", "a=a.jsonl"], "--events: for events in files"),
        (["--topics", "--sort", "--key", "a=k"], "--key, --sort: for events in files"),
        (["--topics", "--processes", "2"], "--processes: for events in files"),
        (["--topics", "--format", "csv"], "--format: for events in files"),
        (["--events", "a=a.jsonl", "--keep"], "--keep: for events in Kafka; give --topics"),
        (["--bootstrap", "h:1"], "--bootstrap: for events in Kafka; give --topics"),
        (["--topics", "--thresholds", "0.5", "--alarms", "x"], "leave --alarms out"),
        (["--topics", "--rejects", "r.yaml"], "r.yaml would be read and written"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.yaml").write_text(RESOURCES)
    with pytest.raises(SystemExit) as ended:
        main(["replay", "-f", "r.yaml", *arguments])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_streams_are_read_as_recorded_and_alarms_go_to_no_topic_of_the_condition(
    tmp_path: Path,
) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(RESOURCES)
    setup = read_topic_setup([file], ["near"], lambda it: {"ta": 2, "tb": 3}[it.topic])
    assert setup.partitions == {"a": 2, "b": 3}
    assert {it.name: (it.clock, it.max_delay_us) for it in setup.streams.values()} == {
        "a": ("replay", 1_000_000),
        "b": ("replay", 2_000_000),
    }
    (near,) = setup.conditions
    assert to_condition(near).output_topic is None


def slot(*marks: int | None, slots: int = 2) -> dict[str, object]:
    """Give what a slot says of the watermarks of streams a and b, in this order."""
    found = {name: {"watermark": mark} for name, mark in zip("ab", marks, strict=False)}
    return {"slots": slots, "watermarks": found}


def test_every_slot_must_have_seen_the_end_of_every_stream() -> None:
    check_closed([slot(CLOSED, CLOSED), slot(CLOSED, CLOSED)], "ab")


@pytest.mark.parametrize(
    ("slots", "said"),
    [
        ([], "before it had read anything"),
        ([slot(CLOSED, CLOSED)], "before it had read anything"),
        ([slot(CLOSED, CLOSED), slot(CLOSED, 5)], "all of stream b"),
        ([slot(None, CLOSED), slot(CLOSED, CLOSED)], "all of stream a"),
        ([slot(CLOSED), slot(CLOSED)], "all of stream b"),
    ],
)
def test_replay_that_saw_no_end_is_no_result(slots: list[dict[str, object]], said: str) -> None:
    with pytest.raises(ProcessError, match=said):
        check_closed(slots, "ab")
