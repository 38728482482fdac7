"""The embedded broker is a real Kafka: transactions, compaction, offsets by time, restarts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from cli.errors import BrokerError
from cli.stack.broker import EmbeddedBroker, answers
from cli.stack.jars import default_folder, home_of
from tests.support.kafka import Sent, TopicReader, create_topics, produce, read_committed
from tests.support.patience import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.kafka


def test_read_committed_sees_a_transaction_only_when_it_is_committed(
    kafka_bootstrap: str, topic_prefix: str
) -> None:
    create_topics(kafka_bootstrap, {topic_prefix: 2})
    producer = Producer({"bootstrap.servers": kafka_bootstrap, "transactional.id": topic_prefix})
    producer.init_transactions(PATIENCE_SECONDS)
    for value, commit in ((b"kept", True), (b"dropped", False), (b"kept too", True)):
        producer.begin_transaction()
        producer.produce(topic_prefix, value=value, partition=0)
        producer.produce(topic_prefix, value=value, partition=1)
        producer.flush(PATIENCE_SECONDS)
        if commit:
            producer.commit_transaction(PATIENCE_SECONDS)
        else:
            producer.abort_transaction(PATIENCE_SECONDS)
    read = read_committed(kafka_bootstrap, topic_prefix)
    assert sorted((record.partition, record.value) for record in read) == [
        (0, b"kept"),
        (0, b"kept too"),
        (1, b"kept"),
        (1, b"kept too"),
    ]


def test_second_producer_fences_the_first_when_it_has_the_same_transactional_id(
    kafka_bootstrap: str, topic_prefix: str
) -> None:
    create_topics(kafka_bootstrap, {topic_prefix: 1})
    settings = {"bootstrap.servers": kafka_bootstrap, "transactional.id": topic_prefix}
    first, second = Producer(settings), Producer(settings)
    first.init_transactions(PATIENCE_SECONDS)
    first.begin_transaction()
    first.produce(topic_prefix, value=b"first")
    first.flush(PATIENCE_SECONDS)
    second.init_transactions(PATIENCE_SECONDS)
    with pytest.raises(KafkaException, match=r"(?i)fenced|epoch"):
        first.commit_transaction(PATIENCE_SECONDS)
    second.begin_transaction()
    second.produce(topic_prefix, value=b"second")
    second.commit_transaction(PATIENCE_SECONDS)
    assert [record.value for record in read_committed(kafka_bootstrap, topic_prefix)] == [b"second"]


def test_offsets_for_times_finds_the_first_record_from_a_time_on(
    kafka_bootstrap: str, topic_prefix: str
) -> None:
    create_topics(kafka_bootstrap, {topic_prefix: 1})
    times = [1_700_000_000_000, 1_700_000_001_000, 1_700_000_002_000]
    produce(kafka_bootstrap, topic_prefix, [Sent(b"x", timestamp_ms=at) for at in times])
    consumer = Consumer({"bootstrap.servers": kafka_bootstrap, "group.id": topic_prefix})
    asked = [TopicPartition(topic_prefix, 0, times[0] + 1)]
    found = consumer.offsets_for_times(asked, timeout=PATIENCE_SECONDS)
    consumer.close()
    assert found[0].offset == 1


def test_topic_keeps_its_compaction_setting(kafka_bootstrap: str, topic_prefix: str) -> None:
    create_topics(kafka_bootstrap, {topic_prefix: 1}, {"cleanup.policy": "compact"})
    resource = ConfigResource(ResourceType.TOPIC, topic_prefix)
    client = AdminClient({"bootstrap.servers": kafka_bootstrap})
    described = client.describe_configs([resource])
    config = described[resource].result(PATIENCE_SECONDS)
    assert config["cleanup.policy"].value == "compact"


def test_compaction_leaves_the_last_value_of_a_key(own_broker: EmbeddedBroker) -> None:
    # A segment is closed, and so open to the cleaner, as soon as it is older than this.
    eager = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "100",
    }
    create_topics(own_broker.bootstrap, {"config": 1}, eager)
    values = [b"old", b"older", b"new"]
    produce(own_broker.bootstrap, "config", [Sent(value, key=b"key") for value in values])

    def compacted() -> bool:
        # A further record closes the segment before it.
        produce(own_broker.bootstrap, "config", [Sent(b"other", key=b"other")])
        read = read_committed(own_broker.bootstrap, "config")
        return [record.value for record in read if record.key == b"key"] == [b"new"]

    wait_until(compacted)


def test_unknown_topic_is_not_created_by_writing_to_it(
    own_broker: EmbeddedBroker, topic_prefix: str
) -> None:
    producer = Producer({"bootstrap.servers": own_broker.bootstrap, "message.timeout.ms": 2000})
    errors = []
    producer.produce(topic_prefix, value=b"x", on_delivery=lambda error, _: errors.append(error))
    producer.flush(PATIENCE_SECONDS)
    assert errors[0] is not None
    topics = (
        AdminClient({"bootstrap.servers": own_broker.bootstrap})
        .list_topics(timeout=PATIENCE_SECONDS)
        .topics
    )
    assert topic_prefix not in topics


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_broker_keeps_its_records_when_it_starts_again(
    own_broker: EmbeddedBroker, end: str
) -> None:
    create_topics(own_broker.bootstrap, {"kept": 1})
    produce(own_broker.bootstrap, "kept", [Sent(b"before")])
    address = own_broker.bootstrap
    getattr(own_broker, end)()
    assert not answers(address)
    own_broker.start()
    assert own_broker.bootstrap == address
    produce(address, "kept", [Sent(b"after")])
    read = read_committed(address, "kept")
    assert [record.value for record in read] == [b"before", b"after"]


def test_committed_transactions_are_kept_when_the_broker_is_killed(
    own_broker: EmbeddedBroker,
) -> None:
    """Kafka answers that a transaction is committed before it is so in its partitions."""
    partitions = 30
    create_topics(own_broker.bootstrap, {"kept": partitions})
    for number in range(2):
        producer = Producer(
            {"bootstrap.servers": own_broker.bootstrap, "transactional.id": f"writer-{number}"}
        )
        producer.init_transactions(PATIENCE_SECONDS)
        producer.begin_transaction()
        for partition in range(partitions):
            producer.produce("kept", str(number).encode(), partition=partition)
        producer.flush(PATIENCE_SECONDS)
        producer.commit_transaction(PATIENCE_SECONDS)
        own_broker.kill()
        own_broker.start()
    reader = TopicReader(own_broker.bootstrap, "kept")
    found = reader.read(lambda records: len(records) >= 2 * partitions)
    assert Counter(it.value for it in found) == {b"0": partitions, b"1": partitions}


def test_broker_starts_again_that_was_killed_before_it_registered(
    own_broker: EmbeddedBroker,
) -> None:
    create_topics(own_broker.bootstrap, {"kept": 1})
    # It ends its session, and its data become those of a broker that did not stop.
    own_broker.stop()
    (own_broker.data / "kafka/.kafka_cleanshutdown").unlink()
    own_broker.start()
    produce(own_broker.bootstrap, "kept", [Sent(b"after")])
    assert [it.value for it in read_committed(own_broker.bootstrap, "kept")] == [b"after"]


def test_broker_says_so_when_its_port_is_taken(own_broker: EmbeddedBroker) -> None:
    with pytest.raises(BrokerError, match=f"port {own_broker.port} .* is in use"):
        EmbeddedBroker(port=own_broker.port).start()


def test_broker_shows_the_end_of_its_log_when_it_cannot_run(tmp_path: Path) -> None:
    data = tmp_path / "broker"
    (data / "kafka").mkdir(parents=True)
    # Another node's data: the broker refuses it.
    (data / "kafka" / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=other\n")
    broker = EmbeddedBroker(data=data)
    with pytest.raises(BrokerError, match=r"(?s)ended with exit code 1; last lines of .*node id 7"):
        broker.start()


def test_broker_ends_when_the_process_that_started_it_dies(tmp_path: Path) -> None:
    script = (
        "import pathlib, signal, sys\n"
        "from cli.stack.broker import EmbeddedBroker\n"
        f"broker = EmbeddedBroker(data=pathlib.Path({str(tmp_path)!r}))\n"
        "broker.start()\n"
        "print(broker.bootstrap, broker.process.pid, flush=True)\n"
        "signal.pause()\n"
    )
    # The script above, run as a user's own program would run the broker.
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        bootstrap, pid = parent.stdout.readline().split()
        wait_until(lambda: answers(bootstrap))
        os.kill(parent.pid, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


def test_classes_are_stored_at_the_end_and_loaded_by_the_next_start(tmp_path: Path) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    for found in home_of(default_folder(), "broker").iterdir():
        if found.suffix != ".jsa":
            (jars / found.name).symlink_to(found)
    broker = EmbeddedBroker(data=tmp_path / "data", jars=jars)
    maps = []
    for _ in range(2):
        broker.start()
        assert broker.process is not None
        maps.append(Path(f"/proc/{broker.process.pid}/maps").read_text())
        broker.stop()
        (stored,) = jars.glob("broker-*.jsa")
    assert [str(stored) in it for it in maps] == [False, True]
