"""`coincide replay` as typed: its output, errors and exit codes."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from concurrent.futures import Future
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from cli.errors import ProcessError, UsageError
from cli.main import main
from cli.replay import options as options_module
from cli.replay.chunks import Chunk
from cli.replay.crew import Orders, Together, result_of
from cli.replay.merging import Source, merge
from cli.replay.options import EventFile, EventPartition, count_processes, event_files
from cli.replay.reading import InputReader, Taken
from cli.replay.results import Output
from cli.replay.setup import Setup
from cli.replay.slots import Found, Step
from cli.replay.thresholds import read_thresholds
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from tests.support.messages import assert_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[4]
RESOURCES = """\
{kind: stream, name: a, topic: ta, max_uncertainty: 1s, max_delay: 1s}
---
{kind: stream, name: b, topic: tb, max_uncertainty: 1s, max_delay: 1s}
---
{kind: stream, name: all, topic: tc, max_uncertainty: 1s, max_delay: 1s, partitioning: {by: grid}}
---
{kind: mutual_deadline, name: near, a: a, b: b, window: 1s, threshold: 0.5}
---
{kind: within, name: self, a: all, b: all, lower: 0s, upper: 1s, threshold: 0.5}
"""
NEAR = ("--condition", "near")


class Done(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int | str | None
    out: str
    err: str

    @property
    def ids(self) -> list[tuple[str, str]]:
        alarms = [json.loads(line) for line in self.out.splitlines()]
        return [(alarm["a"]["id"], alarm["b"]["id"]) for alarm in alarms]


class Command:
    """Types commands in a folder that has some files."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[bytes]) -> None:
        self.folder = folder
        self._capture = capture
        (folder / "r.yaml").write_text(RESOURCES, encoding="utf-8")

    def write(self, name: str, *events: dict[str, Any] | str) -> str:
        lines = [it if isinstance(it, str) else json.dumps(it) for it in events]
        (self.folder / name).write_text("\n".join(lines), encoding="utf-8")
        return name

    def __call__(self, *arguments: str) -> Done:
        self._capture.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["replay", "-f", "r.yaml", *arguments])
        out, err = self._capture.readouterr()
        return Done(ended.value.code, out.decode(), err.decode())


@pytest.fixture
def replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command(tmp_path, capsysbinary)


def event(ident: str, latest: int, **fields: object) -> dict[str, Any]:
    return {"id": ident, "key": "k", "earliest": latest, "latest": latest, **fields}


def test_alarms_go_to_standard_output_and_the_summary_to_standard_error(replay: Command) -> None:
    a = replay.write("a.jsonl", event("a1", 0), event("a2", 3_000_000))
    b = replay.write("b.jsonl", event("b1", 1_000_000), event("b2", 1_000_001), "{")
    done = replay(*NEAR, "--events", f"a={a}", "--events", f"b={b}")
    assert (done.code, done.ids) == (0, [("a1", "b1")])
    assert "near" in done.err
    assert "1 rejected, malformed_json" in done.err
    assert "b.jsonl, line 3" in done.err
    # The same as JSON, out of the alarms' way.
    done = replay(*NEAR, "--events", f"a={a}", "--events", f"b={b}", "--json")
    report = json.loads(done.err)
    assert done.ids == [("a1", "b1")]
    assert report["conditions"]["near"] == {
        "events": 4,
        "late": 0,
        "rejected": 1,
        "pairs": 1,
        "decided_by": {"satisfaction_region": 1, "probe": 0, "lookup": 0},
        "hit_ratio": None,
        "evaluations": 0,
    }
    assert report["streams"]["b"]["rejected"] == {"malformed_json": 1}
    assert (report["rows"], report["events"]) == (5, 4)


@pytest.mark.parametrize(
    "ident",
    ["=cmd|' /C calc'!A0", '=HYPERLINK("http://example.com","x")', "+1", "@SUM(1)", "-1\t,\r"],
)
def test_ids_that_a_spreadsheet_would_evaluate_stay_as_they_are(
    ident: str, replay: Command
) -> None:
    a = replay.write("a.jsonl", event(ident, 0))
    b = replay.write("b.jsonl", event(ident, 0))
    done = replay(*NEAR, "--events", f"a={a}", "--events", f"b={b}")
    # One line of valid JSON; docs/security.md says who escapes.
    assert (done.code, done.ids, done.out.count("\n")) == (0, [(ident, ident)], 1)


def test_files_that_exist_are_replaced_only_by_force(replay: Command) -> None:
    a = replay.write("a.jsonl", event("a1", 0), "x")
    b = replay.write("b.jsonl", event("b1", 0))
    both = ("--events", f"a={a}", "--events", f"b={b}")
    for option in ("--alarms", "--rejects"):
        replay.write("old", "precious")
        done = replay(*NEAR, *both, option, "old")
        assert done.code == 2
        assert done.out == ""
        (line,) = done.err.splitlines()
        assert line.startswith(f"error: {option} old: ")
        assert_names(line, "exists", "--force")
        assert (replay.folder / "old").read_text().strip() == "precious"
        assert replay(*NEAR, *both, option, "old", "--force").code == 0
        assert "precious" not in (replay.folder / "old").read_text()
    # A device is not replaced.
    assert replay(*NEAR, *both, "--alarms", "/dev/null").code == 0


@pytest.mark.parametrize(
    ("options", "code", "end"),
    [
        (
            [],
            0,
            "1 of 3 rows rejected; --rejects FILE keeps them, with --strict the exit code is 1",
        ),
        (["--rejects", "r"], 0, "1 of 3 rows rejected; with --strict the exit code is 1"),
        (["--json", "--alarms", "o"], 0, "1 of 3 rows rejected; --rejects FILE keeps them, with"),
        (["--strict"], 1, "rejected; --rejects FILE keeps them\nerror: --strict: 1 row rejected, "),
        (["--strict", "--rejects", "r"], 1, "1 of 3 rows rejected\nerror: --strict: 1 row reject"),
    ],
)
def test_rejected_rows_are_counted_at_the_end(
    options: list[str], code: int, end: str, replay: Command
) -> None:
    a = replay.write("a.jsonl", event("a1", 0), "x")
    b = replay.write("b.jsonl", event("b1", 0))
    done = replay(*NEAR, "--events", f"a={a}", "--events", f"b={b}", *options)
    assert done.code == code
    assert end in done.err
    assert end.rpartition("\n")[2] in done.err.splitlines()[-1]


def test_files_appear_when_they_are_complete(replay: Command) -> None:
    a = replay.write("a.jsonl", event("a1", 0), "x")
    b = replay.write("b.jsonl", event("b1", 0))
    both = ("--events", f"a={a}", "--events", f"b={b}")
    done = replay(*NEAR, *both, "--alarms", "out", "--rejects", "bad", "--json", "--strict")
    assert done.code == 1
    assert json.loads(done.out)["conditions"]["near"]["pairs"] == 1
    assert "--strict: 1 row rejected, 0 events late" in done.err
    assert len((replay.folder / "out").read_bytes().splitlines()) == 1
    (letter,) = map(json.loads, (replay.folder / "bad").read_bytes().splitlines())
    assert (letter["file"], letter["line"], letter["record"]) == ("a.jsonl", 2, "x")
    replay.write("b.csv", "id,key", "b,k")
    done = replay(*NEAR, "--events", f"a={a}", "--events", "b=gone.jsonl", "--alarms", "later")
    assert done.code == 2
    assert_names(done.err, "gone.jsonl", os.strerror(errno.ENOENT))
    assert {path.name for path in replay.folder.iterdir()} == {
        *("r.yaml", "a.jsonl", "b.jsonl", "b.csv", "out", "bad")
    }


def test_late_events_are_counted_exactly_and_sorting_leaves_none(replay: Command) -> None:
    latest = (5_000_000, 4_000_000, 3_999_999, 9_000_000, 7_999_999, 8_000_000)
    a = replay.write("a.jsonl", *(event(f"a{i}", it) for i, it in enumerate(latest)))
    b = replay.write("b.jsonl", *(event(f"b{i}", it) for i, it in enumerate(sorted(latest))))
    both = ("--events", f"a={a}", "--events", f"b={b}")
    done = replay(*NEAR, *both, "--json", "--alarms", "out")
    assert json.loads(done.out)["streams"]["a"]["late"] == 2
    assert "2 late" in replay(*NEAR, *both, "--strict").err
    done = replay(*NEAR, *both, "--json", "--alarms", "out", "--sort", "--strict", "--force")
    assert (done.code, json.loads(done.out)["streams"]["a"]["late"]) == (0, 0)


def test_standard_input_and_several_files_of_a_stream(
    replay: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    b = replay.write("b.jsonl", event("b1", 0))
    replay.write("more.txt", "id,key,earliest,latest", ",k,0,0")
    given = io.TextIOWrapper(io.BytesIO(b"id,key,time\na1,k,0\n"))
    monkeypatch.setattr(sys, "stdin", given)
    files = ("--events", "a=-", "--events", "a=more.txt", "--events", f"b={b}")
    done = replay(*NEAR, *files, "--format", "csv")
    assert sorted(done.ids) == [("a1", "b1"), ("ta-1-0", "b1")]


def test_record_key_of_kafka_may_be_a_field(replay: Command) -> None:
    fields = {"key": None, "where": {"site": 7}}
    a = replay.write("a.jsonl", event("a1", 0, **fields))
    b = replay.write("b.jsonl", event("b1", 0, key="7"))
    both = ("--events", f"a={a}", "--events", f"b={b}")
    assert replay(*NEAR, *both).ids == []
    assert replay(*NEAR, *both, "--key", "a=where.site").ids == [("a1", "b1")]


@pytest.mark.slow
def test_grid_and_empty_files_in_several_processes(replay: Command) -> None:
    events = [event(f"e{i:03}", i * 400_000, key=None) for i in range(90)]
    c = replay.write("c.jsonl", *events)
    nothing = replay.write("nothing.jsonl")
    files = [f"all={c}", f"a={nothing}", f"b={nothing}"]
    given = [it for file in files for it in ("--events", file)]
    alone, together = (replay(*given, "--processes", count) for count in "12")
    assert len(alone.ids) == 89 + 88
    assert together.out == alone.out


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--events", "c=a.jsonl"], ["stream c", "not in the files", "a, all, b"]),
        (["--events", "a=a.jsonl"], ["condition near", "stream b", "events are missing"]),
        (["--events", "a=a.jsonl", "--events", "a=a.jsonl"], ["--events a=a.jsonl", "twice"]),
        (["--events", "a"], ["--events STREAM=FILE"]),
        (["--events", "a=a.dat"], ["a.dat", "--format jsonl, csv or parquet"]),
        (["--events", "a=-", "--events", "b=-", "--format", "csv"], ["only once"]),
        (["--events", "a=-", "--format", "parquet"], ["--events a=-", "Parquet", "standard input"]),
        (["--events", "a=a.jsonl", "--condition", "far"], ["far", "near, self"]),
        (["--events", "a=a.jsonl", "--key", "b=x"], ["--key", "stream b", "use one of: a"]),
        (["--events", "a=a.jsonl", "--rejects", "a.jsonl"], ["a.jsonl", "both", "input", "output"]),
        (["--events", "a=a.jsonl", "--alarms", "o", "--rejects", "o"], ["same file"]),
        (
            ["--events", "a=a.jsonl", "--thresholds", "0.5", "--alarms", "x"],
            ["--alarms", "combined with --thresholds"],
        ),
        (["--events", "a=a.jsonl", "--thresholds", "0"], ["--thresholds", "'0'", "over 0"]),
        (["--events", "a=a.jsonl", "-f", "r.yaml"], ["stream a", "2 times"]),
        (
            ["--events", "a=a.jsonl", "-f", "bad.yaml"],
            ["bad.yaml, document 1 (line 1), stream bad: max_uncertainty", "missing"],
        ),
        (["--events", "a=a.jsonl", "-f", "odd.yaml"], ["condition odd: window_s", "got -1s"]),
        (
            ["--events", "a=a.jsonl", "-f", "two.yaml"],
            ["condition two: emit", "best", "block_interval_s: requires"],
        ),
        (["--events", "a=a.jsonl", "-f", "lost.yaml"], ["lost", "stream gone", "use one of: a"]),
        (["--events", "a=a.jsonl", "-f", "mixed.yaml"], ["mixed: b", "partitioned by grid"]),
        (
            ["--events", "all=a.jsonl", "--condition", "self", "--alarms", "no/x"],
            ["no/x", "written"],
        ),
        (
            ["--events", "all=.", "--condition", "self", "--format", "csv"],
            [os.strerror(errno.EISDIR)],
        ),
    ],
)
def test_wrong_usage_is_one_sentence(
    replay: Command, arguments: list[str], names: list[str]
) -> None:
    replay.write("a.jsonl", event("a", 0))
    replay.write("bad.yaml", '{"kind": "stream", "name": "bad", "topic": "t", "max_delay": "1s"}')
    near = '"kind": "mutual_deadline", "threshold": 0.5'
    replay.write("odd.yaml", f'{{{near}, "name": "odd", "a": "a", "b": "b", "window_s": -1}}')
    two = '"block_interval_s": 2, "emit": "best", "output": "factored"'
    replay.write("two.yaml", f'{{{near}, "name": "two", "a": "a", "b": "b", "window_s": 1, {two}}}')
    replay.write("lost.yaml", f'{{{near}, "name": "lost", "a": "a", "b": "gone", "window_s": 1}}')
    replay.write("mixed.yaml", f'{{{near}, "name": "mixed", "a": "a", "b": "all", "window_s": 1}}')
    done = replay(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert_names(done.err, *names)


@pytest.mark.parametrize("field", ['"output": "factored"', '"max_pairs": 1'])
def test_every_pair_has_a_line_whatever_the_output_and_the_limit(
    replay: Command, field: str
) -> None:
    replay.write(
        "factored.yaml",
        '{"kind": "mutual_deadline", "name": "factored", "a": "a", "b": "b", "window_s": 1, '
        f'"threshold": 0.5, {field}}}',
    )
    a = replay.write("a.jsonl", event("a1", 0))
    b = replay.write("b.jsonl", event("b1", 1), event("b2", 2))
    files = ("--events", f"a={a}", "--events", f"b={b}")
    done = replay("-f", "factored.yaml", "--condition", "factored", *files)
    assert (done.code, done.ids) == (0, [("a1", "b1"), ("a1", "b2")]), done.err


def test_replay_needs_neither_spark_nor_kafka(replay: Command) -> None:
    a = replay.write("a.jsonl", event("a1", 0))
    b = replay.write("b.jsonl", event("b1", 0))
    arguments = ["replay", "-f", "r.yaml", *NEAR, "--events", f"a={a}", "--events", f"b={b}"]
    program = (
        "import sys\n"
        "for name in ('pyspark', 'py4j', 'confluent_kafka'): sys.modules[name] = None\n"
        f"from cli.main import main\nmain({arguments!r})"
    )
    # This Python, without what may be missing where replay is all that is wanted.
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program],
        env={"PATH": "", "PYTHONPATH": str(ROOT), "HOME": str(replay.folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["b"]["id"] == "b1"


@pytest.mark.parametrize(
    ("text", "thresholds"),
    [
        ("0.5", ["0.5"]),
        ("0.7,0.5,.70", ["0.5", "0.7"]),
        ("0.5..0.9:0.1", ["0.5", "0.6", "0.7", "0.8", "0.9"]),
        ("0.1..0.35:0.1,1", ["0.1", "0.2", "0.3", "1"]),
        ("0.1..0.1:1", ["0.1"]),
    ],
)
def test_thresholds_are_read_exactly(text: str, thresholds: list[str]) -> None:
    assert read_thresholds(text) == tuple(map(Decimal, thresholds))


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "0", "1.1", "0.5,", "0.12345678901"),
        *("0.5..0.9", "0.9..0.5:0.1", "0..1:0.1", "0.001..1:0.001"),
        *("0.1..1:0", "0.1..1:-1", "0.1..1:nan", "0.1..1:x"),
    ],
)
def test_what_is_no_threshold_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--thresholds"):
        read_thresholds(text)


def test_processes_are_worth_it_for_large_files_and_for_those_of_no_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options_module, "usable_cores", lambda: 5)
    small, large = tmp_path / "small.jsonl", tmp_path / "large.jsonl"
    small.write_bytes(b"x")
    with large.open("wb") as opened:
        opened.truncate(20_000_000)

    def count(*arguments: str) -> int:
        return count_processes(None, event_files(arguments, "jsonl"))

    assert [count(f"a={small}"), count(f"a={small}", f"a={large}"), count("a=-")] == [1, 5, 5]
    for end, expected in ((60_000, 1), (61_000, 1), (130_000, 5)):
        partition = EventPartition("a", 0, "ta", 1_000, end)
        assert count_processes(None, [partition]) == expected
    assert count_processes(3, []) == 3


class _Recorder:
    """A crew that reads, and records the blocks instead of evaluating them."""

    hands = 1

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def advance(self, step: Step) -> Iterator[Found]:
        self.steps.append(step)
        yield Found(0, [], [])


def test_files_come_along_together_however_many_events_they_have() -> None:
    stream = {name: Stream(name, name, 0, 0, clock="replay") for name in "ab"}

    def source(name: str, count: int) -> Source:
        file = EventFile(name, 0, Path(name), "jsonl")
        reader = InputReader(file, stream[name], 1_000, letters=False)
        step = 1_000_000 // count
        lines = [json.dumps(event(f"{name}{i}", i * step)).encode() for i in range(count)]
        chunks = (Chunk(i, i, 0, lines[i : i + 50]) for i in range(0, count, 50))
        return Source(file, stream[name], chunks, _done(reader), 2, lambda _: None)

    crew, sources = _Recorder(), [source("a", 20_000), source("b", 200)]
    blocks = merge(sources, crew, 10, Output(alarms=True))  # type: ignore[arg-type]  # it reads only
    assert list(blocks) == [[] for _ in crew.steps]
    reached = {"a": -1, "b": -1}
    for step in crew.steps:
        for progress in step.progress:
            others = [it for name, it in reached.items() if name != progress.stream]
            # The one that goes on was behind.
            assert reached[progress.stream] <= min(others) or max(others) >= 990_000
            assert progress.max_latest is not None
            reached[progress.stream] = progress.max_latest
    assert [len(step.heartbeats) for step in crew.steps].count(1) == 2


def _done(reader: InputReader) -> Callable[[Chunk], Future[Taken]]:
    def read(chunk: Chunk) -> Future[Taken]:
        future: Future[Taken] = Future()
        future.set_result(reader.read(chunk))
        return future

    return read


@pytest.mark.slow
def test_process_that_is_killed_is_told_in_a_sentence(tmp_path: Path) -> None:
    document = {"kind": "mutual_deadline", "a": "a", "b": "a", "window_us": 1, "threshold": "1"}
    setup = Setup(
        {"a": Stream("a", "a", 0, 0, clock="replay")},
        {"a": 1},
        (Resource("condition", "c", 1, 0, document),),
    )
    file = EventFile("a", 0, tmp_path / "a", "jsonl")
    orders = Orders(setup, (file,), 1_000, alarms=True, letters=False)
    with Together(orders, 1) as crew:
        result_of(crew.read(0, Chunk(0, 1, 0, [b"{}"])))
        (process,) = crew._processes[0]._processes.values()  # noqa: SLF001 - to be killed
        process.kill()
        process.join()
        with pytest.raises(ProcessError, match="ended before"):
            list(crew.advance(Step({}, (), ())))


@pytest.mark.parametrize("groups", [2, 5])
def test_groups_of_a_grid_change_nothing_that_is_found(replay: Command, groups: int) -> None:
    events = [event(f"e{n:02}", 300_000 * (n * 7 % 40)) for n in range(40)]
    file = replay.write("e.jsonl", *events)
    arguments = ("--condition", "self", "--events", f"all={file}", "--processes", "2")
    resources = replay.folder / "r.yaml"
    found = []
    for written in ("grid", f"{{by: grid, groups: {groups}}}"):
        text = RESOURCES.replace("{by: grid}", written)
        assert written in text
        resources.write_text(text, encoding="utf-8")
        done = replay(*arguments, "--json")
        report = json.loads(done.err)["conditions"]["self"]
        assert report["pairs"] == len(done.ids) > 100
        found.append((done.ids, report["events"], report["pairs"]))
    assert found[0] == found[1]


def test_emit_best_is_refused_in_a_grid_of_several_groups(replay: Command) -> None:
    text = RESOURCES.replace("{by: grid}", "{by: grid, groups: 2}")
    text = text.replace("upper: 1s", "upper: 1s, emit: best")
    (replay.folder / "r.yaml").write_text(text, encoding="utf-8")
    done = replay("--condition", "self", "--events", f"all={replay.write('e.jsonl')}")
    assert done.code == 2
    assert_names(done.err, "emit: best", "in one slot")
