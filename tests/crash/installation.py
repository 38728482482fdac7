"""An installation whose processes crash: broker, service, job, and a proxy between job and broker.

The broker has two listeners. Tests and service use one of them; the job uses the other one, which
advertises the address of the proxy. The harness starts killed processes again, as a supervisor
does. On a Spark cluster, whose processes are started again too, `spark-submit` starts the job.
"""

from __future__ import annotations

import json
import shutil
import signal
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from confluent_kafka import Consumer, TopicPartition

from cli.client.rest import ServiceClient
from cli.errors import CliError
from cli.stack.broker import HOST, EmbeddedBroker, free_port
from correlation.resources.records import Resource, stream_to_document
from tests.crash.moments import Observer
from tests.support.cluster import WORKERS, ClusterJob, SparkCluster
from tests.support.command import (
    command_line,
    is_commit_worker,
    is_submitted_driver,
    process_tree,
    send_signal,
    service_process,
    start_of,
)
from tests.support.job import MANY_BATCHES, JobUnderTest
from tests.support.kafka import create_topics
from tests.support.patience import PATIENCE_SECONDS
from tests.support.proxy import Proxy, listeners_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from correlation.resources.records import Document
    from correlation.resources.streams import Stream
    from tests.crash.sending import SentEvent

PREFIX = "crash"
_POLL_SECONDS = 0.05


class NotRecoveredError(AssertionError):
    """The installation did not recover."""


class Sender(Protocol):
    """Sends events to the streams of an installation, from `start` to `end`."""

    @property
    def sent(self) -> Mapping[str, Sequence[SentEvent]]:
        """Events by stream."""

    def start(self) -> None:
        """Begin."""

    def end(self) -> None:
        """End, when Kafka has all events."""

    def count(self, name: str) -> int:
        """Return the number of events that were sent to a stream."""


L = TypeVar("L", bound=Sender)


class Installation(Generic[L]):
    """A running installation.

    Parameters
    ----------
    folder
        Folder of data, checkpoint and logs.
    make_load
        Builds the sender of the events, for a bootstrap address and a prefix.
    make_stream
        Builds a stream of a name, for a prefix.
    patience_seconds
        Max time for a recovery.
    on_cluster
        Whether the job runs on a Spark standalone cluster; otherwise on this machine, where Spark
        has no executors of their own.
    """

    def __init__(
        self,
        folder: Path,
        make_load: Callable[[str, str], L],
        make_stream: Callable[[str, str], Stream],
        patience_seconds: float = PATIENCE_SECONDS,
        *,
        on_cluster: bool = False,
    ) -> None:
        port = free_port()
        self.proxy = Proxy(free_port())
        listeners = listeners_of(self.proxy, port)
        self.broker = EmbeddedBroker(folder / "broker", port, properties=listeners)
        self.folder = folder
        self._make_load, self._make_stream = make_load, make_stream
        self._patience_seconds = patience_seconds
        self._on_cluster = on_cluster
        self.cluster: SparkCluster | None = None
        # Jobs that a supervisor has started, after the first.
        self.restarts = 0
        # All streams that were registered, including those that were removed.
        self.streams: dict[str, Stream] = {}
        self._opened = ExitStack()
        self._metrics: dict[bytes, dict[str, Any]] = {}
        # Starts of the processes of the job that were seen: none of them may outlive its job.
        self._known: dict[int, str] = {}
        # Workers whose daemon was killed, with their starts.
        self._orphans: dict[int, str] = {}

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            opened.enter_context(self.proxy)
            opened.callback(self.broker.stop)
            self.broker.start()
            bootstrap = self.broker.bootstrap
            self.service, url = service_process(bootstrap, PREFIX, self.folder)
            opened.callback(self.service.stop)
            self.service.start()
            self.client = opened.enter_context(ServiceClient(url, PATIENCE_SECONDS))
            self.service.wait_until(self.client.ready, PATIENCE_SECONDS)
            if self._on_cluster:
                self.cluster = opened.enter_context(SparkCluster(self.folder / "cluster"))
            self.job = self._make_job(bootstrap)
            opened.callback(self._end_job)
            self.load = self._make_load(bootstrap, PREFIX)
            opened.callback(self.load.end)
            self.load.start()
            self.observer = Observer(
                bootstrap, self.job.topics, self.checkpoint, self.job.process.log_path
            )
            self._consumer = self._follow_metrics()
            opened.callback(self._consumer.close)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def checkpoint(self) -> Path:
        """Folder of the checkpoint."""
        return self.folder / "checkpoint"

    def _make_job(self, bootstrap: str) -> JobUnderTest:
        settings = {**MANY_BATCHES, "COINCIDE_BOOTSTRAP": f"{HOST}:{self.proxy.port}"}
        if self.cluster is None:
            return JobUnderTest(
                bootstrap, PREFIX, self.folder, settings, has_topics=True, own_java=True
            )
        return ClusterJob(
            bootstrap, PREFIX, self.folder, settings, has_topics=True, cluster=self.cluster
        )

    def _follow_metrics(self) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "group.id": "tests",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        consumer.assign([TopicPartition(self.job.topics.metrics, 0, 0)])
        return consumer

    def add_stream(self, name: str) -> None:
        """Create a stream's topic and register the stream."""
        stream = self._make_stream(name, PREFIX)
        create_topics(self.job.bootstrap, {stream.topic: 2})
        self.job.streams[name] = self.streams[name] = stream
        self.register("streams", name, stream_to_document(stream))

    def remove_stream(self, name: str, condition: str) -> None:
        """Remove a stream and its only condition."""
        self.job.delete(Resource("condition", condition, 1, 0, {}))
        self.job.delete(Resource("stream", name, 1, 0, {}))
        del self.job.streams[name]

    def register(self, kind: str, name: str, document: Document) -> None:
        """Send a resource to the service, again and again until it is registered."""

        def is_registered() -> bool:
            try:
                self.client.put(f"/v1/{kind}/{name}", document)
            except CliError:
                self.supervise()
                return False
            return True

        self._wait(is_registered, f"{name} is not registered")

    def supervise(self) -> None:
        """Start processes again that have ended."""
        self._read_metrics()
        if self.broker.process is None or not self.broker.process.running:
            self.broker.start()
        if not self.service.running:
            self.service.start()
        if self.cluster is not None:
            self.cluster.master.start()
            for worker in self.cluster.workers:
                worker.start()
        if not self.job.process.running:
            self.restarts += 1
            self._start_job()
        self.note_processes()

    def note_processes(self) -> None:
        """Note the processes of the job: none of them may outlive it."""
        starts = {it: start_of(it) for it in self.processes()}
        self._known |= {pid: start for pid, start in starts.items() if start}

    def _forget_ended(self) -> None:
        self._known = {pid: start for pid, start in self._known.items() if start == start_of(pid)}

    def processes(self) -> list[int]:
        """Return the processes of the job, parents before their children."""
        pid = self.job.process.pid
        found = [] if pid is None or not self.job.process.running else [*process_tree(pid)]
        if self.cluster is not None:
            found += self.cluster.processes()
        return found + [it for it, start in self._orphans.items() if start == start_of(it)]

    def note_orphans(self, daemon: int) -> None:
        """Note the workers of a daemon that is about to be killed: Spark goes on to use them."""
        found = {it: start_of(it) for it in process_tree(daemon) if it != daemon}
        self._orphans |= {pid: start for pid, start in found.items() if start}

    def executors(self) -> list[int]:
        """Return the executors of a cluster: processes in which Spark runs the tasks of a job."""
        return [] if self.cluster is None else self.cluster.executors()

    def drivers(self) -> list[int]:
        """Return the Python process of the job, which `spark-submit` starts on a cluster."""
        if self.cluster is None:
            return self.processes()[:1]
        return [it for it in self.processes() if is_submitted_driver(it)]

    def hold_commits(self) -> list[int]:
        """Stop the processes that end batches in the sink; return their ids."""
        found = [*filter(is_commit_worker, self.processes())]
        for pid in found:
            send_signal(pid, signal.SIGSTOP)
        return found

    def state(self) -> str:
        """Return the newest known state of the job."""
        return str(self._metrics.get(b"job", {}).get("state"))

    def consumed(self) -> dict[str, int]:
        """Return the number of events that the slots have counted, by stream."""
        found: dict[str, int] = {}
        for key, record in self._metrics.items():
            for name, labels, value in record.get("counters", ()) if key != b"job" else ():
                if name == "events_consumed_total":
                    found[labels["stream"]] = found.get(labels["stream"], 0) + value
        return found

    def gauge(self, name: str) -> int:
        """Return the sum of a gauge over the slots."""
        return sum(
            int(value)
            for key, record in self._metrics.items()
            for found, _, value in record.get("gauges", ())
            if key != b"job" and found == name
        )

    def wait_until_consumed(self) -> None:
        """Supervise until the job runs and its slots have counted all events that were sent."""
        streams = self.job.streams.keys()

        def is_done() -> bool:
            found = self.consumed()
            return self.state() == "running" and all(
                found.get(name, 0) >= self.load.count(name)
                for name in self.load.sent
                if name in streams
            )

        self._wait(is_done, "events are not consumed")

    def wait_until_read(self, topic: str, offset: int) -> None:
        """Supervise until completed batches have read a topic of one partition up to an offset."""
        self._wait(
            lambda: self.observer.read_up_to(topic) >= offset, f"{topic} is not read to {offset}"
        )

    def wait_for_ends(self) -> None:
        """Supervise until no process of an earlier job is left, and none is stopped."""

        def are_gone() -> bool:
            present = set(self.processes())
            self._forget_ended()
            return self._known.keys() <= present and self._has_its_executors()

        self._wait(are_gone, "processes of an earlier job are left")

    def _has_its_executors(self) -> bool:
        """Return whether the present job, and no other, has an executor of each worker.

        A master that is killed while it replaces an executor may launch another one beside it.
        """
        if self.cluster is None:
            return True
        applications = self.cluster.applications()
        lines = [command_line(it) for it in self.executors()]
        is_own = [f"--app-id {applications[0]} " in it for it in lines] if applications else []
        workers = {it.partition("--worker-url ")[2].partition(" ")[0] for it in lines}
        return len(applications) == 1 and len(workers) == WORKERS and all(is_own)

    def lose_checkpoint(self, *, kills: bool = False) -> None:
        """Stop or kill the job, remove its checkpoint, and start it again."""
        self.note_processes()
        if kills:
            self.job.kill()
        else:
            self.job.stop()
        # Executors may still write to it.
        self._wait(lambda: not self.executors(), "executors are left", start=False)
        shutil.rmtree(self.checkpoint)
        self._start_job()

    def _start_job(self) -> None:
        # Those of the former job must end with it.
        self._orphans = {}
        self.job.process.start()

    def _wait(self, is_done: Callable[[], bool], problem: str, *, start: bool = True) -> None:
        """Wait until a condition holds; `start` supervises meanwhile."""
        deadline = time.monotonic() + self._patience_seconds
        pace = threading.Event()
        while not is_done():
            if time.monotonic() > deadline:
                found, sent = self.consumed(), {it: self.load.count(it) for it in self.load.sent}
                raise NotRecoveredError(
                    f"{problem} after {self._patience_seconds:g} s; the job is {self.state()}, "
                    f"sent {sent}, consumed {found}{self.job.process.log_end()}"
                )
            if start:
                self.supervise()
            pace.wait(_POLL_SECONDS)

    def _read_metrics(self) -> None:
        """Keep the newest record of each key of the metrics topic."""
        for message in self._consumer.consume(500, 0.0):
            key, value = message.key(), message.value()
            if message.error() is None and key is not None and value is not None:
                self._metrics[key] = json.loads(value)

    def _end_job(self) -> None:
        """Kill the job, and all processes of it that are left."""
        self.note_processes()
        self.job.process.stop(5)
        self._forget_ended()
        for pid in self._known:
            send_signal(pid, signal.SIGKILL)
