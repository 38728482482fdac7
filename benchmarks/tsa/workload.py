"""The running example of Novoseltsev 2013 (TSA) as a workload: smoke without a report in time.

Smokes arrive at a constant mean rate in areas drawn uniformly. In most areas every smoke is
reported 10 s to 2 min later; *silent* areas have no reports. So the alarms are known in advance:
the smokes of silent areas.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import orjson

from correlation.buffers.columns import BytesColumn, DictionaryColumn
from correlation.buffers.events import Events
from correlation.engine.blocks import Block, Control
from correlation.engine.progress import Progress
from correlation.resources.attributes import Attribute, column_name, encode_value
from correlation.resources.partitioning import Partitioning
from correlation.resources.records import Resource, stream_to_document
from correlation.resources.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from benchmarks.workload import Records

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
DEADLINE_US = 5 * MINUTE_US
DELAY_US = 10 * SECOND_US
AREAS = 10_000
REPORTED_US = (10 * SECOND_US, 2 * MINUTE_US)
# One area of this number is silent.
SILENT_EVERY = 100
STREAMS = ("smoke", "report")
ATTRIBUTE = "area"


class Workload(NamedTuple):
    """Two streams of the running example.

    Attributes
    ----------
    rate : float
        Smokes per second of stream time; nearly as many reports.
    seconds : int
        Stream time.
    keyed : bool
        Whether the area is the join key of keyed streams, or an attribute of key-less ones.
    areas : int
        Number of areas.
    """

    rate: float
    seconds: int
    keyed: bool = False
    areas: int = AREAS


@dataclass(frozen=True)
class Arrivals:
    """Events of one stream in order of arrival.

    Parameters
    ----------
    stream : str
        Name of the stream.
    time_us, arrival_us : ndarray of int64, shape (n,)
        Time of each event, and time at which it arrives.
    area : ndarray of int64, shape (n,)
        Number of its area.
    """

    stream: str
    time_us: NDArray[np.int64]
    arrival_us: NDArray[np.int64]
    area: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.time_us)

    def ids(self, begin: int, end: int) -> list[bytes]:
        """Return the ids of the events from `begin` to `end - 1`."""
        prefix = self.stream[:1].encode()
        return [b"%b%d" % (prefix, number) for number in range(begin, end)]

    def events(self, begin: int, end: int, *, keyed: bool) -> Events:
        """Return the events from `begin` to `end - 1`, as a block has them."""
        numbers, codes = np.unique(self.area[begin:end], return_inverse=True)
        names = [area_name(number) for number in numbers.tolist()]
        values = BytesColumn.from_list([encode_value(name) for name in names])
        keys = BytesColumn.from_list([name.encode() for name in names] if keyed else [b"0"])
        size = end - begin
        times = self.time_us[begin:end]
        area = DictionaryColumn(codes.astype(np.int32), values)
        return Events(
            self.stream,
            keys.take(codes if keyed else np.zeros(size, np.int64)),
            BytesColumn.from_list(self.ids(begin, end)),
            times,
            times,
            np.zeros(size, np.int32),
            np.arange(begin, end),
            self.arrival_us[begin:end],
            columns={} if keyed else {column_name(ATTRIBUTE): area},
        )

    def records(self, begin: int, end: int) -> Records:
        """Return the events from `begin` to `end - 1` as Kafka records."""
        found = zip(
            self.ids(begin, end),
            self.time_us[begin:end].tolist(),
            map(area_name, self.area[begin:end].tolist()),
            strict=True,
        )
        return [
            (
                area.encode(),
                orjson.dumps({"id": name.decode(), "earliest": at, "latest": at, "area": area}),
                None,
            )
            for name, at, area in found
        ]


def area_name(number: int) -> str:
    """Return the name of an area."""
    return f"area {number}"


def filling_events(rate: int) -> int:
    """Return the number of events after which the first have left the buffers."""
    return 2 * rate * (DEADLINE_US + 2 * DELAY_US) // SECOND_US


def seconds_for(events: int, rate: int) -> int:
    """Return a stream time in which a number of events arrive at this rate of smokes.

    Reports arrive later than smokes, and one smoke in `SILENT_EVERY` has none.
    """
    return int(1.02 * events / (2 * rate)) + (REPORTED_US[1] + DELAY_US) // SECOND_US


def draw_arrivals(workload: Workload, seed: int = 2013) -> tuple[Arrivals, Arrivals]:
    """Draw smokes and reports; delays are at most `DELAY_US`.

    Only events that arrive within the stream time are returned.
    """
    rng = np.random.default_rng(seed)
    span_us = workload.seconds * SECOND_US
    count = int(workload.seconds * workload.rate)
    smoke = np.sort(rng.integers(0, span_us, count))
    area = rng.integers(0, workload.areas, count)
    reported = np.flatnonzero(area % SILENT_EVERY)
    report = smoke[reported] + rng.integers(*REPORTED_US, len(reported))
    return (
        arrivals_in_order("smoke", smoke, area, span_us, rng),
        arrivals_in_order("report", report, area[reported], span_us, rng),
    )


def arrivals_in_order(
    stream: str,
    time_us: NDArray[np.int64],
    area: NDArray[np.int64],
    span_us: int,
    rng: np.random.Generator,
) -> Arrivals:
    """Draw delays, and return the events that arrive within a stream time in order of arrival."""
    arrival_us = time_us + rng.integers(0, DELAY_US, len(time_us))
    order = np.argsort(arrival_us, kind="stable")
    order = order[arrival_us[order] < span_us]
    return Arrivals(stream, time_us[order], arrival_us[order], area[order])


def expected_ids(smokes: Arrivals, until_us: int) -> set[bytes]:
    """Return the ids of the alarms up to a time."""
    rows = np.flatnonzero((smokes.area % SILENT_EVERY == 0) & (smokes.time_us <= until_us))
    return {b"s%d" % number for number in rows.tolist()}


class Cut(NamedTuple):
    """The events of one block: rows from `begins[k]` to `ends[k] - 1` of stream k."""

    begins: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of events."""
        return sum(self.ends) - sum(self.begins)


def cut_by_time(drawn: Sequence[Arrivals], step_us: int, span_us: int) -> Iterator[Cut]:
    """Yield blocks of all events that arrive within equal steps of stream time."""
    begins = (0,) * len(drawn)
    for end_us in range(step_us, span_us + 1, step_us):
        ends = tuple(int(np.searchsorted(it.arrival_us, end_us)) for it in drawn)
        yield Cut(begins, ends)
        begins = ends


def cut_by_size(drawn: Sequence[Arrivals], count: int, block: int, first: int = 0) -> Iterator[Cut]:
    """Yield blocks of equal numbers of events, from event `first` to `first + count - 1`.

    Events are counted over all streams, in order of arrival.
    """
    arrived = np.sort(np.concatenate([it.arrival_us for it in drawn]), kind="stable")
    ends = [min(end, first + count) for end in range(first + block, first + count + block, block)]

    def rows_before(event: int) -> tuple[int, ...]:
        if event == len(arrived):
            return tuple(map(len, drawn))
        return tuple(int(np.searchsorted(it.arrival_us, arrived[event])) for it in drawn)

    for begin, end in pairwise([first, *ends]):
        yield Cut(rows_before(begin), rows_before(end))


def make_block(
    drawn: Sequence[Arrivals], cut: Cut, controls: Sequence[Control], *, keyed: bool
) -> Block:
    """Return a block of events with their progress, in one Kafka partition a stream."""
    events, progress = [], []
    for it, begin, end in zip(drawn, *cut, strict=True):
        if begin < end:
            part = it.events(begin, end, keyed=keyed)
            events.append(part)
            progress.append(Progress(it.stream, 0, end, int(part.latest.max())))
    return Block(controls, events, progress)


def make_streams(*, keyed: bool) -> dict[str, Stream]:
    """Return the streams: instants, with the area as join key or as attribute."""
    return {
        name: Stream(
            name,
            f"events-{name}",
            0,
            DELAY_US,
            partitioning=Partitioning() if keyed else Partitioning("grid"),
            clock="replay",
            attributes=() if keyed else (Attribute(ATTRIBUTE, (ATTRIBUTE,)),),
        )
        for name in STREAMS
    }


def query_text(*, keyed: bool, area: str | None = None, deadline: str = "5 min") -> str:
    """Return the text of the running example.

    Parameters
    ----------
    keyed : bool
        Whether the area is the join key.
    area : str or None
        The only area of the query; None: all areas.
    deadline : str
        Time within which a report is expected.
    """
    pattern = "{area {var X}}" if area is None else f'{{area {{"{area}"}}}}'
    pattern = "" if keyed else pattern
    output = "{area {var X}}" if area is None and not keyed else ""
    return (
        f"DETECT Alarm {output} ON event s: Smoke {pattern} not event r: Report {pattern} "
        f"WHERE s.rt.end <= r.rt.begin, r.rt.begin <= s.rt.end + {deadline} END"
    )


def query_resource(text: str, name: str = "unreported") -> Resource:
    """Return a registered query."""
    return Resource("condition", name, 1, 0, {"kind": "event_query", "query": text})


def stream_resources() -> list[Resource]:
    """Return the key-less streams as registered."""
    streams = make_streams(keyed=False).values()
    return [Resource("stream", it.name, 1, 0, stream_to_document(it)) for it in streams]


def make_controls(texts: Sequence[str]) -> list[Control]:
    """Return the records of queries in the config topic."""
    resources = [query_resource(text, f"query-{place}") for place, text in enumerate(texts)]
    return [Control(place, it.key, it.to_record()) for place, it in enumerate(resources)]
