"""Cost of a pair in a separate record, and in a factored record.

The benchmark has one condition, one slot and one key; the streams are those of LL10 section 5
(lengths uniform from 20 to 200 ms) with 1,600 events a second each. A block of both streams is
correlated with the buffers that its window needs, and its records are written as JSON and packed
for Spark. The processor time covers all of these steps.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import orjson

from benchmarks.report import Report
from benchmarks.workload import DELAY_US, MAX_UNCERTAINTY_US, MIN_UNCERTAINTY_US, RATE
from correlation.buffers.buffer import StreamBuffer
from correlation.buffers.columns import BytesColumn
from correlation.buffers.joining import joined_offsets
from correlation.buffers.segment import Segment
from correlation.kinds import KINDS, condition_from_document
from correlation.operators import View
from correlation.record_columns import columns_of
from correlation.resources.streams import Stream
from spark_jobs.worker.envelope import pack_result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from correlation.record_columns import RecordColumns

_SECOND_US = 1_000_000
# Max number of pairs that are written; the cost of further pairs is extrapolated.
_MOST_RECORDS = 1_000_000
STREAMS = {
    name: Stream(
        name,
        name,
        MAX_UNCERTAINTY_US,
        DELAY_US,
        min_uncertainty_us=MIN_UNCERTAINTY_US,
        clock="replay",
    )
    for name in "ab"
}


class Workload(NamedTuple):
    """Window and block length in seconds; `by_pair` if all pairs fit into memory."""

    window: float
    block: float
    by_pair: bool = True


WORKLOADS = (
    Workload(1, 1),
    Workload(10, 0.25),
    Workload(10, 1, by_pair=False),
    Workload(60, 0.05),
    Workload(60, 1, by_pair=False),
)


@dataclass(slots=True)
class Cost:
    """Processor seconds and bytes of a number of pairs."""

    pairs: int
    seconds: float
    value_bytes: float
    packed_bytes: float

    def cells(self) -> list[str]:
        """Return M pairs a second, bytes a pair, and packed bytes a pair."""
        rates = (self.value_bytes / self.pairs, self.packed_bytes / self.pairs)
        return [f"{self.pairs / self.seconds / 1e6:,.2f}", *(f"{rate:,.3g}" for rate in rates)]


def make_segment(name: str, begin_us: int, end_us: int, rng: np.random.Generator) -> Segment:
    """Draw the events of a stream whose latest times are in a range."""
    count = max(int((end_us - begin_us) * RATE / 1e6), 1)
    latest = np.sort(rng.integers(begin_us, end_us, count))
    return Segment(
        BytesColumn.from_list([b"k"]),
        np.array([0, count]),
        latest - rng.integers(MIN_UNCERTAINTY_US, MAX_UNCERTAINTY_US + 1, count),
        latest,
        BytesColumn.from_list([f"{name}-{begin_us // 1000}-{i}".encode() for i in range(count)]),
        np.zeros(count, np.bool_),
    )


def make_view(workload: Workload, rng: np.random.Generator) -> View:
    """Draw a block of both streams, and the buffers that its window needs."""
    kept_us = int(workload.window * _SECOND_US) + MAX_UNCERTAINTY_US
    block_us = int(workload.block * _SECOND_US)
    fresh = {name: make_segment(name, kept_us, kept_us + block_us, rng) for name in "ab"}
    buffers = {
        name: StreamBuffer([(0, make_segment(name, 0, kept_us, rng))], 0, 0) for name in "ab"
    }
    return View(fresh, {name: it.latest for name, it in fresh.items()}, buffers, {"a": 0, "b": 0})


def measure(view: View, window_s: float, output: str) -> Cost:
    """Evaluate a block, and write and pack its results."""
    ends = {"window_us": int(window_s * _SECOND_US), "threshold": "0.7"}
    document = {"kind": "mutual_deadline", "a": "a", "b": "b", "output": output, **ends}
    condition = condition_from_document("near", 1, document)
    operator = KINDS[condition.kind].operator(condition, STREAMS)
    begin = time.process_time()
    evaluation = operator.evaluate(view)
    searched = time.process_time()
    written = values = packed = total = 0

    def counted(records: Iterator[RecordColumns]) -> Iterator[RecordColumns]:
        nonlocal values, written
        for part in records:
            if written >= _MOST_RECORDS:
                return
            written += len(part)
            values += int(joined_offsets(part.pieces, part.value)[-1])
            yield part

    for result in evaluation.results:
        total += len(result.ready_us())
        records = counted(columns_of(result, 0, orjson.dumps))
        packed += sum(len(blob) for blob in pack_result("t", result.heading(0), records))
    share = total / written
    seconds = (searched - begin) + (time.process_time() - searched) * share
    return Cost(evaluation.alarms, seconds, values * share, packed * share)


def run() -> list[Report]:
    """Measure all workloads."""
    rng = np.random.default_rng(2010)
    first = make_view(WORKLOADS[0], rng)
    for output in ("pairs", "factored"):
        measure(first, WORKLOADS[0].window, output)  # compiles
    rows = []
    for workload in WORKLOADS:
        view = make_view(workload, rng)
        factored = measure(view, workload.window, "factored")
        by_pair = measure(view, workload.window, "pairs") if workload.by_pair else None
        rows.append(
            [
                f"±{workload.window:g} s, blocks of {workload.block:g} s",
                f"{factored.pairs / 1e6:,.1f}",
                *(by_pair.cells() if by_pair else ["", "", ""]),
                *factored.cells(),
            ]
        )
    return [
        Report(
            "Factored output",
            "`output: pairs` and `output: factored` over the same blocks: 1,600 events a second "
            "and stream, one key, lengths of 20 to 200 ms, ct 0.7. One core; search, JSON and "
            "packing together. Bytes are those of the records' values, and of the blobs in which "
            "Spark carries them (packed). For `pairs` the first million pairs are written, and "
            "the others are assumed to cost the same; cells are empty where the pairs are too "
            "many for that. Before alarms were written as columns, pairs were written at 0.19, "
            "0.17 and 0.15 M pairs/s, with 48 to 52 bytes packed.",
            (
                "window",
                "M pairs",
                "pairs: M pairs/s",
                "bytes a pair",
                "packed",
                "factored: M pairs/s",
                "bytes a pair",
                "packed",
            ),
            rows,
        )
    ]


if __name__ == "__main__":
    for found in run():
        found.show()
