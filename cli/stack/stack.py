"""The local stack: broker, service and job as child processes of this one."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from cli.client.rest import ServiceClient
from cli.errors import BrokerError, ServiceError, UsageError
from cli.settings import Settings
from cli.stack.broker import EmbeddedBroker, answers, free_port
from cli.stack.jars import broker_jars
from cli.stack.java import find_java
from cli.stack.options import StackOptions
from cli.stack.ports import check_ports
from cli.stack.processes import ChildProcess
from kafka_client.connection import explain_silence
from service.access.startup import access_problems
from service.settings import Settings as ServiceSettings
from spark_jobs.driver.scratch import ScratchFolder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from rich.console import Console

_PLAIN = "PLAINTEXT"
_JAVA_CACHE = "COINCIDE_JAVA_CACHE"
_ANSWER_SECONDS = 10
_SERVICE_SECONDS = 120
# Spark starts, compiles kernels and runs a first batch: half a minute on two idle cores.
_JOB_SECONDS = 600
_WATCH_SECONDS = 0.25
# Longer than the max duration of a batch, so that the job stops between two batches.
_JOB_STOP_SECONDS = 60
_SERVICE_STOP_SECONDS = 15
_EVERY_INTERFACE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - recognised, not bound


def check_start(options: StackOptions) -> None:
    """Run the checks that are possible before anything is started or written.

    Parameters
    ----------
    options
        Options of the stack.

    Raises
    ------
    CliError
        Java is missing, settings of access control are missing or not valid, a port is in use, or
        the external broker does not answer.
    """
    find_java()
    _check_access(ServiceSettings())
    check_ports(options)
    settings = Settings()
    if options.bootstrap is not None:
        _check_broker(options.bootstrap)
    elif str(settings.kafka_properties.get("security.protocol", _PLAIN)).upper() != _PLAIN:
        raise UsageError(
            "COINCIDE_KAFKA_PROPERTIES: security.protocol is set, but the embedded broker has no "
            "security; remove it, or use a secured Kafka with --bootstrap"
        )


def _check_access(service: ServiceSettings) -> None:
    problems = access_problems(service)
    if not problems and service.is_protected and Settings().api_key is None:
        missing = "COINCIDE_API_KEY: is missing; set a key, with which `up` reads the job's state"
        problems = [missing]
    if problems:
        raise UsageError("\n".join(problems))


def _check_broker(bootstrap: str) -> None:
    settings = Settings(bootstrap=bootstrap)
    if not answers(bootstrap, _ANSWER_SECONDS, settings.client):
        cause = explain_silence(settings.client)
        raise BrokerError(
            f"no broker answers at {bootstrap}{f' ({cause})' if cause else ''}; start it, use "
            "another address with --bootstrap, or remove --bootstrap to start the embedded broker"
        )


class LocalStack:
    """Broker, service and job, started in this order and stopped in reverse order.

    Parameters
    ----------
    options
        Options of the stack.
    console
        Console for messages.
    """

    def __init__(self, options: StackOptions, console: Console) -> None:
        self._options = options
        self._console = console
        self._temporary = None
        data = options.data
        if data is None:
            self._temporary = ScratchFolder("up")
            data = self._temporary.path
        self.data = data.absolute()
        self._broker: EmbeddedBroker | None = None
        if options.bootstrap is None:
            self._broker = EmbeddedBroker(
                data=self.data / "broker",
                port=options.broker_port or free_port(),
            )
        self.bootstrap = options.bootstrap or (self._broker.bootstrap if self._broker else "")
        self._service_port = options.service_port or free_port()
        service = ServiceSettings()
        host, scheme = service.host, "http" if service.tls_certificate is None else "https"
        self.url = f"{scheme}://{_EVERY_INTERFACE.get(host, host)}:{self._service_port}"
        self._service = self._child("service", "serve")
        self._job = self._child("job", "job", *options.job_options)

    @property
    def settings(self) -> Settings:
        """Settings of commands that talk to this stack."""
        return Settings(bootstrap=self.bootstrap, url=self.url)

    @property
    def log_paths(self) -> dict[str, Path]:
        """The log file of each process."""
        paths = {child.name: child.log_path for child in (self._service, self._job)}
        return {"broker": self._broker.log_path, **paths} if self._broker else paths

    def start(self) -> None:
        """Start all processes and wait until each is ready.

        Raises
        ------
        CliError
            Java or its archives are missing, or a process ended or was not ready in time; the
            message has the end of its log.
        """
        find_java()
        if self._broker:
            broker_jars()
        with self._step(f"broker at {self.bootstrap}"):
            self._start_broker()
        with self._step(f"service at {self.url}"), ServiceClient.of(self.settings) as client:
            if client.ready():
                raise ServiceError(
                    f"another program answers at {self.url}; use another port with --port"
                )
            self._service.start()
            self._service.wait_until(client.ready, _SERVICE_SECONDS, self.check)
        with self._step("job (Spark)"):
            begun_us = time.time_ns() // 1000
            self._job.start()
            self._job.wait_until(lambda: self._job_runs(begun_us), _JOB_SECONDS, self.check)

    def check(self) -> None:
        """Raise ProcessError, with the end of its log, when a process has ended by itself."""
        processes = (self._broker.process if self._broker else None, self._service, self._job)
        for process in processes:
            if process is not None:
                process.check()

    def watch(self) -> None:
        """Wait until a process ends by itself; raise ProcessError then."""
        while True:
            self.check()
            time.sleep(_WATCH_SECONDS)

    def stop(self) -> None:
        """Stop all processes; the job first, after its batch. A second Ctrl-C kills them."""
        try:
            for child, patience in (
                (self._job, _JOB_STOP_SECONDS),
                (self._service, _SERVICE_STOP_SECONDS),
            ):
                if child.pid is not None:
                    with self._console.status(f"stopping the {child.name}"):
                        child.stop(patience)
            if self._broker and self._broker.process:
                with self._console.status("stopping the broker"):
                    self._broker.stop()
        except KeyboardInterrupt:
            self._job.kill()
            self._service.kill()
            if self._broker:
                self._broker.kill()
        if self._temporary:
            self._temporary.close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _start_broker(self) -> None:
        """Start the embedded broker, or check that the external broker answers."""
        if self._broker:
            self._broker.start()
        else:
            _check_broker(self.bootstrap)

    def _job_runs(self, begun_us: int) -> bool:
        """Return whether this job, not an earlier job, has reported that it runs."""
        with ServiceClient.of(self.settings) as client:
            job = client.find("/v1/job") or {}
        return job.get("state") == "running" and int(job.get("at") or 0) >= begun_us

    def _child(self, name: str, *command: str) -> ChildProcess:
        """Return a child process that runs a command of ``coincide``."""
        environment = {
            "COINCIDE_BOOTSTRAP": self.bootstrap,
            "COINCIDE_PORT": str(self._service_port),
            "COINCIDE_CHECKPOINT": str(self.data / self._checkpoint_name()),
            _JAVA_CACHE: os.environ.get(_JAVA_CACHE, str(self.data / "java")),
            **self._options.environment,
        }
        return ChildProcess(
            name,
            [sys.executable, "-m", "cli.main", *command],
            log_path=self.data / "logs" / f"{name}.log",
            environment=environment,
        )

    def _checkpoint_name(self) -> str:
        """Return the name of the checkpoint, which depends on broker and prefix."""
        bootstrap = self._options.bootstrap or ""
        origin = f"{bootstrap} {Settings().prefix}".encode()
        return f"checkpoint-{hashlib.sha256(origin).hexdigest()[:12]}"

    @contextmanager
    def _step(self, what: str) -> Iterator[None]:
        """Show the status of a step while it runs, and its duration at the end."""
        begin = time.monotonic()
        with self._console.status(f"starting the {what}"):
            yield
        took = time.monotonic() - begin
        self._console.print(f"[green]✓[/] {what} [dim]({took:.1f} s)[/]", highlight=False)


@contextmanager
def terminable() -> Iterator[None]:
    """Raise KeyboardInterrupt at SIGTERM, as at Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
