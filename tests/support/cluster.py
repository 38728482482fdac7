"""A Spark standalone cluster on this machine, and the job that `spark-submit` starts on it."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

import httpx
import pyspark

import spark_jobs.main
from cli.stack.broker import free_port
from cli.stack.processes import ChildProcess
from tests.support.command import command_line, is_python_worker, process_tree, send_signal
from tests.support.java_archive import stored_classes
from tests.support.job import JobUnderTest
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HOST = "127.0.0.1"
_SPARK = Path(pyspark.__file__).parent
_DEPLOY = "org.apache.spark.deploy"
# In the command line of an executor.
EXECUTOR = "CoarseGrainedExecutorBackend"
# Short-lived processes: compiling more would cost more than it saves.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
WORKERS = 2


class SparkCluster:
    """A master and workers with a core each, all on loopback.

    The master stores its applications and workers in a folder, so that they survive its restart.

    Parameters
    ----------
    folder : Path
        Folder of logs, work folders and stored state.
    workers : int
        Number of workers.
    """

    def __init__(self, folder: Path, workers: int = WORKERS) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self._ports = free_port(), free_port()
        # The kernel limits the length of a socket's path.
        self._sockets = TemporaryDirectory(prefix="coincide-sockets-")
        self._java_files = folder / "java"
        self._java_files.mkdir()
        self.master = self._make_master()
        self.workers = [self._make_worker(number) for number in range(workers)]

    @property
    def url(self) -> str:
        """Address of the master, for `spark-submit`."""
        return f"spark://{_HOST}:{self._ports[0]}"

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of all processes of the cluster, and of its jobs."""
        return {
            "SPARK_HOME": str(_SPARK),
            "SPARK_LOCAL_IP": _HOST,
            "PYSPARK_PYTHON": sys.executable,
        }

    def submit_command(self) -> list[str]:
        """Return the command that starts a job on the cluster, as docs/deployment.md shows it."""
        properties = {
            "spark.executor.memory": "512m",
            "spark.driver.extraJavaOptions": self._java_options,
            "spark.executor.extraJavaOptions": self._java_options,
            "spark.executorEnv.NUMBA_CACHE_DIR": self.kernels,
            # Processes of other tests may connect to a TCP port.
            "spark.python.unix.domain.socket.enabled": "true",
            "spark.python.unix.domain.socket.dir": self._sockets.name,
        }
        return [
            str(_SPARK / "bin" / "spark-submit"),
            *("--master", self.url, "--driver-memory", "1g"),
            *(it for name, value in properties.items() for it in ("--conf", f"{name}={value}")),
            spark_jobs.main.__file__,
        ]

    @property
    def kernels(self) -> str:
        """Folder of the compiled kernels of all executors: that of this process, if it is set."""
        return os.environ.get("NUMBA_CACHE_DIR") or str(self.folder / "kernels")

    @property
    def unused_kernels(self) -> Path:
        """Folder of kernels in the environment of the workers, which the command overrides."""
        return self.folder / "unused-kernels"

    @property
    def _java_options(self) -> str:
        # Java unpacks native libraries there, and leaves them when it is killed.
        return f"{_JAVA_OPTIONS} -Djava.io.tmpdir={self._java_files}"

    def _make_master(self) -> ChildProcess:
        port, ui = self._ports
        recovery = {
            "spark.deploy.recoveryMode": "FILESYSTEM",
            "spark.deploy.recoveryDirectory": self.folder / "recovery",
        }
        options = " ".join(f"-D{name}={value}" for name, value in recovery.items())
        where = ["--host", _HOST, "--port", str(port), "--webui-port", str(ui)]
        return self._make_process(
            "master", ["master.Master", *where], {"SPARK_MASTER_OPTS": options}
        )

    def _make_worker(self, number: int) -> ChildProcess:
        name = f"worker-{number}"
        where = ["--host", _HOST, "--port", "0", "--webui-port", "0", "--work-dir"]
        size = ["--cores", "1", "--memory", "1g"]
        arguments = ["worker.Worker", *where, str(self.work_folder(number)), *size, self.url]
        environment = {
            "SPARK_LOCAL_DIRS": str(self.folder / name / "local"),
            "NUMBA_CACHE_DIR": str(self.unused_kernels),
        }
        return self._make_process(name, arguments, environment)

    def _make_process(
        self, name: str, arguments: list[str], environment: Mapping[str, str]
    ) -> ChildProcess:
        command = [str(_SPARK / "bin" / "spark-class"), f"{_DEPLOY}.{arguments[0]}", *arguments[1:]]
        classes = stored_classes()
        common = {
            **self.environment,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": self._java_options,
        }
        if classes is not None:
            common["JDK_JAVA_OPTIONS"] = f'"-XX:SharedArchiveFile={classes}"'
        return ChildProcess(name, command, self.folder / f"{name}.log", {**common, **environment})

    def __enter__(self) -> Self:
        """Start all processes, and wait until the workers are registered."""
        try:
            self.start_master()
            for worker in self.workers:
                worker.start()
            self.wait_for_workers()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop all processes."""
        self.stop()

    def stop(self) -> None:
        """Stop all processes."""
        for process in (*self.workers, self.master):
            self._kill_all(process)
            process.stop()
        self._sockets.cleanup()

    def start_master(self) -> None:
        """Start the master and wait until it accepts workers and applications."""
        self.master.start()
        self.master.wait_until(lambda: self.state().get("status") == "ALIVE", PATIENCE_SECONDS)

    def wait_for_workers(self) -> None:
        """Wait until all workers are registered."""
        self.master.wait_until(
            lambda: self.state().get("aliveworkers") == len(self.workers), PATIENCE_SECONDS
        )

    def applications(self) -> list[str]:
        """Return the ids of the running applications; empty if the master does not answer."""
        return [it["id"] for it in self.state().get("activeapps", ())]

    def start_worker(self, number: int) -> None:
        """Start a worker again; the master gives it an executor of each application."""
        self.workers[number].start()

    def kill_worker(self, number: int) -> None:
        """Kill a worker with its executor and their Python workers, like the loss of a machine."""
        self._kill_all(self.workers[number])

    @staticmethod
    def _kill_all(process: ChildProcess) -> None:
        if not process.running:
            return
        # Python workers are not in the process group of the worker.
        known = [it for it in process_tree(process.pid or 0) if is_python_worker(it)]
        process.kill()
        for pid in known:
            if is_python_worker(pid):
                send_signal(pid, signal.SIGKILL)

    def state(self) -> dict[str, Any]:
        """Return the state of the master, or an empty object if it does not answer."""
        try:
            # A proxy of the environment is not used for this machine's addresses.
            url = f"http://{_HOST}:{self._ports[1]}/json/"
            answer = httpx.get(url, trust_env=False, timeout=PATIENCE_SECONDS)
            found: dict[str, Any] = answer.json()
        # While it starts, the master answers every path with a page.
        except (httpx.HTTPError, json.JSONDecodeError):
            return {}
        return found

    def work_folder(self, number: int) -> Path:
        """Return the folder in which a worker keeps the folders of its executors."""
        return self.folder / f"worker-{number}" / "work"

    def executor(self, number: int) -> int:
        """Return the process id of a worker's executor."""
        # Java's children have its command line until they execute their own; they come later.
        return next(it for it in self._processes(number) if EXECUTOR in command_line(it))

    def python_workers(self, number: int) -> list[int]:
        """Return the ids of a worker's Python workers, and of the processes that fork them."""
        return [it for it in self._processes(number) if is_python_worker(it)]

    def processes(self) -> list[int]:
        """Return the ids of all executors and of their children."""
        return [
            pid
            for number, worker in enumerate(self.workers)
            for pid in self._processes(number)
            if pid != worker.pid
        ]

    def executors(self) -> list[int]:
        """Return the ids of all executors, including those of jobs that are ending."""
        return [it for it in self.processes() if EXECUTOR in command_line(it)]

    def _processes(self, number: int) -> Iterator[int]:
        worker = self.workers[number]
        return process_tree(worker.pid or 0) if worker.running else iter(())

    def executor_logs(self, number: int) -> str:
        """Return what a worker's executors have written to their logs."""
        return "".join(path.read_text() for path in self.work_folder(number).glob("*/*/stderr"))


@dataclass
class ClusterJob(JobUnderTest):
    """An installation whose job is started by `spark-submit`, with the driver on this machine."""

    cluster: SparkCluster = field(kw_only=True)

    def make_process(self, name: str = "job", option: str = "", **changes: str) -> ChildProcess:
        """Build a `spark-submit` process with changed environment variables; it is not started."""
        assert not option, "spark-submit is tested without options"
        environment = {**self.environment, **self.cluster.environment, **changes}
        command = self.cluster.submit_command()
        return ChildProcess(name, command, self.folder / f"{name}.log", environment)
