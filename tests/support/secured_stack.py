"""Service, job and command line on a secured broker, each with a user of its own.

The service has access control, so that it writes audit records.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from cli.client.rest import ServiceClient
from cli.settings import Settings as CliSettings
from cli.stack.broker import HOST, free_port
from cli.stack.processes import ChildProcess
from service.access.keys import new_key, write_keys
from tests.support.command import COMMAND, coincide, process_tree
from tests.support.files import paths_below
from tests.support.job import FEW_BATCHES
from tests.support.patience import END_SECONDS, PATIENCE_SECONDS, SERVICE_SECONDS

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping

    from tests.support.secured_kafka import SecuredBroker, User

# A property of Spark whose value is a secret, and its name as Spark's pages show it.
SPARK_SECRET = "spark.hadoop.fs.s3a.secret.key"  # noqa: S105 - a name


class SecuredStack:
    """Service and job, which are started by the caller, and commands.

    Parameters
    ----------
    broker
        The secured broker.
    users
        User of ``service``, ``job`` and ``cli``.
    prefix
        Prefix of the installation.
    folder
        Folder of logs, checkpoint, Spark's event log, and files with secrets.
    """

    def __init__(
        self,
        broker: SecuredBroker,
        users: Mapping[str, User],
        prefix: str,
        folder: Path,
    ) -> None:
        self._broker, self._users, self._prefix = broker, users, prefix
        self._folder = folder
        # Output of each command.
        self.outputs: list[str] = []
        self._port = free_port()
        self.url = f"http://{HOST}:{self._port}"
        self._ui_port = free_port()
        self.ui = f"http://{HOST}:{self._ui_port}"
        (folder / "events").mkdir()
        self._secrets = folder / "secrets"
        self._secrets.mkdir()
        key, self.api_key = new_key("ada", "admin", (), time.time_ns() // 1_000)
        self._keys = folder / "keys.json"
        write_keys(self._keys, [key])
        self._key_file = self.secret("key", self.api_key)
        self.service = self._process("service", [*COMMAND, "serve"], self._of_service())
        self.job = self.make_job()

    def make_job(self, **changes: str) -> ChildProcess:
        """Build a job process with changed variables; it is not started."""
        command = [sys.executable, "-m", "spark_jobs.main"]
        return self._process("job", command, {**self._of_job(), **changes})

    def client(self) -> ServiceClient:
        """Return a client of the service, with the API key."""
        return ServiceClient.of(
            CliSettings.model_validate({"url": self.url, "api_key": self.api_key})
        )

    def pages(self) -> httpx.Client:
        """Return an HTTP client with the API key."""
        headers = {"X-API-Key": self.api_key}
        return httpx.Client(timeout=PATIENCE_SECONDS, follow_redirects=True, headers=headers)

    def start_service(self) -> None:
        """Start the service and wait until it is ready."""
        self.service.start()
        with self.client() as client:
            self.service.wait_until(client.ready, PATIENCE_SECONDS)

    def start_job(self) -> None:
        """Start the job and wait until it has reported that it runs."""
        with self.client() as client:
            # None before the first start.
            before = client.get("/v1/job")["at"] or 0

            def runs() -> bool:
                found = client.get("/v1/job")
                return bool(found["state"] == "running" and found["at"] > before)

            self.job.start()
            self.job.wait_until(runs, PATIENCE_SECONDS)

    def stop(self) -> None:
        """Stop all processes."""
        self.job.stop(END_SECONDS)
        self.service.stop(END_SECONDS)

    def tried(self, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        """Run a command with changed variables."""
        environment = {
            **self._security("cli"),
            "COINCIDE_URL": self.url,
            "COINCIDE_API_KEY_FILE": self._key_file,
            **changes,
        }
        done = coincide(*arguments, environment=environment)
        self.outputs.append(done.stdout + done.stderr)
        return done

    def run(self, *arguments: str) -> str:
        """Run a command that succeeds; return its output."""
        done = self.tried(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def secret(self, name: str, value: str) -> str:
        """Write a file with a secret; return its path."""
        path = self._secrets / name
        path.write_text(value)
        return str(path)

    def processes(self) -> list[int]:
        """Return the ids of the processes of service and job: Python, Java and workers."""
        return [one for root in (self.service, self.job) for one in process_tree(root.pid or 0)]

    def written(self) -> list[Path]:
        """Return the files that service and job have written; Spark may delete some meanwhile."""
        found = paths_below(self._folder)
        return [it for it in found if self._secrets not in it.parents and not it.is_dir()]

    def _process(self, role: str, command: list[str], own: Mapping[str, str]) -> ChildProcess:
        environment = {**self._security(role), **own}
        return ChildProcess(role, command, self._folder / f"{role}.log", environment)

    def _security(self, role: str) -> dict[str, str]:
        user = self._users[role]
        given = self._broker.environment(user, self._secrets / role)
        return {"COINCIDE_PREFIX": self._prefix, **given}

    def _of_service(self) -> dict[str, str]:
        seconds = ("BROKER_TIMEOUT", "WRITE_TIMEOUT", "EXPLAIN")
        return {
            "COINCIDE_PORT": str(self._port),
            "COINCIDE_LOG_LEVEL": "debug",
            "COINCIDE_KEYS_FILE": str(self._keys),
            **{f"COINCIDE_{it}_SECONDS": str(SERVICE_SECONDS) for it in seconds},
        }

    def _of_job(self) -> dict[str, str]:
        spark = {
            SPARK_SECRET: "planted-spark-secret",
            "spark.eventLog.enabled": "true",
            # The test searches the files.
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": (self._folder / "events").as_uri(),
            "spark.ui.enabled": "true",
            "spark.ui.port": str(self._ui_port),
        }
        return {
            "COINCIDE_CHECKPOINT": str(self._folder / "checkpoint"),
            **FEW_BATCHES,
            "COINCIDE_SPARK_PROPERTIES_FILE": self.secret("spark", json.dumps(spark)),
        }
