"""Environment of the whole-path benchmarks: a real Kafka, the job, and its CPU time."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from cli.client.committed import read_committed
from cli.settings import Settings as CliSettings
from cli.stack.broker import EmbeddedBroker
from cli.stack.processes import ChildProcess
from correlation.resources.records import Resource
from correlation.resources.topics import Topics
from service.settings import Settings as ServiceSettings
from service.topics import TopicKeeper
from spark_jobs.driver.memory import resident_bytes

_POLL_SECONDS = 0.1
_START_SECONDS = 180
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Bench:
    """A Kafka broker with an installation's topics, and a folder for the files of runs."""

    bootstrap: str
    topics: Topics
    folder: Path

    def create_topics(self, names: Mapping[str, int]) -> None:
        """Create topics, given as name -> number of partitions."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        new = [NewTopic(name, count, 1) for name, count in names.items()]
        for created in admin.create_topics(new).values():
            created.result(30)

    def register(self, *resources: Resource) -> None:
        """Write streams and conditions to the config topic."""
        records = [
            (resource.key, orjson.dumps(resource.to_record()), None) for resource in resources
        ]
        self.produce(self.topics.config, records)

    def remove(self, *resources: Resource) -> None:
        """Remove streams and conditions from the config topic."""
        self.produce(self.topics.config, [(resource.key, None, None) for resource in resources])

    def produce(
        self, topic: str, records: Sequence[tuple[bytes | None, bytes | None, int | None]]
    ) -> None:
        """Send (key, value, partition) as fast as the broker accepts them."""
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "linger.ms": 20,
                "queue.buffering.max.messages": 1_000_000,
            }
        )
        for key, value, partition in records:
            while True:
                try:
                    producer.produce(
                        topic, value, key, partition=-1 if partition is None else partition
                    )
                    break
                except BufferError:
                    producer.poll(_POLL_SECONDS)
        if producer.flush(120):
            raise RuntimeError(f"{topic}: not all records were taken")

    def count_committed(self, topic: str) -> int:
        """Count the committed records of a topic."""
        return sum(1 for _ in self._read(topic))

    def read_values(self, topic: str) -> list[dict[str, Any]]:
        """Read the values of the committed records of a topic."""
        return [orjson.loads(message.value()) for message in self._read(topic)]

    def read_key(self, topic: str, key: bytes) -> list[dict[str, Any] | None]:
        """Read the values of the committed records of a key; None is a tombstone."""
        values = [it.value() for it in self._read(topic) if it.key() == key]
        return [None if value is None else orjson.loads(value) for value in values]

    def slot_records(self) -> dict[bytes, dict[str, Any]]:
        """Read the latest records of slots, merged results and the job from the metrics topic."""
        found = self._read(self.topics.metrics)
        return {message.key(): orjson.loads(message.value()) for message in found}

    def _read(self, topic: str) -> Iterator[Any]:
        """Read a topic from its beginning to its current end."""
        return read_committed(CliSettings(bootstrap=self.bootstrap), topic)


@contextmanager
def bench() -> Iterator[Bench]:
    """Start a broker with an installation's topics."""
    with (
        tempfile.TemporaryDirectory(prefix="coincide-bench-") as folder,
        EmbeddedBroker() as broker,
    ):
        settings = ServiceSettings(bootstrap=broker.bootstrap, prefix="bench", event_partitions=2)
        TopicKeeper(settings).ensure_own()
        yield Bench(broker.bootstrap, settings.topics, Path(folder))


def job_process(on: Bench, **settings: object) -> ChildProcess:
    """Build the job as a child process, with settings by their names in spark_jobs.settings."""
    environment = {
        "COINCIDE_BOOTSTRAP": on.bootstrap,
        "COINCIDE_PREFIX": on.topics.prefix,
        "COINCIDE_CHECKPOINT": str(on.folder / "checkpoint"),
    }
    environment |= {f"COINCIDE_{name.upper()}": str(value) for name, value in settings.items()}
    command = [sys.executable, "-m", "spark_jobs.main"]
    return ChildProcess("job", command, on.folder / "job.log", environment)


def counted(on: Bench, counter: str, stream: str | None = None) -> int:
    """Sum a counter over all slots and labels; with `stream`, only that of a stream."""
    return sum(
        value
        for record in on.slot_records().values()
        for name, labels, value in record.get("counters", ())
        if name == counter and stream in {None, labels.get("stream")}
    )


def consumed(on: Bench, stream: str | None = None) -> int:
    """Count the events that the slots have correlated, of all streams or of one."""
    return counted(on, "events_consumed_total", stream)


def wait_for(process: ChildProcess, done: Callable[[], bool], seconds: float = 600) -> None:
    """Wait until a condition holds while the process runs."""
    process.wait_until(done, seconds)


def wait_until_warm(on: Bench, job: ChildProcess) -> None:
    """Wait until the job reports the state running."""
    wait_for(
        job,
        lambda: on.slot_records().get(b"job", {}).get("state") == "running",
        _START_SECONDS,
    )


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process and its descendants, including ended ones."""
    # After state, parent, ...: times of the process and of its ended children.
    ticks = (sum(map(int, fields[11:15])) for _, fields in _read_family(pid))
    return sum(ticks) / TICKS_PER_SECOND


def memory_by_program(pid: int) -> dict[str, int]:
    """Return the resident memory of a process and its descendants, by the name of the program.

    A page that several processes share is divided among them.
    """
    found: Counter[str] = Counter()
    for number, _ in _read_family(pid):
        try:
            name = (Path("/proc") / str(number) / "comm").read_text().strip()
        except OSError:
            continue  # the process has ended
        found[name] += resident_bytes(number) or 0
    return dict(found)


def family(pid: int) -> list[int]:
    """Return the ids of a process and its descendants."""
    return [number for number, _ in _read_family(pid)]


def _read_family(pid: int) -> list[tuple[int, list[str]]]:
    """Return the ids of a process and its descendants, with the fields of `stat` after the name."""
    found: dict[int, list[str]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            found[int(entry.name)] = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # the process has ended; its parent includes its time
    family = {pid}
    # Spark's Python workers have their own process group, so the process tree is followed.
    while grown := {it for it, fields in found.items() if int(fields[1]) in family} - family:
        family |= grown
    return [(it, found[it]) for it in family if it in found]


class Stopwatch:
    """Wall and CPU time of a process and its descendants since construction."""

    def __init__(self, process: ChildProcess) -> None:
        if process.pid is None:
            raise ValueError("the process is not running")
        self._pid = process.pid
        self._wall = time.monotonic()
        self._cpu = cpu_seconds(self._pid)

    def read(self) -> tuple[float, float]:
        """Return wall and CPU seconds."""
        return time.monotonic() - self._wall, cpu_seconds(self._pid) - self._cpu
