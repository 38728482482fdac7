"""The Spark session as a process: visibility of its properties, and no leftovers."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from spark_jobs.worker import fork_client, fork_server
from spark_jobs.worker.worker_daemon import WARM_KINDS
from tests.support.command import (
    command_line,
    is_python_worker,
    parent,
    process_tree,
    send_signal,
    variables,
)
from tests.support.files import paths_below
from tests.support.patience import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SECRET = "hunter-2-made-up"  # noqa: S105 - what must not be seen
PROPERTIES = {
    "spark.hadoop.fs.example.secret": SECRET,
    "spark.odd": "  x = y : z # ! \\ 'q' \"d\" $HOME é\t|",
    "spark.driver.memory": "600m",
    "spark.executorEnv.GIVEN": "to the workers",
}
# Opens the session as the job does, prints the properties in force, and waits.
SCRIPT = """\
import atexit, json, os, sys
from pyspark import SparkContext
from pyspark.errors import PySparkException
from spark_jobs.errors import SettingError
from spark_jobs.driver import session as driver
from spark_jobs.driver.session import open_session
from spark_jobs.settings import Settings
from spark_jobs.worker.worker_daemon import WARM_KINDS
settings = Settings()
# A slow machine stores the classes of Java for longer than a job waits.
driver._JAVA_END_SECONDS = float(sys.argv[1])
# Runs after the functions that are registered later.
atexit.register(lambda: print("Java's exit code:", SparkContext._gateway.proc.poll()))
try:
    session = open_session(settings, {WARM_KINDS: "within"})
except SettingError as error:
    sys.exit(f"refused: {error}")
found = {name: session.conf.get(name) for name in settings.spark_properties}
session.range(8).rdd.map(lambda row: row.id).sum()
context = session.sparkContext
if "WRITTEN" in os.environ:
    path = context._jvm.org.apache.hadoop.fs.Path(os.environ["WRITTEN"])
    path.getFileSystem(context._jsc.hadoopConfiguration()).create(path, True).close()
found |= {"master": context.master, "python": context.pythonExec}
worker = context.parallelize([0]).map(lambda _: (os.getppid(), sys.path, dict(os.environ))).first()
found["worker"] = dict(zip(("daemon", "path", "variables"), worker, strict=True))
print(json.dumps(found), flush=True)
sys.stdin.read()
"""


def _start(scratch: Path, **settings: object) -> subprocess.Popen[str]:
    given = {
        f"COINCIDE_{name}": str(value) if isinstance(value, Path) else json.dumps(value)
        for name, value in settings.items()
    }
    # The script above, as a process of its own.
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", SCRIPT, str(PATIENCE_SECONDS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            **given,
            "COINCIDE_SPARK_MASTER": "local[1]",
            "TMPDIR": str(scratch),
        },
    )


@contextmanager
def _session(scratch: Path, **settings: object) -> Iterator[tuple[int, dict[str, Any]]]:
    """Open a session in a process; yield the process id and what it says."""
    with _start(scratch, **settings) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            pytest.fail(process.communicate()[1][-3000:])
        try:
            yield process.pid, json.loads(line)
        finally:
            process.communicate()


def _refused(scratch: Path, **settings: object) -> str:
    process = _start(scratch, **settings)
    _, said = process.communicate()
    assert process.returncode == 1
    found = re.search(r"^refused: (.*)", said, re.MULTILINE)
    assert found, said[-3000:]
    return found[1]


class Opened(NamedTuple):
    """An open session: its process, what it says, and the folder of its temporary files."""

    pid: int
    found: dict[str, Any]
    scratch: Path


@pytest.fixture(scope="module")
def opened() -> Iterator[Opened]:
    """Open a session with properties, for the tests that only look at it."""
    # The scratch folder has a path of 62 bytes, which is too long for Spark's sockets.
    with (
        TemporaryDirectory(dir="/tmp", prefix="x" * 25) as folder,
        _session(Path(folder), SPARK_PROPERTIES=PROPERTIES) as (pid, found),
    ):
        yield Opened(pid, found, Path(folder))


@pytest.fixture
def broken_chmod(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command chmod fail."""
    commands = tmp_path_factory.mktemp("commands")
    command = commands / "chmod"
    command.write_text("#!/bin/sh\necho no modes today >&2\nexit 1\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")


def test_properties_are_in_force_and_on_no_command_line(opened: Opened) -> None:
    found = dict(opened.found)
    del found["worker"]
    python = found.pop("python")
    assert found == {**PROPERTIES, "master": "local[1]"}
    # Spark starts the client of the fork server, which is a script.
    assert fork_client.SOCKET in Path(python).read_text()
    assert any(fork_server.__name__ in command_line(it) for it in process_tree(opened.pid))
    commands = [command_line(one) for one in process_tree(opened.pid)]
    # Python, Java, and the daemon of the workers.
    assert len(commands) >= 3
    assert any("-Xmx600m" in command for command in commands)
    assert not [command for command in commands if SECRET in command]
    # Gone as soon as Java has read it.
    assert not list(opened.scratch.rglob("spark.properties"))


def test_python_workers_import_the_installed_pyspark(opened: Opened) -> None:
    path = opened.found["worker"]["path"]
    assert path
    assert not [it for it in path if it.endswith(".zip") and Path(it).exists()]


def test_python_workers_are_forked_from_a_process_that_was_started_early(opened: Opened) -> None:
    worker = opened.found["worker"]
    assert is_python_worker(worker["daemon"])
    early = parent(worker["daemon"])
    # Spark's processes are below Java.
    assert parent(early) == opened.pid
    for found in (worker["variables"], variables(early)):
        assert (found[WARM_KINDS], found["GIVEN"]) == ("within", "to the workers")
        assert found["MALLOC_ARENA_MAX"] == "1"


def test_java_ends_before_the_temporary_files_are_removed(tmp_path: Path) -> None:
    said, errors = _start(tmp_path, SPARK_PROPERTIES=PROPERTIES).communicate()
    assert said.splitlines()[-1] == "Java's exit code: 0", errors[-3000:]
    assert list(tmp_path.iterdir()) == []


def test_classes_of_java_are_stored_at_the_end_and_loaded_by_the_next_start(
    tmp_path: Path,
) -> None:
    cache, scratch = tmp_path / "a folder", tmp_path / "scratch"
    scratch.mkdir()
    cache.mkdir()
    (cache / "java-0.jsa").touch()
    maps = []
    for _ in range(2):
        with _session(scratch, JAVA_CACHE=cache) as (pid, _):
            # Java's children have its command line until they execute their own.
            java = next(it for it in process_tree(pid) if "org.apache.spark" in command_line(it))
            maps.append(Path(f"/proc/{java}/maps").read_text())
        # The file of another version was removed.
        (stored,) = cache.glob("java-*.jsa")
    assert [str(stored) in it for it in maps] == [False, True]
    assert list(scratch.iterdir()) == []


def test_session_starts_when_the_classes_cannot_be_stored(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    process = _start(tmp_path, JAVA_CACHE=tmp_path / "file" / "folder")
    _, said = process.communicate()
    assert process.returncode == 0
    assert "correct COINCIDE_JAVA_CACHE" in said


@pytest.mark.usefixtures("broken_chmod")
@pytest.mark.parametrize(("umask", "mode"), [("077", 0o600), ("027", 0o640)])
def test_files_of_the_checkpoint_get_their_modes_without_a_command(
    umask: str, mode: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    written = tmp_path / "new folder" / "file"
    monkeypatch.setenv("WRITTEN", str(written))
    monkeypatch.setenv("COINCIDE_UMASK", umask)
    with _session(tmp_path):
        assert stat.S_IMODE(written.stat().st_mode) == mode
        assert stat.S_IMODE(written.parent.stat().st_mode) == mode | (mode >> 2 & 0o111)
        assert written.with_name(".file.crc").is_file()


@pytest.mark.usefixtures("broken_chmod")
def test_another_class_for_files_is_used_if_a_property_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WRITTEN", str(tmp_path / "file"))
    hadoop = {"spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem"}
    _, said = _start(tmp_path, SPARK_PROPERTIES=hadoop).communicate()
    assert "no modes today" in said


def test_what_a_killed_session_leaves_goes_with_the_next_start(tmp_path: Path) -> None:
    with _session(tmp_path) as (pid, _):
        tree = list(process_tree(pid))
        for one in tree:
            send_signal(one, signal.SIGKILL)
    (left,) = tmp_path.glob("coincide-spark-*")
    with _session(tmp_path):
        (running,) = tmp_path.glob("coincide-*")
        assert running != left
        with _session(tmp_path):
            # The folder of a running process stays.
            assert running in tmp_path.iterdir()
            assert len(list(tmp_path.iterdir())) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        (
            {"spark.driver.extraJavaOptions": "-Xmx2g"},
            "spark.driver.extraJavaOptions: Java does not start, ",
        ),
        (
            {"spark.task.cpus": "many"},
            "spark.task.cpus: Spark rejects the value: ",
        ),
    ],
)
def test_a_property_that_spark_does_not_take_is_named(
    tmp_path: Path, properties: dict[str, str], said: str
) -> None:
    assert _refused(tmp_path, SPARK_PROPERTIES=properties).startswith(
        f"COINCIDE_SPARK_PROPERTIES: {said}"
    )


def test_process_that_is_killed_while_java_starts_leaves_only_what_is_swept(
    tmp_path: Path,
) -> None:
    process = _start(tmp_path)

    def java_starts() -> bool:
        """Return whether the folder exists in which Java is to tell PySpark its port."""
        names = (path.name for path in paths_below(tmp_path))
        return any(it.startswith("tmp") for it in names) or process.poll() is not None

    wait_until(java_starts, briefly=True)
    process.kill()
    # Java holds the pipes as well, and ends by itself.
    process.communicate()
    assert process.returncode == -9
    left = [path.name for path in tmp_path.iterdir()]
    assert left
    assert all(name.startswith("coincide-") for name in left), left
