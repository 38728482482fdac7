"""The claim of an installation on a real Kafka: only the newest owner's sink writes."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from spark_jobs.driver import claim as claim_module
from spark_jobs.driver.claim import Claim
from spark_jobs.driver.stale_checkpoint import check_marks
from spark_jobs.errors import ClaimLostError, DeliveryError
from spark_jobs.sink.committed import CommittedOffset
from spark_jobs.sink.marker import Marker
from spark_jobs.sink.options import Owner
from spark_jobs.sink.ownership import MERGED, sink_id
from spark_jobs.sink.transactional_client import UnusableProducerError
from spark_jobs.sink.transactions import PartitionProducer
from spark_jobs.worker.envelope import Record
from tests.support.claims import BareInstallation, claim, target
from tests.support.messages import assert_names, naming
from tests.support.patience import PATIENCE_SECONDS
from tests.support.secured_kafka import Right, SecuredBroker, User

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from spark_jobs.settings import Properties

pytestmark = pytest.mark.kafka


class Installation(BareInstallation):
    """An installation without service and jobs."""

    def claim(self, checkpoint: str, partitions: int = 1) -> Owner:
        return claim(self.topics, self.properties, checkpoint, partitions)

    def producer(self, owner: Owner, part: int | str = 0) -> PartitionProducer:
        """Return a part of the sink of a job; each checkpoint has its own query."""
        place = target(self.topics, owner, part, query=owner.checkpoint)
        return PartitionProducer(place, self.properties)

    def open_transaction(self, transactional_id: str) -> Producer:
        """Return a producer that has written a record and not committed it."""
        producer = self.begin(transactional_id)
        producer.produce(self.topics.alarms, value=b"uncommitted")
        producer.flush(PATIENCE_SECONDS)
        return producer

    def forget_claim(self) -> None:
        """Delete the claim, as Kafka does when it has expired."""
        group = f"{self.topics.prefix}.owner"
        admin = AdminClient(self.properties)
        admin.delete_consumer_groups([group])[group].result(PATIENCE_SECONDS)
        assert self.claims.read() is None


@pytest.fixture
def installation(kafka_bootstrap: str, topic_prefix: str) -> Installation:
    return Installation(kafka_bootstrap, topic_prefix)


def test_p_owner_only_the_newest_owner_writes_when_owners_alternate(
    installation: Installation,
) -> None:
    checkpoints, expected = itertools.cycle(["one", "two"]), []
    owner = installation.claim(next(checkpoints))
    for number in range(4):
        former, used = owner, installation.producer(owner)
        expected.append(f"{number} of {former.checkpoint}")
        assert used.write(number, [installation.record(expected[-1])]) == 1
        owner = installation.claim(next(checkpoints))
        assert owner.number > former.number
        # The producer that is open, and one that is opened after the claim.
        for producer in (used, installation.producer(former)):
            with pytest.raises(ClaimLostError) as raised:
                producer.write(number + 1, [installation.record("of an earlier owner")])
            assert (raised.value.owner, raised.value.own) == (owner.checkpoint, former.checkpoint)
    assert installation.written() == expected


def test_p_owner_claim_ends_the_transactions_of_all_earlier_owners(
    installation: Installation,
) -> None:
    prefix = installation.topics.prefix
    wide = installation.claim("wide", partitions=4)
    # The claim of a job that dies before it has fenced off any producer.
    died = installation.claims._replace(
        lambda _: Owner(wide.number + 1, "died", "x", wide.partitions)
    )
    parts: list[int | str] = [0, 3, MERGED]
    opened = [installation.open_transaction(sink_id(prefix, part)) for part in parts]
    narrow = installation.claim("narrow", partitions=1)
    assert (narrow.number, narrow.partitions) > (died.number, 3)
    for producer in opened:
        with pytest.raises(KafkaException):
            producer.commit_transaction(PATIENCE_SECONDS)
    assert installation.written() == []


class Interrupted(list[Record]):
    """Records of a batch; at their first use, an earlier job opens a producer of the same part."""

    def __init__(self, records: list[Record], earlier: PartitionProducer) -> None:
        super().__init__(records)
        self._earlier: PartitionProducer | None = earlier

    def __iter__(self) -> Iterator[Record]:
        yield from super().__iter__()
        if self._earlier is not None:
            earlier, self._earlier = self._earlier, None
            with pytest.raises(ClaimLostError):
                earlier.write(7, [Record(self[0].topic, b"key", b"of an earlier owner")])


def test_p_owner_batch_is_repeated_when_an_earlier_job_has_fenced_off_its_producer(
    installation: Installation,
) -> None:
    first = installation.claim("first")
    second = installation.producer(installation.claim("second"))
    assert second.write(0, [installation.record("a")]) == 1
    batch = Interrupted([installation.record("b")], installation.producer(first))
    assert second.write(1, batch) == 1
    assert second.write(2, [installation.record("c")]) == 1
    assert installation.written() == ["a", "b", "c"]


def test_claims_at_the_same_time_have_one_winner(installation: Installation) -> None:
    with ThreadPoolExecutor(2) as threads:
        owners = list(threads.map(installation.claim, ["one", "two"]))
    first, winner = sorted(owners)
    assert first.number < winner.number
    assert installation.claims.read() == winner
    assert installation.producer(winner).write(0, [installation.record("a")]) == 1
    with pytest.raises(ClaimLostError):
        installation.producer(first).write(0, [installation.record("b")])


def test_claim_that_a_killed_job_left_undecided_does_not_count(installation: Installation) -> None:
    owner = installation.claim("one")
    name = f"{installation.topics.prefix}.owner"
    dead = installation.open_transaction(name)
    offset = CommittedOffset(installation.topics.config, name, installation.properties)
    undecided = Owner(owner.number + 1, "dead", "x", 9)
    dead.send_offsets_to_transaction(
        [offset.at(undecided.number, undecided.to_json())], offset.group, PATIENCE_SECONDS
    )
    following = installation.claim("two")
    assert (following.checkpoint, following.partitions) == ("two", 1)
    assert installation.claims.read() == following


def test_numbers_of_claims_grow_when_the_clock_goes_back_and_when_the_claim_has_expired(
    installation: Installation,
) -> None:
    claims = installation.claims
    first = claims.claim("one", 1, 5_000)
    assert first.number == 5_000
    assert claims.claim("one", 1, 10).number == 5_001
    installation.forget_claim()
    assert claims.claim("one", 1, 6_000).number == 6_000


def test_missing_claim_fails_the_batch_until_the_driver_has_restored_it(
    installation: Installation,
) -> None:
    owner = installation.claim("one")
    driver = Claim(installation.topics, installation.properties, owner)
    installation.forget_claim()
    with pytest.raises(DeliveryError, match=naming("claim", "missing")):
        installation.producer(owner).write(0, [installation.record("a")])
    driver.look()
    assert installation.claims.read() == owner
    assert installation.producer(owner).write(0, [installation.record("a")]) == 1
    assert installation.written() == ["a"]


def test_driver_renews_its_claim_until_another_job_has_claimed(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_module, "_RENEW_SECONDS", 0.0)
    owner = installation.claim("one")
    driver = Claim(installation.topics, installation.properties, owner)
    before = installation.open_transaction(f"{installation.topics.prefix}.owner")
    driver.look()
    assert installation.claims.read() == owner
    # Writing the claim has fenced off the producer that was opened before.
    with pytest.raises(KafkaException):
        before.commit_transaction(PATIENCE_SECONDS)
    winner = installation.claim("two")
    monkeypatch.setattr(driver, "_look_at", time.monotonic())
    with pytest.raises(ClaimLostError, match=r"checkpoint is two, .* this job is one "):
        driver.look()
    # The loser's claim does not replace it, even if it was about to.
    with pytest.raises(ClaimLostError):
        installation.claims.renew(owner)
    assert installation.claims.read() == winner


def test_replaced_claim_is_in_force_also_if_it_is_repeated(installation: Installation) -> None:
    owner = installation.claim("one")
    used, new = installation.producer(owner), owner.replaced()
    # The first answer may have been lost.
    for _ in range(2):
        assert installation.claims.replace(owner, new) == new
    assert installation.claims.find(new) == new
    installation.claims.fence_sink(new)
    with pytest.raises(ClaimLostError):
        used.write(0, [installation.record("of the former claim")])
    assert installation.producer(new).write(0, [installation.record("of the new one")]) == 1
    assert installation.written() == ["of the new one"]
    other = installation.claim("two")
    with pytest.raises(ClaimLostError):
        installation.claims.replace(owner, new)
    assert installation.claims.find(other) == other


def test_driver_adopts_a_replacement_whose_answer_was_lost(installation: Installation) -> None:
    owner = installation.claim("one")
    claim = Claim(installation.topics, installation.properties, owner)
    claim.attempted = owner.replaced()
    installation.claims.replace(owner, claim.attempted)
    claim.settle(threading.Event())
    assert claim.owner == installation.claims.read()
    assert claim.owner.start != owner.start
    claim.look()


def test_p_owner_claim_of_more_partitions_is_seen_by_the_next_owner(
    installation: Installation,
) -> None:
    driver = Claim(installation.topics, installation.properties, installation.claim("one"))
    driver.widen(1)
    assert driver.owner.partitions == 1
    driver.widen(3)
    assert installation.claims.read() == driver.owner
    assert driver.owner.partitions == 3
    last = installation.open_transaction(sink_id(installation.topics.prefix, 2))
    winner = installation.claim("two")
    assert winner.partitions == 3
    with pytest.raises(KafkaException):
        last.commit_transaction(PATIENCE_SECONDS)
    with pytest.raises(ClaimLostError):
        driver.widen(4)
    assert installation.claims.read() == winner


def test_driver_that_cannot_read_the_claim_goes_on(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    owner = installation.claim("one")
    # Nothing listens there.
    silent: Properties = {"bootstrap.servers": "127.0.0.1:1"}
    Claim(installation.topics, silent, owner).look()
    assert_names(caplog.text, "claim", "not checked")


def test_transaction_of_an_earlier_version_is_ended(installation: Installation) -> None:
    place = target(installation.topics, installation.claim("one"))
    # The transactional id of a part was the name of the group of its marks.
    dead = installation.open_transaction(place.group)
    marker = Marker(installation.topics, place.group, installation.properties)
    dead.send_offsets_to_transaction([marker.of(10)], marker.group, PATIENCE_SECONDS)
    installation.claims.fence([place.group])
    check_marks(9, [place], installation.properties)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("resource", "operation"), [("group", "Read"), ("transactional-id", "Write")]
)
def test_claim_names_a_missing_right(
    tmp_path: Path, topic_prefix: str, resource: str, operation: str
) -> None:
    user = User("job", "planted job password", "SCRAM-SHA-256")
    with SecuredBroker(tmp_path, [user]) as broker:
        installation = Installation(broker.bootstrap, topic_prefix)
        rights = {
            "topic": Right("Read", "topic", installation.topics.config),
            "group": Right("Read", "group", f"{topic_prefix}.*"),
            "transactional-id": Right("Write", "transactional-id", f"{topic_prefix}.*"),
        }
        broker.grant(user, rights.values())
        secured: Properties = {
            **broker.properties(user),
            "bootstrap.servers": broker.secured,
            "sasl.password": user.password,
        }
        named = rf"{resource} {topic_prefix}\.owner: the Kafka user job .* right {operation}"
        with (
            broker.without(user, rights[resource]),
            pytest.raises(UnusableProducerError, match=named),
        ):
            claim(installation.topics, secured, "job")
        assert installation.claims.read() is None
        owner = claim(installation.topics, secured, "job")
        assert installation.claims.read() == owner
