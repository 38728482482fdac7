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
_GRIDS = {
    GRID: Partitioning("grid", 2),
    CELLS: Partitioning("grid", 3),
    OTHER_CELLS: Partitioning("grid", 3),
}
_SPACING_US, _DENSE_US = 1_000, 10
_BURST, _DENSE_BURST, _SPARE_BURST = 24, 300, 60
_BURST_SECONDS = 0.25
_SETS_PER_BURST, _CELLS_PER_BURST = 6, 16


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
    """

    def __init__(self, bootstrap: str, prefix: str, seed: int) -> None:
        super().__init__(name="load", daemon=True)
        self._sender = EventSender(bootstrap, prefix, ("a", "b", SETS, GRID, CELLS, OTHER_CELLS))
        self.sent = self._sender.sent
        self._left: set[str] = set()
        self._words = random.Random(seed)  # noqa: S311 - a reproducible choice, no secret
        self._clock = Workload("ab", seed, 0, _SPACING_US, MAX_UNCERTAINTY_US)
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

    def _produce(self, name: str, events: Iterable[Occurrence]) -> None:
        for event in events:
            words = draw_words(self._words) if name in {SETS, GRID} else None
            self._sender.send(event, words)
