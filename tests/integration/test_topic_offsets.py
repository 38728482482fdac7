"""Topics, partitions and offsets of a broker."""

from __future__ import annotations

from contextlib import closing

import pytest
from confluent_kafka import Producer

from kafka_client.topic_offsets import FoundTopic, KafkaOffsets
from tests.support.kafka import Sent, create_topics, produce, recreate_topic, topic_id

pytestmark = pytest.mark.kafka


@pytest.fixture
def topic(kafka_bootstrap: str, topic_prefix: str) -> str:
    create_topics(kafka_bootstrap, {topic_prefix: 1})
    return topic_prefix


def test_topic_that_is_created_again_has_another_id(kafka_bootstrap: str, topic: str) -> None:
    with closing(KafkaOffsets({"bootstrap.servers": kafka_bootstrap}, topic)) as offsets:
        first = FoundTopic(1, topic_id(kafka_bootstrap, topic))
        assert offsets.describe([topic, f"{topic}.none"]) == {topic: first}
        assert offsets.describe([]) == {}
        recreate_topic(kafka_bootstrap, topic, 3)
        second = offsets.describe([topic])[topic]
        assert second.partitions == 3
        assert second.id != first.id


def test_last_record_is_found_before_marks_and_aborted_records(
    kafka_bootstrap: str, topic: str
) -> None:
    offsets = KafkaOffsets({"bootstrap.servers": kafka_bootstrap}, topic)
    place = (topic, 0)

    def last() -> tuple[int, int]:
        ends, begins = offsets.ends([place]), offsets.begins([place])
        return ends[place], offsets.after_last_records(ends, begins)[place]

    try:
        assert offsets.partitions()[topic] == 1
        assert last() == (0, 0)
        produce(kafka_bootstrap, topic, [Sent(b"1"), Sent(b"2")])
        assert last() == (2, 2)
        producer = Producer({"bootstrap.servers": kafka_bootstrap, "transactional.id": topic})
        producer.init_transactions(30)
        for commit in (True, *[False] * 20):
            producer.begin_transaction()
            producer.produce(topic, b"3")
            producer.flush(30)
            if commit:
                producer.commit_transaction(30)
            else:
                producer.abort_transaction(30)
        # The record at offset 2 and its mark, then 20 aborted ones and theirs, the last perhaps
        # not written yet.
        end, after_last = last()
        assert end in {43, 44}
        assert after_last == 3
        assert set(offsets.ends([place, (f"{topic}.gone", 0)])) == {place}
    finally:
        offsets.close()
