"""Events of a soak run, hour by hour; all that was sent is kept with its place."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from correlation.resources.streams import Stream
from correlation.resources.tokens import Tokens
from tests.crash.load import SETS
from tests.crash.sending import EventSender, draw_words
from tests.support.workload import Occurrence, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOUR_US = 3_600 * 1_000_000
BEGIN_US = 1_700_000_000 * 1_000_000
MAX_UNCERTAINTY_US, DELAY_US = 200_000, 2_000_000
# No pair has events of two hours: conditions change between them.
_GAP_US = 60 * 1_000_000
_LATE_HOURS = 2
_LATE_US = _LATE_HOURS * HOUR_US
_BAD_SHARE, _LATE_SHARE, _SETS_SHARE = 0.01, 0.005, 0.05
_KEYS = 10
# Values that are not events.
_BAD = (b'{"id": 1', b"[]", b'{"id": "x", "key": "k"}', b"\xff", b'{"id": "x", "earliest": "soon"}')


def make_stream(name: str, prefix: str) -> Stream:
    """Return a stream of the run by its name."""
    topic = f"{prefix}-{name}"
    if name == SETS:
        return Stream(name, topic, 0, DELAY_US, clock="replay", tokens=Tokens(("words",)))
    return Stream(name, topic, MAX_UNCERTAINTY_US, DELAY_US, clock="replay")


class HourlyLoad:
    """Sends the events of one hour after another, as fast as Kafka takes them.

    Parameters
    ----------
    bootstrap
        Address of the broker.
    prefix
        Prefix of the installation.
    seed
        Seed of the events.
    events
        Number of events of the streams "a" and "b" in an hour.

    Attributes
    ----------
    sent
        Events by stream, in the order in which Kafka took them.
    late
        Ids of the events that are later than the streams allow.
    bad
        Values that are not events.
    """

    def __init__(self, bootstrap: str, prefix: str, seed: int, events: int) -> None:
        self._sender = EventSender(bootstrap, prefix, ("a", "b", SETS))
        self.sent = self._sender.sent
        self.late: list[str] = []
        self.bad: list[bytes] = []
        self._seed, self._events = seed, events
        self._random = random.Random(seed)  # noqa: S311 - a reproducible choice, no secret

    def start(self) -> None:
        """Do nothing: `send_hour` sends."""

    def end(self) -> None:
        """Wait until Kafka has all events."""
        self._sender.flush()

    def count(self, name: str) -> int:
        """Return the number of events that were sent to a stream."""
        return self._sender.count(name)

    def send_hour(self, hour: int, at_half: Callable[[], None]) -> None:
        """Send the events of an hour, and call a function when half of them are sent."""
        for number, one in enumerate(self._take(hour)):
            if isinstance(one, Occurrence):
                self._send(one)
            else:
                self._send_bad(*one)
            if number == self._events // 2:
                at_half()
        self.end()

    def _take(self, hour: int) -> Iterator[Occurrence | tuple[str, bytes]]:
        """Yield the events of an hour in order of arrival, and values that are not events."""
        begin_us = BEGIN_US + hour * HOUR_US
        spacing_us = (HOUR_US - _GAP_US) // self._events
        clock = Workload(
            "ab",
            self._seed + hour,
            begin_us + _GAP_US,
            spacing_us,
            MAX_UNCERTAINTY_US,
            _KEYS,
        )
        for it in clock.take(self._events):
            name = f"{it.id}.{hour}"
            yield Occurrence(it.stream, name, it.key, it.earliest, it.latest)
            if self._random.random() < _SETS_SHARE:
                yield Occurrence(SETS, f"set.{name}", it.key, it.latest, it.latest)
            if self._random.random() < _LATE_SHARE and hour >= _LATE_HOURS:
                late = f"late.{name}"
                self.late.append(late)
                times = it.earliest - _LATE_US, it.latest - _LATE_US
                # Late events meet in some batches only: each has a key of its own.
                yield Occurrence(it.stream, late, late, *times)
            if self._random.random() < _BAD_SHARE:
                yield it.stream, self._random.choice(_BAD)

    def _send(self, event: Occurrence) -> None:
        self._sender.send(event, draw_words(self._random) if event.stream == SETS else None)

    def _send_bad(self, stream: str, value: bytes) -> None:
        self._sender.send_value(stream, b"k", value, lambda _: self.bad.append(value))
