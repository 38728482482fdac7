"""The local stack as a user runs it: up, Ctrl-C, up again, a part that dies; the demonstration."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli.errors import ProcessError
from cli.stack.broker import answers
from cli.stack.processes import ChildProcess
from tests.support.command import COMMAND, coincide, command_line
from tests.support.files import visible_to_others
from tests.support.job import FEW_BATCHES
from tests.support.messages import assert_names
from tests.support.patience import END_SECONDS, PATIENCE_SECONDS, SERVICE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

# Each test starts the whole stack, once or twice, on two cores that other work may share.
pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

_RESOURCES = """\
{kind: stream, name: acoustic, topic: acoustic, max_uncertainty: 1s, max_delay: 1s, clock: replay}
---
{kind: stream, name: seismic, topic: seismic, max_uncertainty: 1s, max_delay: 1s, clock: replay}
---
{kind: mutual_deadline, name: near, a: acoustic, b: seismic, window: 2s, threshold: "0.6"}
"""


class _Up:
    """``coincide up`` as a child process."""

    def __init__(self, data: Path, *options: str) -> None:
        ports = ("--port", "0", "--broker-port", "0")
        command = [*COMMAND, "up", "--data", str(data), *ports, *options]
        variables = {**FEW_BATCHES, "COINCIDE_WRITE_TIMEOUT_SECONDS": str(SERVICE_SECONDS)}
        self.process = ChildProcess("up", command, data.parent / "up.log", variables)
        self.process.start()
        self.process.wait_until(lambda: "Ctrl-C stops" in self.said(), PATIENCE_SECONDS)
        found = re.search(r"Kafka at (\S+), REST at (\S+)/v1", self.said())
        assert found is not None
        self.bootstrap, self.url = found.groups()

    def said(self) -> str:
        return self.process.log_path.read_text()

    def run(self, *arguments: str, given: str | None = None) -> str:
        environment = {"COINCIDE_BOOTSTRAP": self.bootstrap, "COINCIDE_URL": self.url}
        done = coincide(*arguments, environment=environment, given=given)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def child(self, command: str) -> int:
        """Return the process id of a part."""
        found = [pid for pid in _children(self.process.pid or 0) if command in command_line(pid)]
        assert len(found) == 1
        return found[0]


def _children(pid: int) -> list[int]:
    return [int(found) for found in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """Return a folder of data; what stays of it when a test fails is shown."""
    yield tmp_path / "data"
    for log in sorted((tmp_path / "data" / "logs").glob("*.log")):
        end = log.read_text(errors="replace")[-3000:]
        print(f"--- {log}\n{end}")  # noqa: T201 - pytest shows it on failure


def _produce(up: _Up, stream: str, number: int) -> None:
    event = {"id": f"{stream}-{number}", "key": "k", "earliest": 0, "latest": 500_000}
    up.run("produce", "-", "--stream", stream, given=json.dumps(event))


def _alarms(up: _Up, count: int) -> list[tuple[str, str]]:
    lines = up.run("tail", "--from-beginning", "-n", str(count), "--json").splitlines()
    return sorted((alarm["a"]["id"], alarm["b"]["id"]) for alarm in map(json.loads, lines))


def test_up_goes_on_where_it_was_stopped_and_ends_when_a_part_dies(data: Path) -> None:
    up = _Up(data)
    up.run("apply", "-f", "-", given=_RESOURCES)
    _produce(up, "acoustic", 1)
    _produce(up, "seismic", 1)
    assert _alarms(up, 1) == [("acoustic-1", "seismic-1")]
    assert visible_to_others(data) == []
    children = _children(up.process.pid or 0)
    assert len(children) == 3
    second = coincide("up", "--data", str(data), "--port", "0", "--broker-port", "0")
    assert second.returncode == 2
    assert "another local stack uses" in second.stderr

    assert up.process.stop(END_SECONDS) == 0
    assert "stopped" in up.said()
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)
    up.process.log_path.unlink()

    up = _Up(data)
    unchanged = up.run("apply", "-f", "-", given=_RESOURCES).split()
    assert unchanged.count("unchanged") == 3
    # The first acoustic event is still in the job's state.
    _produce(up, "seismic", 2)
    assert _alarms(up, 2) == [("acoustic-1", "seismic-1"), ("acoustic-1", "seismic-2")]

    children = _children(up.process.pid or 0)
    os.kill(up.child("cli.main serve"), signal.SIGKILL)
    with pytest.raises(ProcessError, match="exit code 7"):
        up.process.wait_until(lambda: False, END_SECONDS)
    assert_names(up.said(), "error: the service", "exit code -9")
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)
    assert not answers(up.bootstrap)


@pytest.mark.nightly
def test_up_rebuilds_the_state_of_the_job_on_request(data: Path) -> None:
    up = _Up(data)
    up.run("apply", "-f", "-", given=_RESOURCES)
    _produce(up, "acoustic", 1)
    _produce(up, "seismic", 1)
    assert _alarms(up, 1) == [("acoustic-1", "seismic-1")]
    assert up.process.stop(END_SECONDS) == 0
    up.process.log_path.unlink()
    up = _Up(data, "--rebuild")
    _produce(up, "seismic", 2)
    assert _alarms(up, 2) == [("acoustic-1", "seismic-1"), ("acoustic-1", "seismic-2")]
    assert up.process.stop(END_SECONDS) == 0
    said = (data / "logs" / "job.log").read_text()
    assert said.count("state is rebuilt") == 1


def test_demo_gives_the_pairs_of_the_reference() -> None:
    # At a higher rate, the same events are in fewer batches.
    command = ("demo", "--days", "12", "--messages", "8000", "--rate", "3000", "--json")
    done = coincide(*command, environment=FEW_BATCHES)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["verified"] is True
    assert min(report["pairs"].values()) > 0
    assert report["results"]["grounded-for-a-day"] > 0
    assert report["changes"]["said-in-similar-words"] > 0
    # The last lists are compared in any case.
    assert report["lists"]["said-in-similar-words"] > 2
    assert_names(done.stderr, "reference", "direct comparison", "all pairs of messages")
