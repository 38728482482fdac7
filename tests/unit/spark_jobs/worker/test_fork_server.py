"""Processes that a fork server forks, instead of an interpreter that imports its modules."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_jobs.driver.early_python import start_early
from tests.support.command import command_line, has_socket
from tests.support.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")

# Tells what its process is, reads a line, and ends with a code.
_PROGRAM = """
import json, os, sys
from pathlib import Path
print(json.dumps({
    "pid": os.getpid(),
    "name": __name__,
    "arguments": sys.argv[1:],
    "value": os.environ.get("VALUE"),
    "given": os.environ.get("COINCIDE_GIVEN"),
    "folder": os.getcwd(),
    "is_loaded": "pyspark.worker" in sys.modules,
    "server": os.getppid(),
    "open": sorted(os.listdir("/proc/self/fd")),
}), flush=True)
print("an error", file=sys.stderr)
line = sys.stdin.readline()
if line == "hang\\n":
    signal = __import__("signal")
    signal.pause()
sys.exit(int(line))
"""
# A program, so that the server ends with the program that has started it.
_OWNER = """
import sys
from pathlib import Path
from spark_jobs.driver.early_python import start_fork_server, write_client
folder = Path(sys.argv[1])
start_fork_server(folder)
print(write_client(folder), flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(_PROGRAM)
    return tmp_path


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Start a fork server in a process of its own; yield the interpreter for Spark."""
    environment = {**os.environ, "COINCIDE_GIVEN": "by the owner"}
    command = [sys.executable, "-c", _OWNER, str(folder)]
    # The command is this test's own.
    with subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdin is not None
        yield owner.stdout.readline().strip()
        owner.stdin.close()
        assert owner.wait() == 0


def start(interpreter: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the program as Spark starts a Python process."""
    environment = {**os.environ, "VALUE": "of the request", "PYTHONPATH": str(folder)}
    # The command is this test's own.
    return subprocess.Popen(  # noqa: S603
        [interpreter, "-m", "program", *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def forked(
    interpreter: str, folder: Path, *arguments: str
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Start the program until it is forked; yield its client, and the line that it has written.

    A client does not wait long for a server that still imports its modules, or does not run.
    """
    while True:
        with start(interpreter, folder, *arguments) as process:
            found = read_line(process)
            if found["pid"] != process.pid:
                yield process, found
                return
            end(process, "0\n")


def read_line(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


def end(process: subprocess.Popen[str], said: str) -> tuple[int, str]:
    """Write a line to the process; return its exit code and what it has written to stderr."""
    _, errors = process.communicate(said)
    return process.returncode, errors


def test_process_has_the_modules_of_the_server_and_all_else_of_the_request(folder: Path) -> None:
    with (
        serving(folder) as interpreter,
        forked(interpreter, folder, "1", "two") as (process, found),
    ):
        del found["pid"]
        # To fork a process with threads is not safe.
        assert len(list(Path(f"/proc/{found.pop('server')}/task").iterdir())) == 1
        # Its standard streams, and the one with which it lists them.
        assert found.pop("open") == ["0", "1", "2", "3"]
        assert found == {
            "name": "__main__",
            "arguments": ["1", "two"],
            "value": "of the request",
            "given": None,
            "folder": str(folder),
            "is_loaded": True,
        }
        assert end(process, "7\n") == (7, "an error\n")


def test_processes_run_at_the_same_time_and_end_in_any_order(folder: Path) -> None:
    with serving(folder) as interpreter:
        processes = [start(interpreter, folder, str(number)) for number in range(3)]
        assert [read_line(it)["arguments"] for it in processes] == [["0"], ["1"], ["2"]]
        for number in (1, 0, 2):
            assert end(processes[number], f"{number}\n")[0] == number


def test_process_is_terminated_with_its_client(folder: Path) -> None:
    with serving(folder) as interpreter, forked(interpreter, folder) as (process, found):
        assert process.stdin is not None
        process.stdin.write("hang\n")
        process.stdin.flush()
        process.terminate()
        assert process.wait() == -signal.SIGTERM
        wait_until(lambda: not command_line(found["pid"]))
        # The server serves on.
        with forked(interpreter, folder) as (another, _):
            assert end(another, "0\n")[0] == 0


def test_new_process_is_not_taken_for_one_that_has_ended(folder: Path) -> None:
    with serving(folder) as interpreter, forked(interpreter, folder) as (former, found):
        # All of it is one round of the server: an end, a new client, and an end of the client.
        os.kill(found["server"], signal.SIGSTOP)
        os.kill(found["pid"], signal.SIGKILL)
        with start(interpreter, folder, "new") as process:
            wait_until(lambda: has_socket(process.pid))
            former.kill()
            os.kill(found["server"], signal.SIGCONT)
            assert read_line(process)["arguments"] == ["new"]
            assert end(process, "3\n")[0] == 3


def test_client_ends_when_the_server_is_killed(folder: Path) -> None:
    with serving(folder) as interpreter, forked(interpreter, folder) as (process, found):
        os.kill(found["server"], signal.SIGKILL)
        assert process.wait() == 1
        assert process.stdin is not None
        # The end of its input, as when Spark notices the end of the client.
        process.stdin.close()
        wait_until(lambda: not command_line(found["pid"]))


def test_client_becomes_the_interpreter_without_a_server(folder: Path) -> None:
    with serving(folder) as interpreter:
        pass
    with start(interpreter, folder, "1") as process:
        found = read_line(process)
        assert found["pid"] == process.pid
        assert not found["is_loaded"]
        assert end(process, "5\n")[0] == 5


@pytest.mark.parametrize("name", ["with a space", "n" * 200])
def test_spark_starts_the_interpreter_where_its_path_is_no_line_of_a_script(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / name / "python"))
    assert start_early(tmp_path, {}) == sys.executable
    assert list(tmp_path.iterdir()) == []
