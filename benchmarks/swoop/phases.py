"""Phases of a running job: a stream with a condition each, which is removed at the end."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.stack import bench, consumed, job_process, wait_for
from benchmarks.swoop.recorded import PARTITIONS, changes_topic, make_resources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.stack import Bench
    from benchmarks.workload import Records
    from cli.stack.processes import ChildProcess
    from correlation.resources.streams import Stream

PRESENT = "topk.current"
# Max number of records of a batch.
BATCH = 20_000
_WAIT_SECONDS = 600


class Job(NamedTuple):
    """A running job and its broker."""

    on: Bench
    process: ChildProcess

    def wait_until_consumed(self, stream: str, sets: int) -> None:
        """Wait until the slots have evaluated a number of sets of a stream."""
        wait_for(self.process, lambda: consumed(self.on, stream) >= sets, _WAIT_SECONDS)

    def wait_until_read(self, stream: str) -> None:
        """Wait until the job reads a stream."""

        def is_read() -> bool:
            found = self.on.slot_records().get(b"job", {})
            return found.get("state") == "running" and stream in found["streams"]

        wait_for(self.process, is_read, _WAIT_SECONDS)

    def begin(self, stream: Stream, k: int, window_us: int, records: Records) -> None:
        """Write records to the topic of a stream, and register it with a condition of its own.

        The job restarts its query, and reads the topic from its beginning.
        """
        self.on.create_topics(dict.fromkeys((stream.topic, changes_topic(stream)), PARTITIONS))
        self.on.produce(stream.topic, records)
        self.on.register(*make_resources(stream, k, window_us))

    def end(self, stream: Stream) -> list[dict[str, Any]]:
        """Remove a stream and its condition; return the last list of the condition.

        All changes of the list have been written then.
        """
        condition, key = make_resources(stream, 1, 1)[1], stream.name.encode()
        topic = self.on.topics.channel_topic(PRESENT)
        self.on.remove(condition)
        wait_for(self.process, lambda: self.on.read_key(topic, key)[-1] is None)
        self.on.remove(make_resources(stream, 1, 1)[0])
        lists = [it for it in self.on.read_key(topic, key) if it is not None]
        items: list[dict[str, Any]] = lists[-1]["items"]
        return items


@contextmanager
def running_job() -> Iterator[Job]:
    """Start a broker and a job without streams; stop them at the end."""
    with bench() as on:
        process = job_process(on, max_events_per_batch=BATCH)
        process.start()
        try:
            yield Job(on, process)
        finally:
            process.stop(60)
