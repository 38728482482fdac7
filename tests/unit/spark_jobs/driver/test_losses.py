"""Count of lost records over runs, restarts and kills of a job."""

from __future__ import annotations

import json
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, cast

import pytest

from correlation.errors import UnknownRecordVersionError
from correlation.resources.streams import Stream
from kafka_client.topic_offsets import FoundTopic
from spark_jobs.driver import event_topics
from spark_jobs.driver.checkpoint import Checkpoint
from spark_jobs.driver.layout import Layout
from spark_jobs.driver.losses import LossCounter
from spark_jobs.driver.memory import MemoryUse
from spark_jobs.driver.parts import Parts
from spark_jobs.errors import CheckpointStoreError, QueryFailedError
from spark_jobs.job import Job
from spark_jobs.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

    from pyspark.sql.streaming.query import StreamingQuery

    from kafka_client.partition_offsets import Place
    from spark_jobs.driver.streams_in_force import StreamsInForce

T0 = ("t", 0)


class KilledError(BaseException):
    """The process ends here."""


class Files(Checkpoint):
    """A checkpoint in memory; the job is killed before a write that is named."""

    def __init__(self, cache: str) -> None:
        self.files: dict[str, bytes] = {}
        self.location, self.query = "memory", "query"
        self.kill_at: str | None = None
        self.full = False
        self.writes: list[str] = []
        self._cache = cache

    @property
    def cache_folder(self) -> str:
        return self._cache

    def naming_store(self) -> AbstractContextManager[None]:
        return nullcontext()

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def write(self, name: str, content: bytes) -> None:
        if self.kill_at is not None and name.startswith(self.kill_at):
            self.kill_at = None
            raise KilledError
        if self.full:
            raise CheckpointStoreError(self.location, "no space")
        self.files[name] = content
        self.writes.append(name)

    def remove(self, name: str) -> None:
        self.files.pop(name, None)

    def discard_batch(self, batch: int) -> None:
        self.remove(f"query/offsets/{batch}")

    def _newest(self, folder: str) -> int:
        found = [name.rpartition("/") for name in self.files]
        return max(
            (int(file) for parent, _, file in found if parent == f"query/{folder}"), default=-1
        )

    def begin_batch(self, ends: Mapping[Place, int]) -> None:
        """Write a batch's offsets, as Spark does before it runs the batch."""
        offsets: dict[str, dict[str, int]] = {}
        for (topic, number), end in ends.items():
            offsets.setdefault(topic, {})[str(number)] = end
        content = f"v1\n{{}}\n{json.dumps(offsets)}".encode()
        self.files[f"query/offsets/{self.newest_batch() + 1}"] = content

    def complete_batch(self) -> None:
        self.files[f"query/commits/{self.newest_batch()}"] = b"v1\n{}"


class Reports:
    """Keeps the totals of lost records; nothing else that is reported matters here."""

    def __init__(self) -> None:
        self.totals: Mapping[Place, int] = {}

    def lost(self, totals: Mapping[Place, int]) -> None:
        self.totals = dict(totals)

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


class Config:
    """A config topic that stays as it is."""

    name, epoch, is_accepting = "coincide.config", 0, False

    def check(self, _: str | None) -> None:
        """Accept whatever the broker says."""


class World:
    """A broker with topics of one partition, a checkpoint, and a job that reads with a fake query.

    The job reads one batch a run, up to `reads`, looks once at the broker, and stops.
    """

    def __init__(self, folder: str) -> None:
        self.checkpoint = Files(folder)
        self.checkpoint.write("layout.json", b'{"id": "x"}')
        self.reports = Reports()
        self.streams: dict[str, Stream] = {}
        self.topics: dict[str, str] = {}
        self.begin: dict[Place, int] = {}
        self.end: dict[Place, int] = {}
        self.reads: int | None = None
        self.fails = False
        # Whether a part of an unfinished batch is in Kafka, or nothing of it.
        self.is_written = True
        self.stop = threading.Event()
        self._job: Job | None = None
        # Requests of the job to its watch.
        self.output_topics: set[str] = set()
        self.slots: int | None = None
        self.unreadable: list[object] = []
        self.quiet_seconds = 60.0
        self._polls = 0
        # Streams that are registered before the next run begins, and while it runs.
        self.before_run: dict[str, Stream] = {}
        self.during_run: dict[str, Stream] = {}
        # Streams of each run.
        self.runs: list[list[str]] = []

    # Actions of users and of Kafka.

    def make(self, topic_id: str, end: int, topic: str = "t") -> None:
        self.topics[topic] = topic_id
        self.begin[topic, 0], self.end[topic, 0] = 0, end

    def delete(self) -> None:
        for known in (self.topics, self.begin, self.end):
            for key in [key for key in known if "t" in key]:
                del cast("dict[Any, Any]", known)[key]

    def register(self) -> None:
        self.streams = {"s": Stream("s", "t", 0, 0, clock="replay")}

    def deregister(self) -> None:
        self.streams = {}

    # Requests of the job to the broker and to its watch of the config topic.

    def read_to_end(self) -> None:
        self.streams |= self.before_run

    def poll(self, _: float) -> None:
        self._polls += 1
        self.streams |= self.during_run
        if self._polls > 3:
            self.stop.set()

    def describe(self, topics: Collection[str]) -> dict[str, FoundTopic]:
        return {name: FoundTopic(1, it) for name, it in self.topics.items() if name in topics}

    def is_deleted(self, topic: str) -> bool:
        return topic not in self.topics

    def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        return {place: self.end[place] for place in places if place in self.end}

    committed_ends = ends

    def begins(self, places: Iterable[Place]) -> dict[Place, int]:
        return {place: self.begin[place] for place in places if place in self.begin}

    def after_last_records(self, *_: object) -> dict[Place, int]:
        return {}

    def settle(self, _: threading.Event) -> None:
        """Find that no claim is unsettled."""

    def look(self) -> None:
        """Find that no other job has claimed the installation."""

    # The job.

    def run(self, reads: int | None = None) -> World:
        """Run the job once; its batch reads so far, or to the end."""
        self.stop.clear()
        self._polls = 0
        self.reads = reads
        if self._job is None:
            part: Any = self
            reports, config = cast("Any", self.reports), cast("Any", Config())
            session: Any = None
            self._job = FakeJob(
                self,
                Parts(
                    Settings(max_failures=1, slots=1),
                    session,
                    Layout(1, (0,), "x"),
                    self.checkpoint,
                    config,
                    part,
                    part,
                    reports,
                    part,
                    {},
                    "",
                    self.checkpoint.newest_batch() if self.is_written else -1,
                    # No process has this id.
                    MemoryUse(0),
                    self.stop,
                ),
            )
        self._job.run()
        return self

    def restart(self) -> World:
        """Let the process end: what it has in memory is lost."""
        self._job = None
        return self

    def killed_at(self, name: str) -> World:
        """Run the job, which is killed when it is about to write a file."""
        self.checkpoint.kill_at = name
        with pytest.raises(KilledError):
            self.run()
        return self.restart()

    def failing(self) -> World:
        """Run the job, whose query fails."""
        self.fails = True
        with pytest.raises(QueryFailedError):
            self.run()
        self.fails = False
        return self

    @property
    def lost(self) -> int:
        return self.reports.totals.get(T0, 0)


class FakeJob(Job):
    """A job whose queries are fake."""

    def __init__(self, world: World, parts: Parts) -> None:
        super().__init__(parts)
        self._world = world

    def _start(
        self, in_force: StreamsInForce, unread: Collection[str] = (), *, one_batch: bool = False
    ) -> StreamingQuery:
        world, checkpoint = self._world, self._world.checkpoint
        world.runs.append(sorted(in_force.streams))
        if world.fails:
            raise CheckpointStoreError("memory", "the query fails")
        if checkpoint.has_unfinished_batch():
            checkpoint.complete_batch()
        if not one_batch:
            read = checkpoint.begun_offsets()
            ends = {place: world.end[place] for place in in_force.places if place[0] not in unread}
            if world.reads is not None:
                ends = {place: max(read.get(place, 0), world.reads) for place in ends}
            checkpoint.begin_batch(ends)
            checkpoint.complete_batch()
        return cast("StreamingQuery", FakeQuery(checkpoint))

    def _end(self, query: StreamingQuery, *, is_hanging: bool) -> None:
        """End nothing: nothing runs."""


class FakeQuery:
    """A query that has completed its batch."""

    isActive = True  # noqa: N815 - Spark's name

    def __init__(self, checkpoint: Files) -> None:
        content = checkpoint.files[f"query/offsets/{checkpoint.newest_batch()}"].decode()
        lines = content.splitlines()[2:]
        sources = [{"startOffset": None, "endOffset": line, "latestOffset": line} for line in lines]
        self.lastProgress = {
            "batchId": checkpoint.newest_batch(),
            "numInputRows": 1,
            "sources": sources,
        }
        self.status = {"isTriggerActive": False}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(event_topics, "GONE_SECONDS", 0.0)
    world = World(str(tmp_path))
    world.make("config", 0, "coincide.config")
    world.make("first", 1_000)
    world.register()
    return world


def stream_deleted_then_topic_then_both_made_again(world: World) -> None:
    world.run().deregister()
    world.run().delete()
    world.run().make("second", 50)
    world.register()
    world.run()


def stream_deleted_while_the_job_is_behind(world: World) -> None:
    world.run(600).deregister()
    world.delete()
    world.restart().run()


def deleted_with_unread_records(world: World) -> None:
    world.run(600).delete()
    world.run().run()


def deleted_before_the_query_passes_over_a_retention_gap(world: World) -> None:
    world.run(600)
    world.begin[T0] = 700
    # Counted by the look at the run's begin, and the batch does not pass over it.
    world.run(600).delete()
    world.run()


def recreated_while_the_job_is_stopped(world: World) -> None:
    world.run(600).restart().make("second", 50)
    world.run()


def recreated_and_killed_before_offsets_change(world: World) -> None:
    world.run(600).checkpoint.begin_batch({T0: 800})
    world.make("second", 50)
    world.killed_at("query/offsets")
    world.killed_at("streams.json")
    world.run().restart().run()


def recreated_with_an_unfinished_batch_that_fails(world: World) -> None:
    world.run(600).checkpoint.begin_batch({T0: 800})
    world.restart().make("second", 50)
    world.failing().failing().restart().failing().restart().run()


def recreated_after_a_gap_with_nothing_unread(world: World) -> None:
    world.run(600)
    world.begin[T0] = 900
    world.run().make("second", 2_000)
    world.run(100)
    world.begin[T0] = 950
    world.run()


def truncated_below_what_was_read(world: World) -> None:
    world.end[T0] = 100
    world.run()
    world.end[T0] = 50
    world.run().restart().run()


def truncated_under_an_unfinished_batch_that_fails(world: World) -> None:
    world.end[T0] = 100
    world.run().checkpoint.begin_batch({T0: 100})
    world.end[T0] = 50
    world.failing().failing().restart().failing().run().restart().run()


def truncated_and_killed_before_offsets_change(world: World) -> None:
    world.end[T0] = 100
    world.run()
    world.end[T0] = 50
    world.killed_at("query/offsets").run().restart().run()


def truncated_then_longer_then_deleted(world: World) -> None:
    world.end[T0] = 100
    world.run()
    world.end[T0] = 50
    world.run()
    # New records at the offsets of those that were counted.
    world.end[T0] = 80
    world.run(60).delete()
    world.run()


def removed_by_retention_under_an_unfinished_batch(world: World) -> None:
    world.run(600).checkpoint.begin_batch({T0: 800})
    world.begin[T0] = 700
    world.restart().run().restart().run()


def removed_by_retention_over_restarts(world: World) -> None:
    world.run(600)
    world.begin[T0] = 700
    world.run(600).restart().run(600)
    world.begin[T0] = 750
    world.run(600).restart().run().run()


@pytest.mark.parametrize(
    ("happens", "lost"),
    [
        (stream_deleted_then_topic_then_both_made_again, 0),
        (stream_deleted_while_the_job_is_behind, 0),
        (deleted_with_unread_records, 400),
        (deleted_before_the_query_passes_over_a_retention_gap, 100 + 300),
        (recreated_while_the_job_is_stopped, 400),
        (recreated_and_killed_before_offsets_change, 400),
        (recreated_with_an_unfinished_batch_that_fails, 400),
        (recreated_after_a_gap_with_nothing_unread, 300 + 850),
        (truncated_below_what_was_read, 50),
        (truncated_under_an_unfinished_batch_that_fails, 50),
        (truncated_and_killed_before_offsets_change, 50),
        (truncated_then_longer_then_deleted, 50 + 20),
        (removed_by_retention_under_an_unfinished_batch, 100),
        (removed_by_retention_over_restarts, 150),
    ],
)
@pytest.mark.parametrize("is_written", [True, False])
def test_each_lost_record_is_counted_once(
    world: World, happens: Callable[[World], None], lost: int, *, is_written: bool
) -> None:
    world.is_written = is_written
    happens(world)
    assert world.lost == lost


def test_facts_are_written_when_a_loss_is_counted_and_every_tenth_time(world: World) -> None:
    files = world.checkpoint
    losses = LossCounter(files, world.reports.lost)
    losses.note_read({T0: 12}, 0)
    files.writes.clear()
    for end in range(20, 29):
        losses.look({T0: 0}, {T0: end})
    assert files.writes == []
    losses.look({T0: 0}, {T0: 29})
    losses.look({T0: 20}, {T0: 30})
    losses.look({T0: 20}, {T0: 30})
    assert files.writes == ["losses.json"] * 2
    assert world.lost == 8
    files.full = True
    with pytest.raises(CheckpointStoreError):
        losses.look({T0: 23}, {T0: 30})
    assert world.lost == 8
    files.full = False
    losses.look({T0: 23}, {T0: 30})
    assert world.lost == 11
    LossCounter(files, world.reports.lost).count_deleted({"t"})
    assert world.lost == 18


def test_losses_of_version_1_are_read_and_unknown_versions_refused(world: World) -> None:
    world.checkpoint.write("losses.json", b'{"v":1,"lost":[["t",0,8,20]]}')
    losses = LossCounter(world.checkpoint, world.reports.lost)
    losses.note_read({T0: 12}, 0)
    losses.look({T0: 20}, {T0: 30})
    assert world.lost == 8
    world.checkpoint.write("losses.json", b'{"v":3}')
    with pytest.raises(UnknownRecordVersionError, match="version 3"):
        LossCounter(world.checkpoint, world.reports.lost)


def test_a_run_reads_all_streams_that_were_registered_before_it(world: World) -> None:
    world.make("other", 10, "u")
    world.before_run = {"u": Stream("u", "u", 0, 0, clock="replay")}
    world.run()
    assert world.runs == [["s", "u"]]


def test_a_new_stream_without_a_topic_ends_the_run_once(world: World) -> None:
    """Programs keep events for a new stream until the next run knows that its topic is missing."""
    world.during_run = {"u": Stream("u", "u", 0, 0, clock="replay")}
    world.run()
    assert world.runs == [["s"], ["s"]]
    world.run()
    assert world.runs == [["s"], ["s"], ["s"]]
