"""The driver reads the config topic, and finds out whether there are results."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from correlation.errors import UnknownRecordVersionError
from correlation.kinds import topics_of
from correlation.resources.streams import Stream
from kafka_client.topic_offsets import KafkaOffsets
from spark_jobs.driver.config_watch import ConfigWatch
from spark_jobs.main import topics_with_results
from tests.support.kafka import Sent, create_topics, produce, produce_in_transaction
from tests.support.messages import naming
from tests.support.patience import PATIENCE_SECONDS
from tests.support.workload import NearCondition, stream_resource

pytestmark = pytest.mark.kafka

A = Stream("a", "events-a", max_uncertainty_us=10, max_delay_us=5)


@pytest.fixture
def topic(kafka_bootstrap: str, topic_prefix: str) -> str:
    create_topics(kafka_bootstrap, {topic_prefix: 1})
    return topic_prefix


def test_empty_config_topic_is_read_at_once(kafka_bootstrap: str, topic: str) -> None:
    with ConfigWatch({"bootstrap.servers": kafka_bootstrap}, topic) as watch:
        watch.read_to_end()
        assert watch.streams == {}


def test_config_topic_gives_the_streams_that_are_left(kafka_bootstrap: str, topic: str) -> None:
    resource = stream_resource(A)
    gone = stream_resource(Stream("gone", "t", max_uncertainty_us=1, max_delay_us=1))
    condition = NearCondition("c", "a", "a", 1, "1").resource
    records = [Sent(json.dumps(one.to_record()).encode(), one.key) for one in (gone, condition)]
    produce(kafka_bootstrap, topic, [*records, Sent(None, gone.key)])
    bad = [Sent(b"{", b"stream/bad"), Sent(b'{"v":1}', None)]
    produce(kafka_bootstrap, topic, bad)
    with ConfigWatch({"bootstrap.servers": kafka_bootstrap}, topic) as watch:
        watch.read_to_end()
        assert watch.streams == {}
        produce(kafka_bootstrap, topic, [Sent(json.dumps(resource.to_record()).encode(), b"")])
        produce(
            kafka_bootstrap, topic, [Sent(json.dumps(resource.to_record()).encode(), resource.key)]
        )
        watch.read_to_end()
        assert watch.streams == {"a": A}


def test_record_of_a_newer_version_stops_the_job(kafka_bootstrap: str, topic: str) -> None:
    record = stream_resource(A).to_record() | {"v": 2}
    produce(kafka_bootstrap, topic, [Sent(json.dumps(record).encode(), b"stream/a")])
    with (
        ConfigWatch({"bootstrap.servers": kafka_bootstrap}, topic) as watch,
        pytest.raises(UnknownRecordVersionError, match=naming("offset 0", "stream/a")),
    ):
        watch.read_to_end()
    # Once another record of the key follows, it is the past.
    produce(kafka_bootstrap, topic, [Sent(None, b"stream/a")])
    with ConfigWatch({"bootstrap.servers": kafka_bootstrap}, topic) as watch:
        watch.read_to_end()
        assert watch.streams == {}
        produce(kafka_bootstrap, topic, [Sent(json.dumps(record).encode(), b"stream/a")])
        with pytest.raises(UnknownRecordVersionError):
            watch.read_to_end()


def test_newest_record_decides_also_where_it_cannot_be_read(
    kafka_bootstrap: str, topic: str
) -> None:
    stream, condition = stream_resource(A), NearCondition("c", "a", "a", 1, "1").resource
    with_output = replace(condition, document={**condition.document, "output_topic": "out"})
    records = [Sent(json.dumps(it.to_record()).encode(), it.key) for it in (stream, with_output)]
    bad = [Sent(b'{"v":1}', b"stream/a"), Sent(b"{", b"condition/c"), Sent(b"{}", b"\xff/x")]
    with ConfigWatch({"bootstrap.servers": kafka_bootstrap}, topic) as watch:
        for _ in range(2):
            produce(kafka_bootstrap, topic, records)
            watch.read_to_end()
            assert watch.streams == {"a": A}
            assert watch.output_topics == frozenset({"out"})
            assert not watch.unreadable
            produce(kafka_bootstrap, topic, bad)
            watch.read_to_end()
            assert not watch.streams
            assert not watch.output_topics
            assert [it.shown_key for it in watch.unreadable] == [
                "stream/a",
                "condition/c",
                "\\xff/x",
            ]
            produce(kafka_bootstrap, topic, [Sent(None, b"\xff/x")])
    # One that starts only now comes to the same.
    with ConfigWatch({"bootstrap.servers": kafka_bootstrap}, topic) as watch:
        watch.read_to_end()
        assert not watch.streams
        assert not watch.output_topics
        assert [it.shown_key for it in watch.unreadable] == ["stream/a", "condition/c"]


def test_records_of_aborted_transactions_are_no_results(
    kafka_bootstrap: str, topic_prefix: str
) -> None:
    topics = topics_of(topic_prefix)
    create_topics(kafka_bootstrap, {topics.alarms: 2, topics.channel_topic("topk"): 1})
    with closing(KafkaOffsets({"bootstrap.servers": kafka_bootstrap}, topic_prefix)) as offsets:
        sent = [Sent(b"{}", b"k", partition=1)]
        produce_in_transaction(kafka_bootstrap, topics.alarms, sent, aborted=True)
        assert topics_with_results(offsets, topics) == set()
        produce_in_transaction(kafka_bootstrap, topics.alarms, sent)
        assert topics_with_results(offsets, topics) == {topics.alarms}
        # None is left.
        everything = TopicPartition(topics.alarms, 1, -1)
        client = AdminClient({"bootstrap.servers": kafka_bootstrap})
        client.delete_records([everything])[everything].result(PATIENCE_SECONDS)
        assert topics_with_results(offsets, topics) == {topics.alarms}
