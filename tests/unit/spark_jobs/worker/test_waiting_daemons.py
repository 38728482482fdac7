"""Daemons of workers that wait, with their modules imported, until Spark starts them."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, NamedTuple

import pytest

from spark_jobs.worker.worker_daemon import ROLE, ROLES, SLOTS, WARM_KINDS
from tests.support.command import (
    command_line,
    has_socket,
    is_python_worker,
    parent,
    process_tree,
)
from tests.support.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")

_KINDS = "within"
# A program, so that the daemons end with the program that has started them.
_OWNER = """
import sys
from pathlib import Path
from spark_jobs.driver.early_python import start_daemons, write_client
folder = Path(sys.argv[1])
start_daemons(folder, {sys.argv[2]: sys.argv[3]})
print(write_client(folder), flush=True)
sys.stdin.readline()
"""
# A module whose import does not end by itself.
_ENDLESS = """
import signal, sys
def end(*_):
    print("terminated", flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, end)
print("importing", flush=True)
signal.pause()
"""


class Owner(NamedTuple):
    """The program that has started the daemons, and the interpreter for Spark."""

    process: subprocess.Popen[str]
    interpreter: str

    def daemons(self) -> set[int]:
        """Return the daemons that wait, or have taken the place of their clients."""
        return {it for it in process_tree(self.process.pid) if is_python_worker(it)}


@pytest.fixture
def folder() -> Iterator[Path]:
    # A path that is short enough for sockets.
    with TemporaryDirectory(dir="/tmp") as name:
        yield Path(name)


@pytest.fixture
def owner(folder: Path) -> Iterator[Owner]:
    command = [sys.executable, "-c", _OWNER, str(folder), WARM_KINDS, _KINDS]
    # The command is this test's own.
    with subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield Owner(process, process.stdout.readline().strip())
        process.communicate()
        assert process.returncode == 0


@contextmanager
def client(owner: Owner, role: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a daemon as Spark does."""
    environment = {
        **os.environ,
        ROLE: role,
        WARM_KINDS: _KINDS,
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "PYTHON_WORKER_FACTORY_SOCK_DIR": str(folder),
        "SPARK_REUSE_WORKER": "1",
    }
    # The command is this test's own.
    with subprocess.Popen(  # noqa: S603
        [owner.interpreter, "-m", "spark_jobs.worker.worker_daemon", "pyspark.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as process:
        yield process
        process.communicate()


def started_worker(process: subprocess.Popen[bytes]) -> tuple[socket.socket, int]:
    """Let a daemon fork a worker, as Spark does; return the connection and the process id."""
    assert process.stdout is not None
    (size,) = struct.unpack("!i", exactly(process.stdout, 4))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(exactly(process.stdout, size).decode())
    with connection.makefile("rb") as answer:
        (worker,) = struct.unpack("!i", exactly(answer, 4))
    return connection, worker


def exactly(stream: IO[bytes], size: int) -> bytes:
    read = stream.read(size)
    assert len(read) == size
    return read


def test_each_role_has_a_daemon_that_takes_the_place_of_its_client(
    owner: Owner, folder: Path
) -> None:
    with client(owner, SLOTS, folder) as slots, client(owner, "", folder) as moving:
        connections, workers = zip(*map(started_worker, (slots, moving)), strict=True)
        # A daemon and a worker of each role, in the family of the owner.
        daemons = owner.daemons()
        assert len(daemons) == 4
        assert {*workers} < daemons
        assert daemons.isdisjoint({slots.pid, moving.pid})
        # To fork a process with threads is not safe.
        (template,) = {parent(it) for it in daemons - {*workers}}
        assert template in process_tree(owner.process.pid)
        for pid in (template, *daemons - {*workers}):
            assert len(list(Path(f"/proc/{pid}/task").iterdir())) == 1
        for connection in connections:
            connection.close()
    # Spark has closed their input.
    wait_until(lambda: not owner.daemons())


def test_daemon_takes_the_place_of_one_client_only(owner: Owner, folder: Path) -> None:
    with client(owner, SLOTS, folder) as first:
        first_worker = started_worker(first)
        with client(owner, SLOTS, folder) as second:
            second_worker = started_worker(second)
            assert is_python_worker(second.pid)
            assert [*process_tree(second.pid)] == [second.pid, second_worker[1]]
            assert first_worker[1] in owner.daemons()
            first_worker[0].close()
            second_worker[0].close()


def test_crash_of_a_daemon_leaves_the_other_in_the_family(owner: Owner, folder: Path) -> None:
    with client(owner, SLOTS, folder) as slots:
        connection, worker = started_worker(slots)
        (waiting,) = (it for it in owner.daemons() - {worker} if not has_child(it, worker))
        os.kill(waiting, signal.SIGKILL)
        wait_until(lambda: not command_line(waiting))
        assert worker in owner.daemons()
        connection.close()
    # Nothing waits for this client: it becomes the interpreter.
    with client(owner, "", folder) as moving:
        connection, worker = started_worker(moving)
        assert worker in process_tree(moving.pid)
        connection.close()


def has_child(pid: int, child: int) -> bool:
    return child in {*process_tree(pid)}


def test_daemon_waits_on_when_a_client_has_ended(owner: Owner, folder: Path) -> None:
    wait_until(lambda: len(owner.daemons()) == len(ROLES))
    daemons = owner.daemons()
    for daemon in daemons:
        os.kill(daemon, signal.SIGSTOP)
    with client(owner, SLOTS, folder) as ended:
        wait_until(lambda: has_socket(ended.pid))
        ended.kill()
        ended.wait()
        for daemon in daemons:
            os.kill(daemon, signal.SIGCONT)
    with client(owner, SLOTS, folder) as process:
        connection, worker = started_worker(process)
        assert worker in owner.daemons()
        connection.close()


def test_daemons_wait_on_after_an_interrupt(owner: Owner, folder: Path) -> None:
    wait_until(lambda: len(owner.daemons()) == len(ROLES))
    daemons = owner.daemons()
    for pid in {*daemons, *map(parent, daemons)}:
        os.kill(pid, signal.SIGINT)
    for role in ROLES:
        with client(owner, role, folder) as process:
            connection, worker = started_worker(process)
            assert worker in owner.daemons()
            connection.close()


def test_daemons_end_with_the_owner(owner: Owner) -> None:
    wait_until(lambda: len(owner.daemons()) == len(ROLES))
    daemons = owner.daemons()
    owner.process.communicate()
    wait_until(lambda: not [it for it in daemons if command_line(it)])


def test_owner_does_not_wait_for_daemons_that_import(folder: Path) -> None:
    (folder / "pyarrow.py").write_text(_ENDLESS)
    command = [sys.executable, "-c", _OWNER, str(folder), WARM_KINDS, _KINDS]
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    # The command is this test's own.
    with subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        assert process.stdout is not None
        assert "importing\n" in {process.stdout.readline() for _ in range(2)}
        assert process.communicate()[0] == "terminated\n"
        assert process.returncode == 0
