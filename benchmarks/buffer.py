"""Cost of a buffered event: its memory, and the time of a block over many buffered events.

The benchmark has two streams, a condition whose events wait ten minutes, and blocks of 20,000
events. It measures after a million events are buffered. The min possible memory of an event is that
of its two times and its id.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.report import Report
from correlation.buffers.columns import BytesColumn
from correlation.buffers.events import Events
from correlation.engine.program import Block, Control, Outcome, Program
from correlation.engine.progress import Progress
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from correlation.timing.alarms import PairBatch

WAIT_US = 600_000_000
BUFFERED = 1_000_000
BLOCK = 10_000
STEP_US = WAIT_US * BLOCK // BUFFERED
MEASURED_BLOCKS = 40
_TIMES_BYTES = 16


def make_events(stream: str, block: int, keys: int, rng: np.random.Generator) -> Events:
    """Draw a block of a stream, with lengths of 20 to 200 ms."""
    begin = block * STEP_US
    latest = np.sort(rng.integers(begin, begin + STEP_US, BLOCK))
    numbers = rng.integers(0, keys, BLOCK).tolist()
    return Events(
        stream,
        BytesColumn.from_list([b"k%d" % number for number in numbers]),
        BytesColumn.from_list([b"%s-%08d" % (stream.encode(), i) for i in range(BLOCK)]),
        latest - rng.integers(20_000, 200_001, BLOCK),
        latest,
        np.zeros(BLOCK, np.int32),
        np.arange(block * BLOCK, (block + 1) * BLOCK),
        latest,
    )


def measure(keys: int) -> list[str]:
    """Fill the buffer and time the following blocks."""
    rng = np.random.default_rng(2010)
    streams = {name: Stream(name, name, 200_000, 0, clock="replay") for name in "ab"}
    program = Program(streams, dict.fromkeys(streams, 1))
    # The window covers only the end of the wait: many events, few pairs.
    document = {
        "kind": "within",
        "a": "a",
        "b": "b",
        "lower_us": WAIT_US - 400_000,
        "upper_us": WAIT_US,
        "threshold": "1",
    }
    record = Resource("condition", "c", 1, 0, document).to_record()
    controls = [Control(0, b"condition/c", record)]
    seconds = []
    pairs = buffered = state_bytes = 0
    blocks = BUFFERED // BLOCK + MEASURED_BLOCKS
    for block in range(blocks):
        blobs = [make_events(name, block, keys, rng).to_bytes() for name in "ab"]
        end = (block + 1) * STEP_US
        progress = [Progress(name, 0, (block + 1) * BLOCK, end) for name in "ab"]
        begin = time.perf_counter()
        events = [Events.from_bytes(blob) for blob in blobs]
        outcome = program.advance(Block(controls, events, progress), lambda: 0)
        program.snapshot()
        seconds.append(time.perf_counter() - begin)
        controls = []
        pairs += _count_pairs(outcome)
        gauges = {
            (name, labels["stream"]): value for name, labels, value in outcome.metrics["gauges"]
        }
        buffered, state_bytes = gauges["buffered_events", "a"], gauges["state_bytes", "a"]
    last = np.sort(seconds[-MEASURED_BLOCKS:])
    min_bytes = _TIMES_BYTES + len(b"a-00000000")
    per_event = state_bytes / buffered
    return [
        f"{keys:,}",
        f"{buffered:,}",
        f"{np.median(last) * 1e3:.0f} ms",
        f"{last[-1] * 1e3:.0f} ms",
        f"{pairs:,}",
        f"{per_event:.1f} bytes",
        f"{min_bytes} bytes",
        f"{per_event / min_bytes:.2f}",
    ]


def _count_pairs(outcome: Outcome) -> int:
    return sum(len(result) for result in outcome.results if isinstance(result, PairBatch))


def run() -> list[Report]:
    """Measure with few and with many join keys."""
    return [
        Report(
            "A block over a million buffered events",
            "Program alone, one slot: unpacking, correlation, removal of old events and snapshot "
            "of a block of 20,000 events, while a million events are buffered.",
            (
                *("join keys", "buffered", "block, median", "block, worst", "pairs"),
                *("buffer per event", "minimum", "ratio"),
            ),
            [measure(keys) for keys in (1, 100, 100_000)],
        )
    ]


if __name__ == "__main__":
    for found in run():
        found.show()
