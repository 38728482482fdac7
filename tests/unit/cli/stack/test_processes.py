"""Child processes: start, wait and stop."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

import pytest

from cli.errors import ProcessError
from cli.stack.processes import ChildProcess
from tests.support.messages import naming
from tests.support.patience import PATIENCE_SECONDS

_READY = "import signal; print('ready', flush=True); signal.pause()"
_STUBBORN = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('ready', flush=True); signal.pause()\nwhile True: signal.pause()"
)


def _child(script: str, tmp_path: Path) -> ChildProcess:
    return ChildProcess("child", [sys.executable, "-c", script], tmp_path / "logs" / "child.log")


def _is_ready(child: ChildProcess) -> bool:
    return child.log_path.is_file() and "ready" in child.log_path.read_text()


def test_stop_ends_the_process_by_sigterm(tmp_path: Path) -> None:
    child = _child(_READY, tmp_path)
    child.start()
    child.wait_until(lambda: _is_ready(child), PATIENCE_SECONDS)
    assert child.running
    assert child.stop() == -15
    assert (child.running, child.pid) == (False, None)


def test_stop_kills_a_process_that_does_not_end(tmp_path: Path) -> None:
    child = _child(_STUBBORN, tmp_path)
    child.start()
    child.wait_until(lambda: _is_ready(child), PATIENCE_SECONDS)
    assert child.stop(patience_seconds=0.2) == -9


def test_wait_until_shows_the_end_of_the_log_when_the_process_ends(tmp_path: Path) -> None:
    child = _child("print('why it failed'); raise SystemExit(3)", tmp_path)
    child.start()
    with pytest.raises(ProcessError, match=naming("child", "exit code 3", "why it failed")):
        child.wait_until(lambda: False, PATIENCE_SECONDS)


def test_signal_that_ended_the_process_is_named(tmp_path: Path) -> None:
    child = _child("import os; os.kill(os.getpid(), 15)", tmp_path)
    child.start()
    with pytest.raises(ProcessError, match=naming("child", "exit code -15 (Terminated)")):
        child.wait_until(lambda: False, PATIENCE_SECONDS)
    killed = _child("import os; os.kill(os.getpid(), 9)", tmp_path)
    killed.start()
    with pytest.raises(ProcessError, match=r"exit code -9 \(killed by .* memory is short\)"):
        killed.wait_until(lambda: False, PATIENCE_SECONDS)


def test_last_error_is_shown_before_many_lines_of_java(tmp_path: Path) -> None:
    script = """
for error in ("other", "reason"):
    print(f"2026-01-01 00:00:00,000 ERROR spark_jobs.main: {error}")
for number in range(100):
    print(f"26/01/01 00:00:00 ERROR Executor: line {number}")
"""
    child = _child(script, tmp_path)
    child.start()
    with pytest.raises(ProcessError) as caught:
        child.wait_until(lambda: False, PATIENCE_SECONDS)
    first, *lines = str(caught.value).splitlines()[1:]
    assert first.endswith("ERROR spark_jobs.main: reason")
    assert lines[0].strip() == "…"
    assert lines[-1].endswith("line 99")
    assert len(lines) == 16
    assert "other" not in str(caught.value)


def test_errors_of_an_earlier_start_are_not_shown(tmp_path: Path) -> None:
    child = _child("print('new\\n' * 20)", tmp_path)
    child.log_path.parent.mkdir()
    child.log_path.write_text("2026-01-01 00:00:00,000 ERROR spark_jobs.main: former\n")
    child.start()
    with pytest.raises(ProcessError) as caught:
        child.wait_until(lambda: False, PATIENCE_SECONDS)
    assert str(caught.value).count("new") == 15
    assert "former" not in str(caught.value)


def test_wait_until_gives_up_after_the_timeout(tmp_path: Path) -> None:
    child = _child(_READY, tmp_path)
    child.start()
    with pytest.raises(ProcessError, match=naming("child", "0.2 s")):
        child.wait_until(lambda: False, 0.2)
    child.stop()


def test_check_is_silent_before_the_start_and_after_the_stop(tmp_path: Path) -> None:
    child = _child(_READY, tmp_path)
    child.check()
    child.start()
    child.check()
    child.stop()
    child.check()


def test_environment_is_added_to_that_of_the_parent(tmp_path: Path) -> None:
    script = "import os; print(os.environ['COINCIDE_X'], 'PATH' in os.environ); raise SystemExit(0)"
    command = [sys.executable, "-c", script]
    child = ChildProcess("child", command, tmp_path / "child.log", {"COINCIDE_X": "x"})
    child.start()
    with pytest.raises(ProcessError, match="x True"):
        child.wait_until(lambda: False, PATIENCE_SECONDS)


def _has_said(log: Path, text: str) -> bool:
    """Check whether a log, or the one that was rotated last, contains a string."""
    return any(text in path.read_text() for path in (log, Path(f"{log}.1")) if path.exists())


def test_log_is_rotated_while_the_process_goes_on_writing(tmp_path: Path) -> None:
    script = "import sys\nfor line in open(sys.argv[1]): print(line * 200, flush=True)"
    fifo, log = tmp_path / "fifo", tmp_path / "child.log"
    os.mkfifo(fifo)
    child = ChildProcess("child", [sys.executable, "-c", script, str(fifo)], log, log_bytes=1000)
    child.start()
    with fifo.open("w") as lines:
        for number in range(6):
            print(f"round {number}", file=lines, flush=True)
            child.wait_until(partial(_has_said, log, f"round {number}"), PATIENCE_SECONDS)
            child.check()
    child.stop()
    kept = sorted(path.name for path in tmp_path.glob("child.log*"))
    assert kept == ["child.log", "child.log.1", "child.log.2", "child.log.3"]
    newest = (tmp_path / "child.log.1").read_text()
    # Nothing but what was written: an emptied file has no gap at its beginning.
    assert newest.strip("\n") == "\n".join(["round 5"] * 200)
    assert "round 3" in (tmp_path / "child.log.3").read_text()
    assert log.read_text() == ""


def test_log_that_is_too_long_is_rotated_at_the_start(tmp_path: Path) -> None:
    log = tmp_path / "child.log"
    log.write_text("old\n" * 1000)
    child = ChildProcess("child", [sys.executable, "-c", "print('new')"], log, log_bytes=1000)
    child.start()
    with pytest.raises(ProcessError):
        child.wait_until(lambda: False, PATIENCE_SECONDS)
    assert log.read_text() == "new\n"
    assert (tmp_path / "child.log.1").read_text() == "old\n" * 1000
