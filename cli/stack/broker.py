"""An embedded Apache Kafka node for the local stack and the tests.

It is the real broker in KRaft mode (broker and controller in one process), with real transactions,
compaction and ``offsets_for_times``. Topics are not created automatically.
"""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from cli.errors import BrokerError, ProcessError
from cli.stack.former_session import end_session, was_killed
from cli.stack.jars import broker_jars
from cli.stack.java import find_java
from cli.stack.processes import ChildProcess
from spark_jobs.driver.class_archive import ClassArchive, digest
from spark_jobs.driver.scratch import ScratchFolder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from kafka_client.settings import Properties

HOST = "127.0.0.1"
# Limits that end a hang: the start takes two seconds on an idle machine, minutes on a busy one.
_START_SECONDS = 600
_FORMAT_SECONDS = 600
_STOP_SECONDS = 20
_STORE_SECONDS = 100
_ASK_SECONDS = 1

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=PLAINTEXT://{host}:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs={data}
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
# One node holds one copy; few partitions make the first transaction and the first group quick.
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
# A node that sends no heartbeat for this time, even for want of a free core, loses its partitions.
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=9000
# A changed compacted topic is cleaned within a second, so that local runs and tests meet it.
log.cleaner.backoff.ms=1000
# Sized for two cores.
num.network.threads=2
num.io.threads=4
"""

_JAVA_OPTIONS = (
    "-Xmx512m",
    # Halve the CPU time of a small broker: from 5.2 to 3.0 s for a start, and from 2.0 to 0.9 s for
    # 400,000 records and 300 transactions.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
)


class EmbeddedBroker:
    """One Apache Kafka node on this machine.

    Parameters
    ----------
    data
        Folder of the broker's data, kept after the stop for a later start; by default a temporary
        folder that is removed with the broker.
    port
        TCP port to listen on; by default a free port, the same at every start of this object.
    jars
        Folder of jars; that of the settings by default.
    properties
        Further settings of the broker, by their Kafka names.

    Examples
    --------
    >>> with EmbeddedBroker() as broker:  # doctest: +SKIP
    ...     connect(broker.bootstrap)
    """

    def __init__(
        self,
        data: Path | None = None,
        port: int | None = None,
        jars: Path | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._temporary = None
        if data is None:
            self._temporary = ScratchFolder("broker")
            data = self._temporary.path
        self.data = data.absolute()
        self.port = port or free_port()
        self._jars = jars
        self._properties = dict(properties or {})
        self._process: ChildProcess | None = None
        self._archive: ClassArchive | None = None

    @property
    def bootstrap(self) -> str:
        """Address for clients, ``host:port``."""
        return f"{HOST}:{self.port}"

    @property
    def log_path(self) -> Path:
        """Log file of the broker."""
        return self.data / "broker.log"

    @property
    def process(self) -> ChildProcess | None:
        """The broker's process; None before the start and after the stop."""
        return self._process

    def start(self) -> None:
        """Start the broker and wait until it answers.

        Raises
        ------
        BrokerError
            The port is in use, or the broker ended or did not answer in time; the message has the
            end of its log.
        MissingJavaError, JarsError
            Java or its archives are missing.
        """
        if self._process and self._process.running:
            return
        java = find_java().path
        jars = broker_jars(self._jars)
        if _answers_tcp(self.port):
            raise BrokerError(
                f"port {self.port} on {HOST} is in use; use another port with --broker-port, "
                f"or use the Kafka at this port with --bootstrap {self.bootstrap}"
            )
        properties = self._write_properties()
        temporary = self._make_temporary()
        options = [*_JAVA_OPTIONS, f"-Djava.io.tmpdir={temporary}"]
        classes = ["-cp", ":".join(map(str, jars))]
        self._archive = _open_archive(java, jars, temporary)
        stored = self._archive.arguments if self._archive else ()
        # The broker stores its classes, which include those of the tool.
        loaded = stored if self._archive and self._archive.exists else ()
        tool = [str(java), *options, *loaded, *classes]
        self._format(tool, properties)
        if was_killed(self.data / "kafka"):
            try:
                end_session([*tool, "kafka.Kafka"], properties, self.data / "kafka")
            except ProcessError as error:
                raise BrokerError(str(error)) from error
        command = [str(java), *options, *stored, *classes, "kafka.Kafka", str(properties)]
        process = ChildProcess("broker", command, log_path=self.log_path)
        process.start()
        self._process = process
        try:
            process.wait_until(lambda: answers(self.bootstrap), _START_SECONDS)
        except ProcessError as error:
            self.stop()
            raise BrokerError(str(error)) from error

    def stop(self) -> None:
        """Stop the broker cleanly; its data is kept."""
        if self._process:
            archive, self._archive = self._archive, None
            # Java stores its classes after the broker has ended.
            stores = archive is not None and not archive.exists
            code = self._process.stop(_STOP_SECONDS + (_STORE_SECONDS if stores else 0))
            self._process = None
            if archive is not None and code is not None:
                archive.close(code)

    def kill(self) -> None:
        """Kill the broker, like a crash; ``start`` starts it again with its data."""
        if self._process:
            self._process.kill()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if self._temporary:
            self._temporary.close()

    def _make_temporary(self) -> Path:
        """Return an empty folder for the broker's native libraries and its unfinished classes.

        A killed broker does not remove them; its next start does.
        """
        folder = self.data / "tmp"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def _write_properties(self) -> Path:
        """Write the broker's configuration and return its path."""
        self.data.mkdir(parents=True, exist_ok=True)
        path = self.data / "server.properties"
        path.write_text(
            _PROPERTIES.format(
                host=HOST,
                port=self.port,
                controller_port=free_port(),
                data=self.data / "kafka",
            )
            + "".join(f"{name}={value}\n" for name, value in self._properties.items()),
            encoding="utf-8",
        )
        return path

    def _format(self, command: list[str], properties: Path) -> None:
        """Format a new data folder with a cluster id; a formatted folder is not changed."""
        if (self.data / "kafka" / "meta.properties").is_file():
            return
        identity = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode("ascii").rstrip("=")
        # A leading hyphen would be read as an option.
        identity = "A" + identity[1:]
        tool = ["kafka.tools.StorageTool", "format", "-t", identity, "-c", str(properties)]
        # The command is built by this module.
        said = subprocess.run(  # noqa: S603
            [*command, *tool],
            capture_output=True,
            text=True,
            timeout=_FORMAT_SECONDS,
            check=False,
        )
        if said.returncode != 0:
            if self._archive:
                self._archive.close(said.returncode)
            raise BrokerError(
                f"the broker's data folder {self.data} could not be formatted:\n"
                f"{(said.stdout + said.stderr).strip()}"
            )


def _open_archive(java: Path, jars: Sequence[Path], scratch: Path) -> ClassArchive | None:
    """Return the file of the broker's classes beside its jars; None if it cannot be written."""
    folder = jars[0].parent.absolute()
    parts = [(it.name, it.stat().st_size, it.stat().st_mtime_ns) for it in jars]
    archive = ClassArchive(folder / f"broker-{digest(java, folder, parts)}.jsa", scratch)
    return archive if archive.exists or os.access(folder, os.W_OK) else None


def answers(
    bootstrap: str,
    timeout_seconds: float = _ASK_SECONDS,
    properties: Properties | None = None,
) -> bool:
    """Return whether a broker at the address answers a metadata request.

    Parameters
    ----------
    bootstrap
        Address of the broker, ``host:port``.
    timeout_seconds
        Timeout of the request.
    properties
        Further librdkafka properties.
    """
    # The client's log messages about a broker that is not up yet are suppressed.
    client = AdminClient({**(properties or {}), "bootstrap.servers": bootstrap, "log_level": 0})
    try:
        return bool(client.list_topics(timeout=timeout_seconds).brokers)
    except KafkaException:
        return False


def free_port() -> int:
    """Return a TCP port of this machine that was free at the time of the call."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


def _answers_tcp(port: int) -> bool:
    """Return whether a process listens on the port."""
    with socket.socket() as client:
        client.settimeout(_ASK_SECONDS)
        return client.connect_ex((HOST, port)) == 0
