"""Fixtures of formats: the topics of an installation as an earlier version has written them.

A fixture is a folder of JSON lines, one file for each topic, and `about.json`. The prefix of the
installation is written as PREFIX, and the id of a topic as ID-OF-topic. Positions in the records of
the state refer to offsets of events, heartbeats and registrations: these topics are written so that
every record has its former offset. The markers of transactions have offsets, too.
`tests.support.make_formats` makes a fixture.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from correlation.resources.records import Resource
from kafka_client.clients import UserAdmin
from kafka_client.partition_offsets import Edge, list_offsets
from tests.crash.sending import SentEvent
from tests.support.kafka import (
    Sent,
    create_topics,
    produce,
    produce_in_transaction,
    topic_id,
)
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.workload import Occurrence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from correlation.resources.records import Document
    from correlation.resources.streams import Stream

FIXTURES = Path(__file__).parents[1] / "fixtures" / "formats"
PREFIX = "PREFIX"
# Formats of the records that survive an upgrade, by the constant with their version.
FORMATS = {
    "registrations": "correlation.resources.records:VERSION",
    "states of slots": "spark_jobs.worker.slot_records:_VERSION",
    "states of programs": "correlation.engine.program:MANIFEST_VERSION",
    "marks of batches": "spark_jobs.sink.marker:_VERSION",
    "totals of merged results": "spark_jobs.sink.marker:TOTALS_VERSION",
    "metrics of slots": "correlation.engine.program:VERSION",
    "metrics of merged results": "correlation.engine.merged:VERSION",
    "metrics of the job": "spark_jobs.driver.reports:VERSION",
    "operators of best and unmatched": "correlation.timing.final_operator:_VERSION",
    "operators of event queries": "correlation.event_query.evaluation.release:_VERSION",
    "operators of blocks": "correlation.timing.block_operator:_VERSION",
}
_ABOUT, _LATER = "about.json", "later"
_TAKES_LARGE = {"max.message.bytes": str(16 * 1024 * 1024)}


def present_formats() -> dict[str, str]:
    """Return the versions of the formats that this software writes."""
    found = {}
    for name, place in FORMATS.items():
        module, _, constant = place.partition(":")
        version = getattr(import_module(module), constant)
        found[name] = version.decode() if isinstance(version, bytes) else str(version)
    return found


@dataclass(frozen=True, slots=True)
class Line:
    """A record of a topic.

    Parameters
    ----------
    partition
        Its partition.
    offset
        Its offset; None: it does not matter, as in a compacted topic that is read by keys.
    timestamp_ms, key, value, headers
        Parts of the record.
    """

    partition: int
    offset: int | None
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the record as a line; values that are compact JSON are not quoted."""
        return orjson.dumps(
            {
                "partition": self.partition,
                "offset": self.offset,
                "timestamp_ms": self.timestamp_ms,
                "key": _text(self.key),
                "value": _shown(self.value),
                "headers": {name: it.decode() for name, it in self.headers.items()},
            }
        ).decode()

    @classmethod
    def from_json(cls, line: str) -> Line:
        """Read the output of `to_json`."""
        found = orjson.loads(line)
        key, value = found["key"], found["value"]
        return cls(
            found["partition"],
            found["offset"],
            found["timestamp_ms"],
            None if key is None else key.encode(),
            value if value is None else value.encode() if isinstance(value, str) else _dump(value),
            {name: it.encode() for name, it in found["headers"].items()},
        )

    def to_sent(self) -> Sent:
        """Return the record as one to send."""
        headers = tuple(self.headers.items())
        return Sent(self.value, self.key, self.partition, self.timestamp_ms, headers)


def _dump(value: object) -> bytes:
    return orjson.dumps(value)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def _shown(value: bytes | None) -> object:
    try:
        found = None if value is None else orjson.loads(value)
    except orjson.JSONDecodeError:
        return _text(value)
    return found if isinstance(found, dict) and _dump(found) == value else _text(value)


@dataclass(frozen=True, slots=True)
class Fixture:
    """The topics of an installation, whose job was stopped, and events that are sent afterwards.

    Parameters
    ----------
    formats
        Versions of the formats of the records.
    ends
        By topic, the end offset of each partition.
    compacted
        Names of the compacted topics.
    topics
        By topic, its records.
    later
        By topic, the events that are sent afterwards.
    """

    formats: Mapping[str, str]
    ends: Mapping[str, Sequence[int]]
    compacted: Sequence[str]
    topics: Mapping[str, Sequence[Line]]
    later: Mapping[str, Sequence[Line]]

    def write(self, folder: Path, prefix: str, ids: Mapping[str, str]) -> None:
        """Write the files of a fixture.

        Parameters
        ----------
        folder
            Folder of the fixture.
        prefix
            Prefix of the installation.
        ids
            Kafka's ids of its topics.
        """

        def hide(text: str) -> str:
            for name, found in ids.items():
                text = text.replace(found, f"ID-OF-{name}")
            return text.replace(prefix, PREFIX)

        (folder / _LATER).mkdir(parents=True)
        about = {"formats": self.formats, "ends": self.ends, "compacted": self.compacted}
        files = {_ABOUT: json.dumps(about, indent=2) + "\n"}
        for place, topics in (("", self.topics), (f"{_LATER}/", self.later)):
            for name, lines in topics.items():
                files[f"{place}{name}.jsonl"] = "".join(f"{it.to_json()}\n" for it in lines)
        for name, text in files.items():
            (folder / hide(name)).write_text(hide(text))

    @classmethod
    def read(
        cls, folder: Path, prefix: str = PREFIX, ids: Mapping[str, str] | None = None
    ) -> Fixture:
        """Read the files of a fixture, for an installation with a prefix and ids of topics."""

        def show(text: str) -> str:
            text = text.replace(PREFIX, prefix)
            # The longest names first: one may begin with another.
            for name in sorted(ids or {}, key=len, reverse=True):
                text = text.replace(f"ID-OF-{name}", (ids or {})[name])
            return text

        about = json.loads(show((folder / _ABOUT).read_text()))
        topics, later = (
            {
                show(path.stem): [Line.from_json(it) for it in show(path.read_text()).splitlines()]
                for path in sorted(place.glob(f"{PREFIX}*.jsonl"))
            }
            for place in (folder, folder / _LATER)
        )
        return cls(about["formats"], about["ends"], about["compacted"], topics, later)

    def resources(self) -> list[Resource]:
        """Return the registered resources."""
        found: dict[bytes | None, Resource] = {}
        for line in self.topics[f"{self.prefix}.config"]:
            found.pop(line.key, None)
            if line.value is not None:
                found[line.key] = Resource.from_record(orjson.loads(line.value))
        return list(found.values())

    @property
    def prefix(self) -> str:
        """Prefix of the installation."""
        (found,) = [name.removesuffix(".config") for name in self.ends if name.endswith(".config")]
        return found

    def streams(self) -> dict[str, Stream]:
        """Return the registered streams."""
        return {it.name: it.to_stream() for it in self.resources() if it.kind == "stream"}

    def conditions(self) -> dict[str, Document]:
        """Return the documents of the registered conditions."""
        return {it.name: it.document for it in self.resources() if it.kind == "condition"}


def restore(bootstrap: str, prefix: str, folder: Path) -> Fixture:
    """Create the topics of a fixture with its records; return the fixture as it is there."""
    before = Fixture.read(folder, prefix)
    ends = before.ends
    for name, partitions in ends.items():
        policy = "compact" if name in before.compacted else "delete"
        settings = {**_TAKES_LARGE, "cleanup.policy": policy}
        create_topics(bootstrap, {name: len(partitions)}, settings)
    fixture = Fixture.read(folder, prefix, {it: topic_id(bootstrap, it) for it in ends})
    for name, lines in fixture.topics.items():
        if any(it.offset is None for it in lines):
            produce(bootstrap, name, [it.to_sent() for it in lines])
            continue
        for number, end in enumerate(fixture.ends[name]):
            _write_partition(bootstrap, name, [it for it in lines if it.partition == number], end)
    return fixture


def _write_partition(bootstrap: str, topic: str, lines: Sequence[Line], end: int) -> None:
    """Write the records of a partition so that each has its offset.

    A gap of one offset is the marker of a transaction. Larger gaps are filled with the records of a
    transaction that is aborted, and its marker.
    """
    if not lines:
        assert not end, f"{topic}: the first record does not have offset 0"
        return
    assert not lines[0].offset
    admin = UserAdmin({"bootstrap.servers": bootstrap})
    waiting: list[Sent] = []
    following = [*(it.offset or 0 for it in lines[1:]), end]
    for line, next_offset in zip(lines, following, strict=True):
        offset, sent = line.offset or 0, line.to_sent()
        gap = next_offset - offset - 1
        if not gap:
            waiting.append(sent)
            continue
        if gap > 1:
            waiting.append(sent)
        produce(bootstrap, topic, waiting)
        waiting = []
        if gap == 1:
            produce_in_transaction(bootstrap, topic, [sent])
        else:
            filling = [Sent(b"filling", None, line.partition)] * (gap - 1)
            produce_in_transaction(bootstrap, topic, filling, aborted=True)
        # Kafka confirms the end of a transaction before it writes the marker.
        _await_end(admin, topic, line.partition, next_offset)
    places = produce(bootstrap, topic, waiting)
    assert not places or places[-1][1] == end - 1, f"{topic}: {places[-1]}, not before {end}"


def _await_end(admin: UserAdmin, topic: str, partition: int, end: int) -> None:
    place = topic, partition

    def is_there() -> bool:
        found = list_offsets(admin, [place], Edge.END, PATIENCE_SECONDS)[place]
        assert found <= end, f"{topic}: the end is {found} instead of {end}"
        return found == end

    wait_until(is_there)


def sent_events(stream: str, lines: Iterable[tuple[Line, int]]) -> list[SentEvent]:
    """Return events of a stream as the judge of crashes needs them.

    Parameters
    ----------
    stream
        Name of the stream.
    lines
        Records, and their offsets.
    """
    found = []
    for line, offset in lines:
        value: dict[str, Any] = json.loads(line.value or b"")
        event = Occurrence(
            stream, value["id"], (line.key or b"").decode(), value["earliest"], value["latest"]
        )
        words = tuple(value["words"]) if "words" in value else None
        found.append(SentEvent(event, words, line.partition, offset))
    return found


def undeclared_versions(packages: Iterable[Path]) -> list[str]:
    """Return the constants of source files that may be versions of stored formats."""
    pattern = re.compile(r"^(?:_PREFIX, )?(_?(?:[A-Z_]+_)?VERSION)\b.* = ", re.MULTILINE)
    found = []
    for package in packages:
        for path in sorted(package.rglob("*.py")):
            module = ".".join(path.relative_to(package.parent).with_suffix("").parts)
            found += [f"{module}:{name}" for name in pattern.findall(path.read_text())]
    return found
