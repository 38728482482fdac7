"""Cost of the attributes of a stream, beside a stream that declares none.

The same records are read by streams without attributes, with attributes that no condition uses, and
with attributes and a filter that all records match. Each block of records is packed as in Spark's
tasks, and a slot's program correlates it, drops old events and stores its state. The ways take
turns block by block, so that other load on the machine affects all of them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa

from benchmarks.report import Report
from benchmarks.workload import DELAY_US, KEYS, MAX_UNCERTAINTY_US, MIN_UNCERTAINTY_US, RATE
from correlation.buffers.events import Events
from correlation.engine.program import Block, Control, Program
from correlation.engine.progress import Progress
from correlation.resources.records import Resource, stream_from_document
from correlation.resources.topics import Topics
from spark_jobs.worker.envelope import EVENTS
from spark_jobs.worker.pack import pack_records
from spark_jobs.worker.packing import Packing
from spark_jobs.worker.runs import Columns, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    Draw = Callable[[np.random.Generator], Mapping[str, Any]]

_SECOND_US = 1_000_000
_STEP_S = 4
BLOCKS = 60
# Blocks until the buffers are full and the kernels are compiled.
_SKIPPED = 20
COLUMNS = ("declared", "read an event", "block of 12,800", "buffered event", "read", "block")
# Events wait for 30 s and have few pairs.
_CONDITION = {
    "kind": "within",
    "a": "a",
    "b": "b",
    "lower_us": 30 * _SECOND_US - 20_000,
    "upper_us": 30 * _SECOND_US,
    "threshold": "0.9",
}
_ATTRIBUTES = {"area": "area", "host": "host", "level": {"path": "level", "type": "integer"}}
WAYS: Mapping[str, Mapping[str, Any]] = {
    "none": {},
    "3 attributes": {"attributes": _ATTRIBUTES},
    "3 attributes and a filter": {"attributes": _ATTRIBUTES, "where": {"level": {"min": 0}}},
}
TEXT = (
    "Program alone, one slot: two streams of 1,600 events a second, 400 join keys, 30 s of "
    "buffered events, blocks of 4 s. All streams read the same records, which have the fields of "
    "the attributes: two strings of 20 and 200 values, and an integer. Reading includes the "
    "parsing of JSON; a block is correlation, removal of old events and snapshot. Medians of "
    "processor time; the last two columns are relative to a stream without attributes in the same "
    "version of this software. "
    # By hand: the same records packed with the version before, once.
    "Before records were read in columns, an event was read in 3.2 µs, 5.9 µs with attributes, and "
    "6.1 µs with attributes and a filter."
)


@dataclass
class Way:
    """A program, its streams, and what was measured."""

    name: str
    program: Program
    packing: Packing
    read_s: list[float] = field(default_factory=list)
    block_s: list[float] = field(default_factory=list)
    bytes_per_event: float = 0

    @classmethod
    def of(cls, name: str, declared: Mapping[str, Any]) -> Way:
        """Build a way; `declared` are further fields of the streams."""
        document = {
            "min_uncertainty_us": MIN_UNCERTAINTY_US,
            "max_uncertainty_us": MAX_UNCERTAINTY_US,
            "max_delay_us": DELAY_US,
            "clock": "replay",
            **declared,
        }
        streams = {it: stream_from_document(it, {"topic": it, **document}) for it in "ab"}
        packing = Packing(Topics("bench"), tuple(streams.values()), (0,), 10_000)
        return cls(name, Program(streams, dict.fromkeys(streams, 1)), packing)

    def take(self, runs: Sequence[Run], number: int) -> None:
        """Read a block of records and advance the program."""
        begin = time.process_time()
        packed = pa.Table.from_batches(pack_records(self.packing, [runs])).to_pylist()
        read = time.process_time()
        events = [Events.from_bytes(it["blob"]) for it in packed if it["kind"] == EVENTS]
        end = (number + 1) * _STEP_S * _SECOND_US
        count = (number + 1) * _STEP_S * RATE
        progress = [Progress(it, 0, count, end) for it in "ab"]
        record = Resource("condition", "c", 1, 0, _CONDITION).to_record()
        controls = [] if number else [Control(0, b"condition/c", record)]
        outcome = self.program.advance(Block(controls, events, progress), lambda: 0)
        self.program.snapshot()
        self.block_s.append(time.process_time() - read)
        self.read_s.append(read - begin)
        gauges = {
            (name, labels.get("stream")): it for name, labels, it in outcome.metrics["gauges"]
        }
        self.bytes_per_event = gauges["state_bytes", "a"] / gauges["buffered_events", "a"]

    def medians(self) -> tuple[float, float]:
        """Return the processor seconds to read an event, and of a block."""
        count = 2 * _STEP_S * RATE
        read, block = (np.median(it[_SKIPPED:]) for it in (self.read_s, self.block_s))
        return float(read) / count, float(block)


def make_batch(number: int, rng: np.random.Generator, draw: Draw | None = None) -> list[Run]:
    """Draw a block of both streams, with further fields of records."""
    count = _STEP_S * RATE
    begin = number * _STEP_S * _SECOND_US
    runs = []
    offsets = np.arange(number * count, (number + 1) * count)
    for stream in "ab":
        values = []
        latest = np.sort(rng.integers(begin, begin + _STEP_S * _SECOND_US, count))
        earliest = latest - rng.integers(MIN_UNCERTAINTY_US, MAX_UNCERTAINTY_US + 1, count)
        keys, areas, hosts, levels = (rng.integers(0, most, count) for most in (KEYS, 20, 200, 10))
        for place in range(count):
            value = {
                "id": f"{stream}-{number}-{place}",
                "key": f"k{keys[place]}",
                "earliest": int(earliest[place]),
                "latest": int(latest[place]),
                "area": f"area {areas[place]}",
                "host": f"host {hosts[place]}",
                "level": int(levels[place]),
                **(draw(rng) if draw else {}),
            }
            values.append(orjson.dumps(value))
        runs.append(run_of(stream, 0, values, offsets))
    return runs


def run_of(topic: str, partition: int, values: Sequence[bytes], offsets: NDArray[np.int64]) -> Run:
    """Return records without keys and headers as the source reads them from Kafka."""
    empty: list[Any] = [None] * len(values)
    return Run.of(
        topic,
        partition,
        Columns(offsets.tolist(), [0] * len(values), empty, list(values), empty),
    )


def measure(ways: Sequence[Way], draw: Draw | None = None) -> None:
    """Let all ways take the same blocks, in changing order; `draw` returns further fields."""
    rng = np.random.default_rng(2010)
    for number in range(BLOCKS):
        runs = make_batch(number, rng, draw)
        turn = number % len(ways)
        for way in [*ways[turn:], *ways[:turn]]:
            way.take(runs, number)


def rows_of(ways: Sequence[Way]) -> list[list[str]]:
    """Return the rows of the table; the first way is the one that the others are compared with."""
    plain_read, plain_block = ways[0].medians()
    rows = []
    for way in ways:
        read, block = way.medians()
        rows.append(
            [
                way.name,
                f"{read * 1e6:.2f} µs",
                f"{block * 1e3:.1f} ms",
                f"{way.bytes_per_event:.1f} bytes",
                f"{read / plain_read:.2f}",
                f"{block / plain_block:.2f}",
            ]
        )
    return rows


def run() -> list[Report]:
    """Measure all ways."""
    ways = [Way.of(name, declared) for name, declared in WAYS.items()]
    measure(ways)
    return [Report("Streams with and without attributes", TEXT, COLUMNS, rows_of(ways))]


if __name__ == "__main__":
    for found in run():
        found.show()
