"""Events that are sent while processes crash; all that was sent is kept with its place."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING

from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from correlation.resources.tokens import Tokens
from tests.crash.sending import EventSender, draw_words
from tests.support.workload import Occurrence, Workload

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_UNCERTAINTY_US, DELAY_US = 2_000, 20_000
SETS, GRID, SPARE = "sets", "grid", "spare"
# Streams without keys, whose pairs are found in the cells of a grid with three groups.
CELLS, OTHER_CELLS = "cells", "others"
# A keyed stream. Events come late in this stream, and in a grid, where several cells have a copy.
LATE = "late"
STREAMS = ("a", "b", SETS, GRID, CELLS, OTHER_CELLS, LATE)
_GRIDS = {
    GRID: Partitioning("grid", 2),
    CELLS: Partitioning("grid", 3),
    OTHER_CELLS: Partitioning("grid", 3),
}
_BEGIN_US = 10**12
_SPACING_US, _DENSE_US = 1_000, 10
_BURST, _DENSE_BURST, _SPARE_BURST = 24, 300, 60
_BURST_SECONDS = 0.25
_SETS_PER_BURST, _CELLS_PER_BURST, _LATE_PER_BURST = 6, 16, 2
# Late events are too far from all others, and from each other, for a pair.
_LATE_SPACING_US = 1_000_000


def make_stream(name: str, prefix: str) -> Stream:
    """Return a stream of the installation by its name."""
    topic = f"{prefix}-{name}"
    by = _GRIDS.get(name, Partitioning())
    if name in {SETS, GRID}:
        tokens = Tokens(("words",))
        return Stream(name, topic, 0, DELAY_US, partitioning=by, clock="replay", tokens=tokens)
    return Stream(name, topic, MAX_UNCERTAINTY_US, DELAY_US, partitioning=by, clock="replay")


class Load(threading.Thread):
    """Sends bursts to all streams, until it is paused.

    Parameters
    ----------
    bootstrap
        Address of the broker.
    prefix
        Prefix of the installation.
    seed
        Seed of the events.

    Attributes
    ----------
    sent
        Events by stream, in the order in which Kafka took them.
    late
        Ids of the late ones among them.
    """

    def __init__(self, bootstrap: str, prefix: str, seed: int) -> None:
        super().__init__(name="load", daemon=True)
        self._sender = EventSender(bootstrap, prefix, STREAMS)
        self.sent = self._sender.sent
        self.late: set[str] = set()
        self._sends_late = False
        self._left: set[str] = set()
        self._words = random.Random(seed)  # noqa: S311 - a reproducible choice, no secret
        self._clock = Workload("ab", seed, _BEGIN_US, _SPACING_US, MAX_UNCERTAINTY_US)
        self._turn = threading.Lock()
        self._running, self._ended = threading.Event(), threading.Event()

    def run(self) -> None:
        """Send a burst a quarter of a second, unless paused, until `end` is called."""
        while not self._ended.wait(_BURST_SECONDS):
            if self._running.is_set():
                with self._turn:
                    self._burst(_BURST)

    def pause(self) -> None:
        """Send no further bursts, and wait until Kafka has all that were sent."""
        self._running.clear()
        with self._turn:
            self._sender.flush()

    def resume(self) -> None:
        """Send bursts again."""
        self._running.set()

    def end(self) -> None:
        """End the thread."""
        self._ended.set()
        if self.ident is not None:
            self.join()

    def send_densely(self) -> None:
        """Send events so close to each other that each has many partners."""
        with self._turn:
            self._clock.spacing_us = _DENSE_US
            self._burst(_DENSE_BURST)
            self._clock.spacing_us = _SPACING_US
            self._sender.flush()

    def add_stream(self, name: str) -> None:
        """Send events to a further stream, too."""
        with self._turn:
            self.sent[name] = []

    def leave_out(self, name: str) -> None:
        """Send no further events to a stream; those that were sent still count."""
        with self._turn:
            self._left.add(name)

    def begin_late(self) -> None:
        """Send late events, too: the watermarks of all slots have left the begin of the events."""
        self._sends_late = True

    def send_spare(self) -> None:
        """Send the events of the stream to which no others are sent."""
        self.sent[SPARE] = []
        with self._turn:
            self._produce(SPARE, self._named(SPARE, self._clock.take(_SPARE_BURST)))
            self._sender.flush()

    def count(self, name: str) -> int:
        """Return the number of events that were sent to a stream."""
        return self._sender.count(name)

    def _burst(self, count: int) -> None:
        events = self._clock.take(count)
        for name in "ab":
            self._produce(name, (it for it in events if it.stream == name))
        sets = self._sample(events, _SETS_PER_BURST)
        for name in self.sent.keys() - {"a", "b", SPARE, CELLS, OTHER_CELLS} - self._left:
            self._produce(name, self._named(name, sets))
        for name in (CELLS, OTHER_CELLS):
            self._produce(name, self._named(name, self._sample(events, _CELLS_PER_BURST)))
        if self._sends_late:
            for name in (CELLS, LATE):
                self._produce(name, self._made_late(self._named(name, sets[:_LATE_PER_BURST])))

    def _sample(self, events: Sequence[Occurrence], count: int) -> list[Occurrence]:
        some = self._words.sample(events, min(count, len(events)))
        return sorted(some, key=lambda it: it.latest)

    def _named(self, name: str, events: Iterable[Occurrence]) -> list[Occurrence]:
        """Return the events as events of another stream.

        Sets have an exact time, and events of a grid have no key.
        """
        exact = name in {SETS, GRID}
        return [
            Occurrence(
                name,
                f"{name}.{it.id}",
                "" if name in _GRIDS else it.key,
                it.latest if exact else it.earliest,
                it.latest,
            )
            for it in events
        ]

    def _made_late(self, events: Iterable[Occurrence]) -> Iterable[Occurrence]:
        """Return the events as events that are later than their stream allows."""
        for it in events:
            name = f"late.{it.id}"
            self.late.add(name)
            time = _BEGIN_US - len(self.late) * _LATE_SPACING_US
            yield Occurrence(it.stream, name, it.key, time, time)

    def _produce(self, name: str, events: Iterable[Occurrence]) -> None:
        for event in events:
            words = draw_words(self._words) if name in {SETS, GRID} else None
            self._sender.send(event, words)
