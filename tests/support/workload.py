"""Events of two streams, their expected alarms, and records of Kafka topics."""

from __future__ import annotations

import json
import random
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING, Any

from correlation.resources.records import Resource, stream_to_document
from spark_jobs.worker.runs import Columns, Run
from tests.oracle.intervals import is_satisfied

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from correlation.resources.streams import Stream


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A record of a Kafka topic."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    offset: int = 0
    record_timestamp_us: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()


def runs_of(records: Sequence[SourceRecord]) -> list[Run]:
    """Build the runs of records: consecutive records of a partition."""
    return [
        Run.of(
            *place,
            Columns(
                [it.offset for it in found],
                [it.record_timestamp_us for it in found],
                [it.key for it in found],
                [it.value for it in found],
                [it.headers or None for it in found],
            ),
        )
        for place, group in groupby(records, lambda it: (it.topic, it.partition))
        for found in [list(group)]
    ]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An event of a stream."""

    stream: str
    id: str
    key: str
    earliest: int
    latest: int

    @property
    def value(self) -> bytes:
        """Value of the event's record, a canonical event."""
        event = {"id": self.id, "earliest": self.earliest, "latest": self.latest}
        return json.dumps(event).encode()


def _latest(event: Occurrence) -> int:
    return event.latest


@dataclass(frozen=True, slots=True)
class NearCondition:
    """A mutual deadline between two streams."""

    name: str
    a: str
    b: str
    window_us: int
    threshold: str
    version: int = 1

    @property
    def resource(self) -> Resource:
        """The resource that registers the condition."""
        document = {
            "kind": "mutual_deadline",
            "a": self.a,
            "b": self.b,
            "window_us": self.window_us,
            "threshold": self.threshold,
        }
        return Resource("condition", self.name, self.version, 0, document)

    def pairs(self, events: Iterable[Occurrence]) -> set[tuple[str, str, str]]:
        """Find, with the oracle, all (condition, id of A, id of B)."""
        window = (-self.window_us, self.window_us, None, None, Fraction(self.threshold))
        every = list(events)
        others: dict[str, list[Occurrence]] = defaultdict(list)
        for b in sorted(every, key=_latest):
            if b.stream == self.b:
                others[b.key].append(b)
        longest = max((b.latest - b.earliest for b in every), default=0)

        def near(a: Occurrence) -> list[Occurrence]:
            """Return the events of B whose intervals are close enough to A for a match."""
            of_key = others[a.key]
            first = bisect_left(of_key, a.earliest - self.window_us, key=_latest)
            last = bisect_right(of_key, a.latest + self.window_us + longest, key=_latest)
            return of_key[first:last]

        return {
            (self.name, a.id, b.id)
            for a in every
            if a.stream == self.a
            for b in near(a)
            if is_satisfied((a.earliest, a.latest), (b.earliest, b.latest), window)
        }


def stream_resource(stream: Stream) -> Resource:
    """Build the resource that registers a stream."""
    return Resource("stream", stream.name, 1, 0, stream_to_document(stream))


@dataclass(slots=True)
class Workload:
    """Random events of streams, in order of arrival.

    `spacing_us` is the mean time between two events, `max_uncertainty_us` the max length of an
    interval. A tenth of the events have the same latest as the event before, to produce ties.

    Kafka's client puts some of six keys into each of two partitions. With events in one of them
    only, the watermark of a recorded stream does not advance.
    """

    streams: Sequence[str]
    seed: int
    begin_us: int = 0
    spacing_us: int = 1_000
    max_uncertainty_us: int = 2_000
    keys: int = 6
    _random: random.Random = field(init=False)
    _clock: int = field(init=False)
    _count: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - no secret
        self._clock = self.begin_us

    def take(self, count: int) -> list[Occurrence]:
        """Return the next events of each stream, `count` in all."""
        events: list[Occurrence] = []
        for _ in range(count):
            tie = events and self._random.random() < 0.1
            self._clock += 0 if tie else self._random.randrange(2 * self.spacing_us)
            stream = self._random.choice(list(self.streams))
            length = self._random.choice(
                [0, self.max_uncertainty_us, self._random.randrange(self.max_uncertainty_us + 1)]
            )
            self._count += 1
            events.append(
                Occurrence(
                    stream,
                    f"{stream}{self._count}",
                    f"k{self._random.randrange(self.keys)}",
                    self._clock - length,
                    self._clock,
                )
            )
        return events


def alarm_pairs(values: Iterable[bytes | None]) -> list[tuple[str, str, str]]:
    """Return (condition, id of A, id of B) of alarm records, sorted, with repeats."""
    alarms: list[dict[str, Any]] = [json.loads(value or b"null") for value in values]
    return sorted((alarm["condition"], alarm["a"]["id"], alarm["b"]["id"]) for alarm in alarms)
