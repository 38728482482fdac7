"""Make a fixture of the present formats: `python -m tests.support.make_formats NAME`.

A real broker, service and job write the topics of an installation with conditions of every kind.
The job is stopped while events wait for a block, for their partners, and for the watermark. The
fixture also has events that are sent afterwards (`tests.support.formats`).
"""

from __future__ import annotations

import argparse
import random
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from correlation.resources.records import Resource
from kafka_client.clients import UserAdmin
from kafka_client.partition_offsets import Edge, list_offsets
from kafka_client.topic_offsets import KafkaOffsets
from tests.crash.conditions import CONDITIONS
from tests.crash.installation import PREFIX, Installation
from tests.crash.load import GRID, SETS, SPARE, make_stream
from tests.crash.sending import EventSender, draw_words, value_of
from tests.support.every_kind import near
from tests.support.formats import FIXTURES, Fixture, Line, present_formats
from tests.support.kafka import read_committed, topic_id
from tests.support.patience import PATIENCE_SECONDS
from tests.support.workload import Occurrence, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.kafka import Received

_SEED = 20_100_613
_PART, _PARTITIONS = 40, 2
_BLOCKS = {**near(3_000), "block_size": 25, "block_interval_us": 3_600_000_000}
_HALVES = {"buckets": [["0s", "1s", "0.5"], ["1s", "3s", "0.5"]]}


class _Events(EventSender):
    """Sends events when it is asked to."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        super().__init__(bootstrap, prefix, ("a", "b", SETS, GRID))
        self._workload = Workload("ab", _SEED)
        self._words = random.Random(_SEED)  # noqa: S311 - no secret

    def start(self) -> None:
        """Nothing is sent before `send_part`."""

    def end(self) -> None:
        """Wait until Kafka has all events."""
        self.flush()

    def take(self) -> Iterator[tuple[Occurrence, tuple[str, ...] | None]]:
        """Yield the next events of all streams, and their words."""
        for it in self._workload.take(_PART):
            yield it, None
            for name in (SETS, GRID):
                event = Occurrence(name, f"{name}.{it.id}", it.key, it.latest, it.latest)
                yield event, draw_words(self._words)

    def send_part(self) -> None:
        """Send the next events."""
        for event, words in self.take():
            self.send(event, words)
        self.flush()


def main(arguments: list[str]) -> int:
    """Make a fixture; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.make_formats")
    parser.add_argument("name", help="name of the folder: the version that has these formats")
    folder = FIXTURES / parser.parse_args(arguments).name
    if folder.exists():
        parser.error(f"{folder} exists: a fixture of a released version is never changed")
    with (
        TemporaryDirectory() as data,
        Installation(Path(data), _Events, make_stream) as installation,
    ):
        make(installation, folder)
    return 0


def make(on: Installation[_Events], folder: Path) -> None:
    """Run an installation, and write its topics to a folder."""
    on.client.put("/v1/templates/halves", _HALVES)
    on.client.put("/v1/job/slots", {"slots": 2})
    for name in ("a", "b", SETS, GRID, SPARE):
        on.add_stream(name)
    for name, document in {**CONDITIONS, "blocks": _BLOCKS, "gone": near(1_000)}.items():
        on.register("conditions", name, document)
    # Before any events: it has no results.
    on.job.delete(Resource("condition", "gone", 1, 0, {}))
    on.job.start()
    for _ in range(2):
        on.load.send_part()
        on.wait_until_consumed()
    assert on.job.stop() == 0
    bootstrap, topics = on.job.bootstrap, on.job.topics
    names = [it for it in topics.all() if it != topics.audit]
    names += [it.topic for it in on.streams.values()]
    # Positions refer to the offsets of these topics.
    placed = {topics.config, topics.heartbeats, *(it.topic for it in on.streams.values())}
    compacted = [topics.config, topics.state, topics.metrics]
    compacted += [topics.of(it) for it in topics.channels if it.compacted]
    found = {
        name: _placed(records) if name in placed else _newest(records, all_of=name not in compacted)
        for name in names
        for records in [read_committed(bootstrap, name)]
    }
    with closing(KafkaOffsets({"bootstrap.servers": bootstrap}, "formats")) as offsets:
        partitions = offsets.partitions()
    fixture = Fixture(
        present_formats(),
        {name: _ends(bootstrap, name, partitions[name]) for name in names},
        compacted,
        found,
        _later(on.load),
    )
    fixture.write(folder, PREFIX, {name: topic_id(bootstrap, name) for name in names})


def _line(it: Received, offset: int | None = None) -> Line:
    return Line(it.partition, offset, it.timestamp_ms, it.key, it.value, it.headers)


def _placed(records: list[Received]) -> list[Line]:
    return [_line(it, it.offset) for it in records]


def _newest(records: list[Received], *, all_of: bool) -> list[Line]:
    """Return the records of a topic whose offsets do not matter: all, or the newest of each key."""
    if all_of:
        return [_line(it) for it in records]
    found = {it.key: it for it in records}
    return [_line(it) for it in found.values() if it.value is not None]


def _ends(bootstrap: str, topic: str, partitions: int) -> list[int]:
    admin = UserAdmin({"bootstrap.servers": bootstrap})
    places = [(topic, number) for number in range(partitions)]
    found = list_offsets(admin, places, Edge.END, PATIENCE_SECONDS)
    return [found[it] for it in places]


def _later(load: _Events) -> dict[str, list[Line]]:
    """Return events that have not been sent."""
    found: dict[str, list[Line]] = {}
    for event, words in load.take():
        value = value_of(event, words)
        line = Line(int(event.key[1:]) % _PARTITIONS, None, 0, event.key.encode(), value)
        found.setdefault(f"{PREFIX}-{event.stream}", []).append(line)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
