"""The sink's transaction of merged results on a real Kafka: once per batch, wherever it ended."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from correlation.kinds import topics_of
from correlation.shares import MissingShareError
from spark_jobs.driver.stale_checkpoint import check_marks
from spark_jobs.errors import StaleCheckpointError
from spark_jobs.sink import batches
from spark_jobs.sink.batches import merge_target
from spark_jobs.sink.options import SinkOptions
from spark_jobs.sink.sink import KafkaWriter, Written
from spark_jobs.worker.shares import SlotShares
from tests.support.claims import claim
from tests.support.kafka import create_topics, read_committed
from tests.support.topk import GridSlots, Tagged, make_tag_block, topk_control

if TYPE_CHECKING:
    from pyspark.sql.datasource import WriterCommitMessage

    from spark_jobs.settings import Properties

pytestmark = pytest.mark.kafka

QUERY = "q"
SLOTS = 3


class Merger:
    """The end of a job's batches: commit messages of its tasks, and the sink's `commit`."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.bootstrap, self.prefix = bootstrap, prefix
        self.topics = topics_of(prefix)
        channels = [self.topics.of(it) for it in self.topics.channels]
        create_topics(
            bootstrap, dict.fromkeys([*channels, self.topics.config, self.topics.state], 1)
        )
        properties: Properties = {"bootstrap.servers": bootstrap}
        self.writer = KafkaWriter(
            SinkOptions(prefix, properties, claim(self.topics, properties), {})
        )
        self.slots = GridSlots(2, SLOTS)
        self.rng = random.Random(3)  # noqa: S311 - a reproducible choice, no secret
        self.sent = 0

    def evaluate(self) -> list[WriterCommitMessage | None]:
        """Evaluate a block; return the messages of two tasks, of which one serves two slots."""
        controls = [] if self.sent else [topk_control(0, {"window_us": 100})]
        tagged = [
            Tagged(
                it, it, frozenset(self.rng.sample("abcdef", 3)), partition=it % 2, offset=it // 2
            )
            for it in range(self.sent, self.sent + 10)
        ]
        self.sent += 10
        outcomes = self.slots.outcomes(make_tag_block(tagged, controls))
        blobs = [SlotShares(SLOTS, self.sent, it.shares).to_bytes() for it in outcomes]
        first, second = tuple(blobs[:1]), tuple(blobs[1:])
        return [Written(0), Written(4, QUERY, first), Written(0, QUERY, second)]

    def written(self) -> list[tuple[str, str]]:
        """Return topic and id of all records of the topics of lists."""
        return [
            (topic, record.headers["ce_id"].decode())
            for topic in map(self.topics.of, self.topics.channels)
            for record in read_committed(self.bootstrap, topic)
        ]


@pytest.fixture
def merger(kafka_bootstrap: str, topic_prefix: str) -> Merger:
    return Merger(kafka_bootstrap, topic_prefix)


def test_repeated_batch_is_merged_once_by_the_same_and_by_another_process(merger: Merger) -> None:
    messages = merger.evaluate()
    merger.writer.commit(messages, 4)
    once = merger.written()
    assert {topic for topic, _ in once} == {
        f"{merger.prefix}.topk",
        f"{merger.prefix}.topk.current",
    }
    merger.writer.commit(messages, 4)
    batches._producers.clear()  # noqa: SLF001 - as in a new process
    merger.writer.commit(messages, 4)
    assert merger.written() == once
    merger.writer.commit(merger.evaluate(), 5)
    twice = merger.written()
    assert len(twice) > len(once)
    assert len(set(twice)) == len(twice)


def test_mark_of_a_later_batch_shows_an_old_checkpoint(merger: Merger) -> None:
    target = merge_target(merger.prefix, QUERY, merger.writer.options.owner, {})
    first, second = merger.evaluate(), merger.evaluate()
    merger.writer.commit(first, 4)
    merger.writer.commit(second, 6)
    properties = merger.writer.options.properties
    check_marks(6, [target], properties)
    with pytest.raises(StaleCheckpointError, match="newest batch is 5, but batch 6 is in"):
        check_marks(5, [target], properties)
    with pytest.raises(StaleCheckpointError, match="newest batch is 4, but batch 6 is in"):
        merger.writer.commit(first, 4)


def test_batch_without_shares_writes_nothing(merger: Merger) -> None:
    merger.writer.commit([Written(3, QUERY), None], 4)
    assert merger.written() == []


def test_missing_share_of_a_slot_fails_the_batch(merger: Merger) -> None:
    *_, last = merger.evaluate()
    with pytest.raises(MissingShareError, match="condition t, version 1: 2 of 3 slots"):
        merger.writer.commit([last], 4)
    assert merger.written() == []
