"""Clients recover after a broker has reported that no broker is alive: `kafka_client.renewed`."""

from __future__ import annotations

from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException, Producer, TopicCollection, TopicPartition

from cli.stack.broker import HOST, EmbeddedBroker, free_port
from kafka_client.clients import UserAdmin
from kafka_client.consumers import is_record, open_consumer
from kafka_client.renewed import Renewed
from tests.support.hidden_brokers import HidingProxy
from tests.support.kafka import Sent, create_topics, produce
from tests.support.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka_client.clients import UserConsumer
    from kafka_client.renewed import Loss
    from kafka_client.settings import Properties

pytestmark = pytest.mark.kafka
TOPIC = "events"
# Without a successor, usually one or more of these do not recover.
CLIENTS = 20
ASK_SECONDS = 1
ATTEMPTS = 5


@pytest.fixture
def proxy() -> Iterator[HidingProxy]:
    """Return the proxy of a broker with a topic; the broker is known by the proxy's address."""
    port = free_port()
    with HidingProxy(port) as found:
        advertised = {"advertised.listeners": f"PLAINTEXT://{address_of(found)}"}
        with EmbeddedBroker(port=port, properties=advertised):
            create_topics(address_of(found), {TOPIC: 1})
            yield found


def test_consumers_find_a_broker_again_that_was_hidden(proxy: HidingProxy) -> None:
    with ExitStack() as opened:
        consumers = []
        for _ in range(CLIENTS):
            consumer = open_consumer(properties(proxy), "hidden", fetch_wait_max_ms=100)
            consumers.append(opened.enter_context(closing(consumer)))
            consumer.assign([TopicPartition(TOPIC, 0, 0)])
        sent = produce(address_of(proxy), TOPIC, [Sent(b"before")] * 3)
        read = [offsets(consumer, 3) for consumer in consumers]
        hide(proxy, [partial(it.list_topics, TOPIC, ASK_SECONDS) for it in consumers])
        sent += produce(address_of(proxy), TOPIC, [Sent(b"after")] * 3)
        read = [found + offsets(it, 3) for found, it in zip(read, consumers, strict=True)]
        # Each record is read once.
        assert read == [[offset for _, offset in sent]] * CLIENTS


def test_producers_find_a_broker_again_that_was_hidden(proxy: HidingProxy) -> None:
    def open_producer(loss: Loss) -> Producer:
        return Producer({**properties(proxy), **loss.properties()})

    producers = [Renewed(open_producer) for _ in range(CLIENTS)]
    for producer in producers:
        wait_until(partial(is_sent, producer))
    hide(proxy, [partial(it.get().list_topics, TOPIC, ASK_SECONDS) for it in producers])
    for producer in producers:
        wait_until(partial(is_sent, producer))


def test_admin_clients_find_a_broker_again_that_was_hidden(proxy: HidingProxy) -> None:
    admins = [UserAdmin(properties(proxy)) for _ in range(CLIENTS)]
    for admin in admins:
        wait_until(partial(is_described, admin))
    hide(proxy, [partial(is_described, it) for it in admins])
    for admin in admins:
        wait_until(partial(is_described, admin))


def hide(proxy: HidingProxy, requests: list[Callable[[], object]]) -> None:
    """Hide the broker while clients ask for metadata."""
    proxy.hides = True
    for request in requests:
        before = proxy.hidden
        # A client that has lost its brokers asks no more.
        for _ in range(ATTEMPTS):
            with suppress(KafkaException):
                request()
            if proxy.hidden > before:
                break
    assert proxy.hidden > 0
    proxy.hides = False


def is_sent(producer: Renewed[Producer]) -> bool:
    """Send a record; return whether the broker has it."""
    answers: list[object] = []
    present = producer.get()
    present.produce(TOPIC, b"1", on_delivery=lambda error, _: answers.append(error))
    present.flush(ASK_SECONDS)
    return answers == [None]


def is_described(admin: UserAdmin) -> bool:
    """Ask for the description of the topic; return whether it was answered."""
    asked = admin.describe_topics(TopicCollection([TOPIC]), request_timeout=ASK_SECONDS)
    try:
        asked[TOPIC].result(ASK_SECONDS)
    except (KafkaException, TimeoutError):
        return False
    return True


def offsets(consumer: UserConsumer, count: int) -> list[int]:
    """Return the offsets of the next records."""
    found: list[int] = []

    def has_all() -> bool:
        messages = consumer.consume(count, ASK_SECONDS)
        found.extend(it.offset() or 0 for it in messages if is_record(it, None))
        return len(found) >= count

    wait_until(has_all)
    return found


def address_of(proxy: HidingProxy) -> str:
    return f"{HOST}:{proxy.port}"


def properties(proxy: HidingProxy) -> Properties:
    return {"bootstrap.servers": address_of(proxy), "log_level": 0}
