"""The client's calls that may never return."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from spark_jobs.sink.transactional_client import SilentCoordinatorError, send_offsets

OFFSETS = [TopicPartition("config", 0, 7)]


class StandIn:
    """Waits in the call until it is released, as a client does whose coordinator is gone."""

    def __init__(self, error: KafkaException | None = None) -> None:
        self.released = threading.Event()
        self.calls: list[tuple[Any, ...]] = []
        self._error = error

    def send_offsets_to_transaction(self, *arguments: object) -> None:
        self.calls.append(arguments)
        self.released.wait()
        if self._error is not None:
            raise self._error


def as_producer(client: StandIn) -> Producer:
    return cast("Producer", client)


def test_offsets_are_sent_with_their_group_and_timeout() -> None:
    client = StandIn()
    client.released.set()
    send_offsets(as_producer(client), OFFSETS, "group", 30)
    assert client.calls == [(OFFSETS, "group", 30)]


def test_call_that_never_returns_makes_the_producer_unusable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spark_jobs.sink.transactional_client._RETURN_SECONDS", 0.01)
    client = StandIn()
    with pytest.raises(SilentCoordinatorError, match=r"not committed in 0\.01 s"):
        send_offsets(as_producer(client), OFFSETS, "group", 0.01)
    client.released.set()


def test_error_of_the_client_is_raised() -> None:
    client = StandIn(KafkaException(KafkaError(KafkaError.PRODUCER_FENCED)))
    client.released.set()
    with pytest.raises(KafkaException) as raised:
        send_offsets(as_producer(client), OFFSETS, "group", 30)
    assert raised.value.args[0].code() == KafkaError.PRODUCER_FENCED


def test_timeout_of_the_client_is_one_of_its_coordinator() -> None:
    timed_out = KafkaError._TIMED_OUT  # noqa: SLF001 - the client's public name
    client = StandIn(KafkaException(KafkaError(timed_out)))
    client.released.set()
    with pytest.raises(SilentCoordinatorError, match="not committed in 30 s"):
        send_offsets(as_producer(client), OFFSETS, "group", 30)
