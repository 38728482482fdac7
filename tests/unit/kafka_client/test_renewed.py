"""A client that has lost its brokers is replaced, and its successor goes on where it was."""

from __future__ import annotations

import json
import weakref
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_INVALID,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from kafka_client import clients, renewed
from kafka_client.clients import UserAdmin, UserConsumer
from kafka_client.renewed import Renewed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kafka_client.renewed import Loss

CONFIGURED = {"h:1/bootstrap": {"source": "configured", "state": "DOWN"}}
COORDINATOR = {"GroupCoordinator": {"source": "logical", "state": "INIT"}}
NO_ANSWER = KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - librdkafka's own codes carry the underscore
LOCAL = KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))  # noqa: SLF001 - as above
REFUSED = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))


class Client(NamedTuple):
    """A client that reports its loss."""

    loss: Loss


class Offset(NamedTuple):
    """An answer to a request for an offset."""

    offset: int


class FakeConsumer:
    """A consumer whose positions and reports a test sets."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        self.report: Callable[[str], None] = properties["stats_cb"]
        self.assigned: dict[str, int] = {}
        self.read: dict[str, int] = {}
        self.error: KafkaException | None = None
        self.is_closed = False

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned, self.read = {it.topic: it.offset for it in partitions}, {}

    def unassign(self) -> None:
        self.assigned, self.read = {}, {}

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        if self.is_closed:
            raise RuntimeError("Consumer closed")
        reached = self.read
        return [
            TopicPartition(it.topic, it.partition, reached.get(it.topic, OFFSET_INVALID))
            for it in partitions
        ]

    def poll(self, _: float) -> None:
        pass

    def list_topics(self, _topic: str | None, _timeout: float) -> None:
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        self.is_closed = True


class FakeAdmin:
    """An admin client whose answers a test gives."""

    def __init__(self, _: Mapping[str, Any]) -> None:
        self.answers: list[Future[Any]] = []

    def create_topics(self, _: object) -> dict[str, Future[Any]]:
        self.answers.append(Future())
        return {"topic": self.answers[-1]}


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients be replaced as soon as they report a loss."""
    monkeypatch.setattr(renewed, "_RENEWAL_SECONDS", 0.0)


@pytest.fixture
def consumers(monkeypatch: pytest.MonkeyPatch, at_once: None) -> list[FakeConsumer]:  # noqa: ARG001 - for its effect
    """Return the consumers that are opened."""
    return noting(monkeypatch, "Consumer", FakeConsumer)


def noting(
    monkeypatch: pytest.MonkeyPatch, name: str, make: Callable[[Mapping[str, Any]], Any]
) -> list[Any]:
    """Let `kafka_client.clients` open clients of another class; return the list of them."""
    opened: list[Any] = []

    def opening(properties: Mapping[str, Any]) -> object:
        opened.append(make(properties))
        return opened[-1]

    monkeypatch.setattr(clients, name, opening)
    return opened


def lose(report: Callable[[str], None]) -> None:
    """Report twice that a client knows no broker."""
    for _ in range(2):
        report(statistics(COORDINATOR))


def statistics(brokers: Mapping[str, Mapping[str, str]]) -> str:
    return json.dumps({"name": "client", "brokers": brokers})


def test_a_client_that_knows_no_broker_is_replaced(at_once: None) -> None:  # noqa: ARG001 - for its effect
    client = Renewed(Client)
    first = client.get()
    lose(first.loss.take_statistics)
    second = client.get()
    assert second is not first
    lose(first.loss.take_statistics)
    assert client.get() is second
    lose(second.loss.take_statistics)
    assert client.get() not in (first, second)


@pytest.mark.parametrize(
    "reports",
    [
        pytest.param([CONFIGURED] * 9, id="the broker is down"),
        pytest.param([{**CONFIGURED, **COORDINATOR}] * 9, id="a coordinator is known, too"),
        pytest.param([{}, CONFIGURED] * 9, id="each loss ends"),
        pytest.param([COORDINATOR], id="once"),
    ],
)
def test_a_client_that_knows_a_broker_is_kept(
    reports: list[dict[str, dict[str, str]]],
    at_once: None,  # noqa: ARG001 - for its effect
) -> None:
    client = Renewed(Client)
    first = client.get()
    for brokers in reports:
        first.loss.take_statistics(statistics(brokers))
    assert client.get() is first


def test_an_answer_after_the_last_error_keeps_the_client(at_once: None) -> None:  # noqa: ARG001 - for its effect
    client = Renewed(Client)
    first = client.get()
    first.loss.take_error(NO_ANSWER)
    first.loss.take_answer()
    assert client.get() is first
    first.loss.take_error(NO_ANSWER)
    first.loss.take_error(REFUSED)
    assert client.get() is first
    first.loss.take_error(NO_ANSWER)
    # An error of the client itself does not prove an answer.
    first.loss.take_error(LOCAL)
    assert client.get() is not first


def test_pauses_between_clients_grow_while_none_gets_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("kafka_client.renewed.time.monotonic", lambda: now[0])
    client = Renewed(Client)

    def pause() -> float:
        """Return the time after which a client that gets no answer is replaced."""
        present, begin = client.get(), now[0]
        present.loss.take_error(NO_ANSWER)
        while client.get() is present:
            now[0] += 1
        return now[0] - begin

    assert [pause() for _ in range(6)] == [5, 10, 20, 40, 60, 60]
    client.get().loss.take_answer()
    assert [pause() for _ in range(3)] == [60, 5, 10]
    client.get().loss.take_statistics(statistics(CONFIGURED))
    assert pause() == 20
    connected = {"h:1/1": {"source": "learned", "state": "UP"}}
    client.get().loss.take_statistics(statistics(connected))
    assert [pause() for _ in range(2)] == [40, 5]


def test_a_client_is_kept_if_no_other_can_be_opened(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [100.0]
    monkeypatch.setattr("kafka_client.renewed.time.monotonic", lambda: now[0])
    failures: list[KafkaException] = []

    def open_client(loss: Loss) -> Client:
        if failures:
            raise failures.pop()
        return Client(loss)

    client = Renewed(open_client)
    first = client.get()
    first.loss.take_error(NO_ANSWER)
    failures.append(REFUSED)
    now[0] += 60
    assert client.get() is first
    assert "was not opened again" in caplog.text
    now[0] += 60
    assert client.get() is not first


def test_the_next_consumer_reads_on(consumers: list[FakeConsumer]) -> None:
    consumer = UserConsumer({})
    consumer.assign([TopicPartition("read", 0, 3), TopicPartition("unread", 0, OFFSET_BEGINNING)])
    first = consumers[0]
    first.read["read"] = 5
    lose(first.report)
    consumer.poll(0)
    _, second = consumers
    assert first.is_closed
    assert second.assigned == {"read": 5, "unread": OFFSET_BEGINNING}
    # Nothing has been read since: the third consumer begins where the second one did.
    lose(second.report)
    places = [TopicPartition("read", 0), TopicPartition("unread", 0)]
    assert [it.offset for it in consumer.position(places)] == [5, OFFSET_BEGINNING]
    assert consumers[2].assigned == second.assigned
    consumer.close()
    assert [it.is_closed for it in consumers] == [True, True, True]


def test_the_next_consumer_reads_nothing_that_was_unassigned(
    consumers: list[FakeConsumer],
) -> None:
    consumer = UserConsumer({})
    consumer.assign([TopicPartition("left", 0, 3)])
    consumer.unassign()
    lose(consumers[0].report)
    consumer.poll(0)
    assert consumers[1].assigned == {}


def test_a_consumer_whose_request_is_not_answered_is_replaced(
    consumers: list[FakeConsumer],
) -> None:
    consumer = UserConsumer({})
    consumer.list_topics()
    consumers[0].error = REFUSED
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        consumer.list_topics()
    consumers[0].error = NO_ANSWER
    with pytest.raises(KafkaException, match="_TIMED_OUT"):
        consumer.list_topics()
    consumer.list_topics()
    assert [it.is_closed for it in consumers] == [True, False]


@pytest.mark.parametrize("answer", [NO_ANSWER, Offset(-1001)])
def test_an_admin_client_without_an_answer_is_replaced(
    answer: KafkaException | Offset,
    monkeypatch: pytest.MonkeyPatch,
    at_once: None,  # noqa: ARG001 - for its effect
) -> None:
    admins = noting(monkeypatch, "AdminClient", FakeAdmin)
    admin = UserAdmin({})
    admin.create_topics([])
    admins[0].answers[0].set_exception(REFUSED)
    admin.create_topics([])
    if isinstance(answer, Offset):
        admins[0].answers[1].set_result(answer)
    else:
        admins[0].answers[1].set_exception(answer)
    admin.create_topics([])
    admins[1].answers[0].set_result(Offset(0))
    admin.create_topics([])
    assert [len(it.answers) for it in admins] == [2, 2]


def test_a_former_admin_client_exists_until_its_answers_have_arrived(
    monkeypatch: pytest.MonkeyPatch,
    at_once: None,  # noqa: ARG001 - for its effect
) -> None:
    admins = noting(monkeypatch, "AdminClient", FakeAdmin)
    admin = UserAdmin({})
    admin.create_topics([])
    admin.create_topics([])
    waiting, lost = admins[0].answers
    lost.set_exception(NO_ANSWER)
    admin.create_topics([])
    first = weakref.ref(admins[0])
    admins.clear()
    assert first() is not None
    waiting.set_result(None)
    admin.create_topics([])
    assert first() is None
