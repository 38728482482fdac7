"""Offsets that Kafka does not decide: the broker has lost the end of their transaction.

A transaction of another producer, which does not end, has the same effect on readers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from spark_jobs.driver import claim as claim_module
from spark_jobs.driver.claim import Claim
from spark_jobs.errors import ClaimLostError, DeliveryError
from spark_jobs.sink import committed, marker, ownership
from spark_jobs.sink.committed import CommittedOffset
from spark_jobs.sink.marker import Marker, read_marks
from spark_jobs.sink.ownership import claims_of
from spark_jobs.sink.state_topic import read_state
from spark_jobs.sink.transactional_client import UnusableProducerError
from spark_jobs.sink.transactions import PartitionProducer
from tests.support.claims import BareInstallation, claim, target
from tests.support.messages import naming
from tests.support.patience import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

pytestmark = pytest.mark.kafka


class Installation(BareInstallation):
    """An installation with a part of the sink, and transactions that do not end."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        super().__init__(bootstrap, prefix)
        self.target = target(self.topics, claim(self.topics, self.properties))
        self.marker = Marker(self.topics, self.target.group, self.properties)

    def producer(self) -> PartitionProducer:
        return PartitionProducer(self.target, self.properties)

    def leave_undecided(self, offset: TopicPartition, group: object) -> Producer:
        """Commit an offset in a transaction that does not end; return its producer."""
        producer = self.begin(f"{self.topics.prefix}.other")
        producer.send_offsets_to_transaction([offset], group, PATIENCE_SECONDS)
        return producer

    def committed(self, group: str) -> int:
        """Return the newest offset of a group that is decided."""
        found = CommittedOffset(self.topics.config, group, self.properties, decided=False).read()
        assert found is not None
        return int(found.offset)


@pytest.fixture
def installation(
    kafka_bootstrap: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> Installation:
    # No result depends on this time.
    monkeypatch.setattr(committed, "DECISION_SECONDS", 1.0)
    return Installation(kafka_bootstrap, topic_prefix)


def test_mark_of_the_state_topic_counts_while_the_offset_is_undecided(
    installation: Installation,
) -> None:
    assert installation.producer().write(7, [installation.record("a")]) == 1
    # The newest offset that is decided is that of an earlier batch.
    decided = installation.leave_undecided(installation.marker.of(4), installation.marker.group)
    decided.commit_transaction(PATIENCE_SECONDS)
    installation.leave_undecided(installation.marker.of(98), installation.marker.group)
    assert installation.committed(installation.target.group) == 5

    producer = installation.producer()
    assert producer.next_batch() == 8
    # Not in a transaction that may abort: Kafka would then forget the mark.
    assert installation.committed(installation.target.group) == 5
    assert producer.write(7, [installation.record("a")]) == 0
    assert producer.write(8, [installation.record("b")]) == 1
    assert installation.producer().next_batch() == 9
    assert installation.written() == ["a", "b"]
    state = read_state(installation.properties, installation.topics.state)
    assert read_marks(state) == {installation.target.group: 9}


def test_first_batch_is_written_while_its_offset_is_undecided(installation: Installation) -> None:
    installation.leave_undecided(installation.marker.of(3), installation.marker.group)
    producer = installation.producer()
    assert producer.next_batch() == 0
    assert producer.write(0, [installation.record("a")]) == 1
    assert installation.written() == ["a"]


def test_mark_is_not_taken_from_a_state_topic_with_an_open_transaction(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marker, "_PATIENCE_SECONDS", 2.0)
    assert installation.producer().write(7, [installation.record("a")]) == 1
    other = installation.leave_undecided(installation.marker.of(98), installation.marker.group)
    # It hides the records behind it, which may be marks.
    other.produce(installation.topics.state, b"{}", b"key")
    other.flush(PATIENCE_SECONDS)
    with pytest.raises(UnusableProducerError, match=naming(installation.topics.state)):
        installation.producer().next_batch()
    with pytest.raises(DeliveryError, match=naming(installation.topics.state)):
        installation.producer().write(8, [installation.record("b")])
    other.abort_transaction(PATIENCE_SECONDS)
    assert installation.producer().write(8, [installation.record("b")]) == 1
    assert installation.written() == ["a", "b"]


def test_undecided_claim_is_replaced_and_all_producers_are_fenced_off(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "SLOTS_LIMIT", 3)
    topics, former = installation.topics, installation.target.owner
    # A producer of a job whose claim, with three partitions, is not known.
    unknown = PartitionProducer(target(topics, former, 2), installation.properties)
    assert unknown.write(0, [installation.record("a")]) == 1
    claims = CommittedOffset(topics.config, f"{topics.prefix}.owner", installation.properties)
    offset = claims.at(former.number + 1, former.to_json())
    other = installation.leave_undecided(offset, claims.group)

    owner = claims_of(topics, installation.properties).claim("next", 1, former.number)
    assert owner.number > former.number
    assert owner.partitions == former.partitions
    assert installation.committed(f"{topics.prefix}.owner") == owner.number
    other.abort_transaction(PATIENCE_SECONDS)
    with pytest.raises(ClaimLostError):
        unknown.write(1, [installation.record("b")])
    assert installation.written() == ["a"]


def test_running_job_renews_its_claim_while_kafka_does_not_decide_it(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_module, "_LOOK_SECONDS", 1.0)
    topics, owner = installation.topics, installation.target.owner
    running = Claim(topics, installation.properties, owner)
    claims = claims_of(topics, installation.properties)
    group = f"{topics.prefix}.owner"
    committed = CommittedOffset(topics.config, group, installation.properties)
    # The job was stopped within the transaction, or the broker has lost its end.
    renewal = installation.begin(group)
    offset = committed.at(owner.number, owner.to_json())
    renewal.send_offsets_to_transaction([offset], committed.group, PATIENCE_SECONDS)
    # Not yet: Kafka may only be slow.
    running.look()
    with pytest.raises(UnusableProducerError):
        claims.find(owner, 1.0)
    monkeypatch.setattr(claim_module, "_UNDECIDED_SECONDS", 0.0)

    def is_renewed() -> bool:
        running.look()
        try:
            return claims.find(owner, 1.0) == owner
        except UnusableProducerError:
            return False

    # Less than the time after which the broker ends the transaction.
    wait_until(is_renewed, PATIENCE_SECONDS / 2)


def test_running_job_does_not_renew_its_claim_after_another_claim(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_module, "_LOOK_SECONDS", 1.0)
    monkeypatch.setattr(claim_module, "_UNDECIDED_SECONDS", 0.0)
    monkeypatch.setattr(ownership, "SLOTS_LIMIT", 3)
    topics, owner = installation.topics, installation.target.owner
    running = Claim(topics, installation.properties, owner)
    claims = claims_of(topics, installation.properties)
    newer = claims.claim("next", 1, owner.number)
    group = f"{topics.prefix}.owner"
    offsets = CommittedOffset(topics.config, group, installation.properties)
    # The renewal of the newer claim is not decided, not even when another claim begins.
    installation.leave_undecided(offsets.at(newer.number, newer.to_json()), offsets.group)
    with pytest.raises(ClaimLostError):
        running.look()
    assert installation.committed(group) == newer.number


def test_claim_of_more_partitions_that_kafka_has_dropped_is_written_again(
    installation: Installation,
) -> None:
    claims = claims_of(installation.topics, installation.properties)
    wider = installation.target.owner._replace(partitions=4)
    with pytest.raises(UnusableProducerError, match=naming(f"{installation.topics.prefix}.owner")):
        claims.check(wider)
    claims.renew(wider)
    claims.check(wider)
    assert claims.read() == wider
