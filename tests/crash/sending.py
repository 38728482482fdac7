"""A producer that keeps the events that were sent, with their places."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaError, Message, Producer

from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

    from tests.support.workload import Occurrence

_WORDS = "pqrstuvw"
# Ties of similarities are common among so few words, and changes of the lists too.
_MAX_WORDS = 4
_POLL_SECONDS = 0.1


class SentEvent(NamedTuple):
    """An event and its place; an event of a list has words."""

    event: Occurrence
    words: tuple[str, ...] | None
    partition: int
    offset: int


def draw_words(chance: random.Random) -> tuple[str, ...]:
    """Draw the words of an event of a list."""
    return tuple(chance.sample(_WORDS, chance.randint(0, _MAX_WORDS)))


def value_of(event: Occurrence, words: tuple[str, ...] | None) -> bytes:
    """Return the value of an event's record."""
    if words is None:
        return event.value
    return json.dumps({**json.loads(event.value), "words": words}).encode()


class EventSender:
    """Sends events to the topics of their streams.

    A record is written once, even when the broker is killed: the producer is idempotent.

    Parameters
    ----------
    bootstrap
        Address of the broker.
    prefix
        Prefix of the installation, and of the topics.
    streams
        Names of the streams.

    Attributes
    ----------
    sent
        Events by stream, in the order in which Kafka took them.
    """

    def __init__(self, bootstrap: str, prefix: str, streams: Iterable[str]) -> None:
        self.sent: dict[str, list[SentEvent]] = {name: [] for name in streams}
        self._prefix = prefix
        self._failures: list[KafkaError] = []
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
        )

    def send(self, event: Occurrence, words: tuple[str, ...] | None = None) -> None:
        """Send an event, and its words if its stream has lists."""
        value = value_of(event, words)
        keep = partial(self._keep, event, words)
        self.send_value(event.stream, event.key.encode(), value, keep)

    def send_value(
        self, stream: str, key: bytes, value: bytes, taken: Callable[[Message], None]
    ) -> None:
        """Send a record, and call a function when Kafka has it."""

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._failures.append(error)
            else:
                taken(message)

        topic = f"{self._prefix}-{stream}"
        while True:
            try:
                self._producer.produce(topic, value, key, on_delivery=delivered)
                break
            except BufferError:
                self._producer.poll(_POLL_SECONDS)
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until Kafka has all records."""
        waiting = self._producer.flush(PATIENCE_SECONDS)
        assert not self._failures, self._failures[0]
        assert not waiting, f"{waiting} records were not acknowledged"

    def count(self, name: str) -> int:
        """Return the number of events that were sent to a stream."""
        return len(self.sent[name])

    def _keep(self, event: Occurrence, words: tuple[str, ...] | None, message: Message) -> None:
        place = message.partition() or 0, message.offset() or 0
        self.sent[event.stream].append(SentEvent(event, words, *place))
