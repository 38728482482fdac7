"""The streaming job as a separate process, with its topics, on a real Kafka broker."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cli.errors import ProcessError
from cli.stack.processes import ChildProcess
from correlation.kinds import CHANNELS, KINDS
from correlation.resources.records import Resource
from correlation.resources.topics import Channel, Topics
from tests.support.kafka import Received, Sent, TopicReader, create_topics, produce
from tests.support.patience import END_SECONDS, PATIENCE_SECONDS, wait_until
from tests.support.records import RecordChecker
from tests.support.shared_java import SharedJavaProcess
from tests.support.workload import Occurrence, alarm_pairs, stream_resource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from correlation.condition_kind import ConditionKind
    from correlation.resources.streams import Stream

_TAKES_LARGE = {"max.message.bytes": str(16 * 1024 * 1024)}
# Each batch takes CPU time from the jobs of other tests, and each heartbeat causes one.
FEW_BATCHES = {"COINCIDE_HEARTBEAT_SECONDS": "15", "COINCIDE_TRIGGER_SECONDS": "1"}
# A job that is killed at random moments is usually in a batch.
MANY_BATCHES = {"COINCIDE_HEARTBEAT_SECONDS": "1", "COINCIDE_TRIGGER_SECONDS": "0.2"}
Pairs = list[tuple[str, str, str]]
T = TypeVar("T")


@dataclass
class JobUnderTest:
    """An installation with its own prefix.

    `folder` holds checkpoint and log.
    """

    bootstrap: str
    prefix: str
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    streams: dict[str, Stream] = field(default_factory=dict)
    # Channels of the kinds that the job has.
    channels: tuple[Channel, ...] = CHANNELS
    # Kinds whose records `read` checks.
    kinds: tuple[ConditionKind, ...] = tuple(KINDS.values())
    # The service of the installation has created the topics.
    has_topics: bool = False
    # Each start has a JVM of its own, instead of one that earlier jobs have used: for tests that
    # look at Java, at the Python workers or at their messages, that set Spark's properties, or that
    # kill the job at random moments.
    own_java: bool = False

    def __post_init__(self) -> None:
        self.checker = RecordChecker(self.kinds)
        self.topics = Topics(self.prefix, self.channels)
        if not self.has_topics:
            self._create_topics()
        self.environment = {
            "COINCIDE_BOOTSTRAP": self.bootstrap,
            "COINCIDE_PREFIX": self.prefix,
            "COINCIDE_CHECKPOINT": str(self.folder / "checkpoint"),
            **FEW_BATCHES,
            **self.settings,
        }
        self.process = self.make_process()
        self._readers: dict[str, TopicReader] = {}

    def _create_topics(self) -> None:
        one = (self.topics.config, self.topics.heartbeats, self.topics.metrics)
        create_topics(self.bootstrap, {**dict.fromkeys(one, 1), self.topics.alarms: 2})
        large = (self.topics.late, self.topics.dead_letter)
        create_topics(self.bootstrap, dict.fromkeys(large, 1), _TAKES_LARGE)
        kept = {"cleanup.policy": "compact", **_TAKES_LARGE}
        create_topics(self.bootstrap, {self.topics.state: 1}, kept)
        channels = {self.topics.of(it): it.compacted for it in self.topics.channels}
        for compacted in (False, True):
            policy = {"cleanup.policy": "compact" if compacted else "delete"}
            names = [name for name, it in channels.items() if it == compacted]
            create_topics(self.bootstrap, dict.fromkeys(names, 1), policy)

    def make_process(self, name: str = "job", option: str = "", **changes: str) -> ChildProcess:
        """Build a job process with an option and changed variables; it is not started."""
        command = [sys.executable, "-m", "spark_jobs.main", *([option] if option else [])]
        environment = {**self.environment, **changes}
        make = ChildProcess if self.own_java else SharedJavaProcess
        return make(name, command, self.folder / f"{name}.log", environment)

    def register(self, *resources: Resource) -> None:
        """Write resources to the config topic."""
        records = [Sent(json.dumps(found.to_record()).encode(), found.key) for found in resources]
        produce(self.bootstrap, self.topics.config, records)

    def delete(self, resource: Resource) -> None:
        """Write a tombstone for a resource."""
        produce(self.bootstrap, self.topics.config, [Sent(None, resource.key)])

    def add_stream(self, stream: Stream, partitions: int = 2) -> None:
        """Create a stream's topic and register the stream."""
        create_topics(self.bootstrap, {stream.topic: partitions}, _TAKES_LARGE)
        self.register(stream_resource(stream))
        self.streams[stream.name] = stream

    def send(self, events: Iterable[Occurrence]) -> None:
        """Produce events in their order to the topics of their streams."""
        by_stream: dict[str, list[Sent]] = {}
        for event in events:
            sent = Sent(event.value, event.key.encode())
            by_stream.setdefault(event.stream, []).append(sent)
        for name, records in by_stream.items():
            produce(self.bootstrap, self.streams[name].topic, records)

    def start(self) -> None:
        """Start the process and wait until it reports the state running."""
        said = len(self.states())
        self.process.start()
        self.process.wait_until(lambda: "running" in self.states()[said:], PATIENCE_SECONDS)

    def catch(self, moment: Callable[[], bool]) -> None:
        """Wait for a condition that may hold for a moment only, while the process runs."""

        def holds() -> bool:
            self.process.check()
            return moment()

        wait_until(holds, briefly=True)

    def stop(self) -> int | None:
        """Stop the process with SIGTERM, as an operator does; return its exit code."""
        return self.process.stop(END_SECONDS)

    def kill(self) -> None:
        """Kill the process, its JVM and its workers at once."""
        self.process.kill()

    def read(
        self, topic: str, until: Callable[[list[Received]], bool] | None = None
    ) -> list[Received]:
        """Return the committed records of a topic, and check their schemas."""
        if topic not in self._readers:
            # Without a reference to the job, the reader is closed when the job is not needed.
            check = partial(_check, self.checker, self.prefix)
            self._readers[topic] = TopicReader(self.bootstrap, topic, check)
        return self._readers[topic].read(until)

    def dead_letters(self, *streams: str, count: int = 0) -> list[Received]:
        """Return the dead letters of streams, once there are as many as given."""
        names = {it.encode() for it in streams}

        def select(records: list[Received]) -> list[Received]:
            return [it for it in records if it.headers["coincide.error.stream"] in names]

        found = self.read(self.topics.dead_letter, lambda it: len(select(it)) >= count)
        return select(found)

    def alarms(self, *conditions: str, awaited: Iterable[tuple[str, str, str]] = ()) -> Pairs:
        """Return the pairs of conditions, with repeats, once they contain the awaited pairs."""
        found: Pairs = []
        missing = set(awaited)
        looked_at = 0

        def complete(records: list[Received]) -> bool:
            nonlocal looked_at
            fresh = alarm_pairs(record.value for record in records[looked_at:])
            looked_at = len(records)
            found.extend(pair for pair in fresh if pair[0] in conditions)
            missing.difference_update(fresh)
            return not missing

        complete(self.read(self.topics.alarms, complete if missing else None))
        return sorted(found)

    def states(self) -> list[str]:
        """Return the states of the job, oldest first."""
        return [state for state, _ in groupby(one["state"] for one in self.job_records())]

    def failures(self) -> list[str]:
        """Return the exceptions with which the query failed, oldest first."""
        records = self.job_records()
        return [it["exception"] for it in records if it["state"] == "failing"]

    def job_records(self) -> list[dict[str, Any]]:
        """Return the job's own records on the metrics topic, oldest first."""
        records = self.read(self.topics.metrics)
        return [_parse(record.value or b"") for record in records if record.key == b"job"]

    def wait_for_job(self, ready: Callable[[dict[str, Any]], bool]) -> None:
        """Wait until the newest record of the job is `ready`."""
        self._await(lambda: self.job_records()[-1], ready)

    def wait_for_slots(self, ready: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """Return the newest record of each slot, once these records are `ready`."""

        def newest(records: list[Received]) -> list[dict[str, Any]]:
            found = {record.key: record.value for record in records if _is_slot(record)}
            slots = [_parse(value or b"") for value in found.values()]
            # The job may have had more slots before; their records remain.
            count = max(slots, key=lambda slot: slot["at"])["slots"] if slots else 0
            return [slot for slot in slots if slot["slot"] < count]

        return self._await(lambda: newest(self.read(self.topics.metrics)), ready)

    def wait_for_merged(self, ready: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the newest record of merged results, once it is `ready`."""

        def newest() -> dict[str, Any]:
            records = self.read(self.topics.metrics)
            found = [record.value for record in records if record.key == b"merged"]
            return _parse(found[-1]) if found and found[-1] else {"counters": []}

        return self._await(newest, ready)

    def _await(self, ask: Callable[[], T], ready: Callable[[T], bool]) -> T:
        """Return the first response that is `ready`."""
        responses: list[T] = []

        def is_ready() -> bool:
            responses[:] = [ask()]
            return ready(responses[0])

        try:
            self.process.wait_until(is_ready, PATIENCE_SECONDS)
        except ProcessError as error:
            error.add_note(f"the last response: {responses}")
            raise
        return responses[0]


def _is_slot(record: Received) -> bool:
    return (record.key or b"").startswith(b"slot/")


def _check(checker: RecordChecker, prefix: str, record: Received) -> None:
    checker.check(prefix, [record])


@lru_cache(maxsize=10_000)
def _parse(value: bytes) -> dict[str, Any]:
    """Parse a record, which later reads return again: it must not be changed."""
    found: dict[str, Any] = json.loads(value)
    return found


def total(slots: Iterable[dict[str, Any]], counter: str, **labels: str) -> int:
    """Sum a counter over slots and over the labels that are not given."""
    return sum(
        value
        for slot in slots
        for name, found, value in slot["counters"]
        if name == counter and labels.items() <= found.items()
    )


def query_folder(job: JobUnderTest) -> Path:
    """Return the folder of the query's checkpoint; a rebuild begins a new one."""
    layout = json.loads((job.folder / "checkpoint" / "layout.json").read_text())
    generation = layout["generation"]
    return job.folder / "checkpoint" / (f"query-{generation}" if generation else "query")


def unfinish_last_batch(job: JobUnderTest) -> None:
    """Stop the job and remove the commit file of its last batch."""
    assert job.stop() == 0
    commits = query_folder(job) / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)
    # A job killed during the batch has not recorded the batch's records as read.
    for name in ("losses.json", ".losses.json.crc"):
        (job.folder / "checkpoint" / name).unlink(missing_ok=True)
