"""The probabilistic timing join of a registered condition; all ways find the same pairs.

`Program` processes events in blocks of a quarter of a second, as in the job and in a replay:

- *simple* computes the probability of every pair;
- *ssort* decides the pairs that any two shapes can reach, one by one;
- *one by one* is lazy without declared shapes: supports decide part of the pairs (PTJ Equations 4
  to 6), quantiles and probabilities decide the others;
- *lazy*, *indexed*, *auto* have the s-windows of all pairs of templates (Theorems 2 and 3).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.ptj.workload import DELAY_US, MAX_UNCERTAINTY_US, MIN_UNCERTAINTY_US
from correlation.buffers.columns import DictionaryColumn
from correlation.buffers.events import Events
from correlation.engine.program import Block, Control, Program
from correlation.engine.progress import Progress
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from correlation.resources.template import Template
from correlation.timing.alarms import PairBatch
from correlation.timing.histograms.reach import stream_reach
from correlation.timing.histograms.windows import WindowBook, share_book

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from benchmarks.ptj.workload import Stream as Drawn
    from correlation.buffers.columns import BytesColumn
    from correlation.resources.histogram import Histogram
    from correlation.timing.intervals.window import TimingWindow

ONE_BY_ONE = "one by one"
WAYS = ("simple", "ssort", ONE_BY_ONE, "lazy", "indexed", "auto")
_BLOCK_US = 250_000
_NAMES = ("a", "b")
# Larger than the work for all s-windows.
_UNTIL_KNOWN = 2**62


class Found(NamedTuple):
    """Result of a join.

    Attributes
    ----------
    pairs : ndarray of int64, shape (k,)
        Satisfied pairs as sorted numbers: base index times number of targets, plus target index.
    looked_at : int
        Number of pairs that supports do not decide as violated.
    missed : int
        Number of pairs decided by quantiles or by a probability because an s-window is missing.
    seconds : float
        Processor time of all blocks.
    """

    pairs: NDArray[np.int64]
    looked_at: int
    missed: int
    seconds: float


class Join:
    """A condition between two streams of templates.

    Parameters
    ----------
    way : str
        One of `WAYS`.
    templates : (list of Histogram, list of Histogram)
        Templates of both streams.
    window : TimingWindow
        The condition, a mutual deadline.
    """

    def __init__(
        self,
        way: str,
        templates: tuple[Sequence[Histogram], Sequence[Histogram]],
        window: TimingWindow,
    ) -> None:
        self._way = way
        self._templates = templates
        self._window = window
        self._streams = {
            name: Stream(
                *(name, name, MAX_UNCERTAINTY_US, DELAY_US, MIN_UNCERTAINTY_US),
                clock="replay",
                histograms=way == ONE_BY_ONE,
                templates=()
                if way == ONE_BY_ONE
                else tuple(Template(f"t{k}", it) for k, it in enumerate(mine)),
            )
            for name, mine in zip(_NAMES, templates, strict=True)
        }

    @property
    def book(self) -> WindowBook:
        """The s-windows of the condition, shared with its operator."""
        return share_book(self._window, *self._streams.values())

    @property
    def kept_us(self) -> int:
        """Stream time for which an event is kept, the mean of both streams."""
        min_s, max_s = stream_reach(self._window, *self._streams.values())
        return DELAY_US + (max_s - min_s) // 2

    def learn(self) -> float:
        """Compute the s-windows of all templates; return the processor time."""
        book = self.book
        begin = time.process_time()
        book.table.settle(_UNTIL_KNOWN)
        return time.process_time() - begin

    def run(self, drawn: tuple[Drawn, Drawn]) -> Found:
        """Find the satisfied pairs of two streams."""
        blocks = list(self._cut(drawn))
        program = Program(self._streams, dict.fromkeys(_NAMES, 1))
        book = self.book
        missed = book.missed
        found: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
        seconds, outcome = 0.0, program.advance(Block([self._control()]), _no_clock)
        state = outcome.metrics["conditions"]["c"]
        if state["state"] != "running":
            raise ValueError(f"the condition is {state['state']}: {state['detail']}")
        for block in blocks:
            begin = time.process_time()
            outcome = program.advance(block, _no_clock)
            seconds += time.process_time() - begin
            for pairs in outcome.results:
                if isinstance(pairs, PairBatch):
                    base = _numbers(pairs.a.id)[pairs.a_rows]
                    found.append(base * len(drawn[1].latest) + _numbers(pairs.b.id)[pairs.b_rows])
        counters = {
            (name, labels.get("decided_by")): value
            for name, labels, value in outcome.metrics["counters"]
        }
        certain = counters.get(("pairs_total", "satisfaction_region"), 0)
        probed = counters.get(("probe_region_events_total", None), 0)
        return Found(
            np.sort(np.concatenate(found)),
            int(certain + probed),
            int(probed) if self._way in {"simple", "ssort"} else book.missed - missed,
            seconds,
        )

    def _control(self) -> Control:
        algorithm = "lazy" if self._way == ONE_BY_ONE else self._way
        document = {
            "kind": "mutual_deadline",
            **dict(zip(_NAMES, _NAMES, strict=True)),
            "window_us": self._window.upper_us,
            "threshold": str(float(self._window.threshold)),
            "algorithm": algorithm,
        }
        resource = Resource("condition", "c", 1, 0, document)
        return Control(0, resource.key, resource.to_record())

    def _cut(self, drawn: tuple[Drawn, Drawn]) -> Iterator[Block]:
        """Yield blocks of both streams, with each event at its detection time."""
        end = max(int(it.latest.max(initial=0)) for it in drawn) + 1
        shapes = [[it.shape_bytes for it in mine] for mine in self._templates]
        for begin in range(0, end, _BLOCK_US):
            parts, progress = [], []
            for name, it, mine in zip(_NAMES, drawn, shapes, strict=True):
                first, last = np.searchsorted(it.latest, (begin, begin + _BLOCK_US)).tolist()
                if first == last:
                    continue
                columns = it.latest[first:last].tolist(), it.shape[first:last].tolist()
                template = self._templates[_NAMES.index(name)]
                rows = [
                    (b"k", k.to_bytes(8, "little"), t - template[shape].length_us, t, 0, k, t)
                    for k, (t, shape) in enumerate(zip(*columns, strict=True), first)
                ]
                column = DictionaryColumn.from_list([mine[shape] for shape in columns[1]])
                parts.append(replace(Events.from_rows(name, rows), shape=column))
                progress.append(Progress(name, 0, last, columns[0][-1]))
            yield Block((), parts, progress)


def _numbers(ids: BytesColumn) -> NDArray[np.int64]:
    return np.frombuffer(ids.data.tobytes(), "<i8")[ids.offsets[:-1] // 8]


def _no_clock() -> int:
    return 0
