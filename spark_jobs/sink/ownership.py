"""The claim: the job that owns the installation, as an offset committed by one consumer group.

A job claims the installation at its start (`claim`): in a transaction with the transactional id
`PREFIX.owner`, the group `PREFIX.owner` commits the number of the claim as the offset of the marker
partition, with the job's token as its metadata. Reading the former claim and replacing it is one
step, because a transactional id has one producer. Then the job opens a producer for each
transactional id that earlier owners may use, `PREFIX.sink.N` and `PREFIX.sink.merged`, which fences
off their producers. The sink reads the claim each time after it has opened a producer, and writes
only if the claim is that of its own job. Therefore no earlier job writes after `claim` has returned
(P-OWNER in docs/proofs.md). A job replaces its own claim in the same way before it plans a batch of
a failed query again: the workers of that query then count as those of an earlier job.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from correlation.limits import SLOTS_LIMIT
from kafka_client.users import user_of
from spark_jobs.errors import ClaimLostError, ProducerFencedError, SparkJobError
from spark_jobs.sink.committed import CommittedOffset
from spark_jobs.sink.options import Owner
from spark_jobs.sink.transactional_client import (
    TIMEOUT_SECONDS,
    UnusableProducerError,
    as_own_error,
    open_producer,
    send_offsets,
)

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from correlation.resources.topics import Topics
    from spark_jobs.settings import Properties

_log = logging.getLogger(__name__)

MERGED = "merged"
# A claim that a killed job left undecided delays readers no longer than they wait.
_TRANSACTION_MS = 20_000
# Another job may claim the installation at the same time.
_ATTEMPTS = 5
# Each thread waits for Kafka most of the time.
_MAX_AT_ONCE = 8


def sink_id(prefix: str, part: int | str) -> str:
    """Return the transactional id of a part of the sink: the number of a partition, or MERGED."""
    return f"{prefix}.sink.{part}"


class Claims:
    """Reads and replaces the claim of an installation.

    Parameters
    ----------
    topics : Topics
        Topics of the installation.
    properties : mapping
        librdkafka properties.
    """

    def __init__(self, topics: Topics, properties: Properties) -> None:
        self._prefix, self._properties = topics.prefix, properties
        # Transactional id and group.
        self._name = f"{topics.prefix}.owner"
        self._offset = CommittedOffset(topics.config, self._name, properties)
        self._lock = threading.Lock()

    def read(self, patience_seconds: float = TIMEOUT_SECONDS) -> Owner | None:
        """Read the newest claim, or None.

        Parameters
        ----------
        patience_seconds : float
            Max time for repeated queries.

        Raises
        ------
        UnusableProducerError
            When Kafka does not answer in time, or the right to the group is missing.
        """
        try:
            with self._lock:
                found = self._offset.read(patience_seconds)
        except KafkaException as error:
            raise self._own_error(error) from error
        return _owner_at(found)

    def read_former(self, patience_seconds: float) -> Owner | None:
        """Read the claim before a claim that Kafka does not decide, while `read` gets no answer.

        Parameters and errors are those of `read`.
        """
        try:
            return _owner_at(self._offset.read_undecided(patience_seconds))
        except KafkaException as error:
            raise self._own_error(error) from error

    def check(self, own: Owner) -> None:
        """Check that a claim is the newest claim.

        Raises
        ------
        ClaimLostError
            When another job has claimed the installation.
        UnusableProducerError
            When Kafka does not answer in time, or has no claim. The driver then writes its claim
            again (`renew`).
        """
        found = self.find(own)
        # Kafka may have dropped an undecided claim of this job with more partitions.
        if found is None or found.partitions < own.partitions:
            raise UnusableProducerError(
                "the claim of the installation is missing: it is not the committed offset of group "
                f"{self._name}; the job writes it again"
            )

    def find(self, own: Owner, patience_seconds: float = TIMEOUT_SECONDS) -> Owner | None:
        """Return a claim if it is the newest claim; None when Kafka has no claim.

        Raises
        ------
        ClaimLostError
            When another job has claimed the installation.
        UnusableProducerError
            When Kafka does not answer in time.
        """
        return self._checked(own, self.read(patience_seconds))

    def _checked(self, own: Owner, found: Owner | None) -> Owner | None:
        """Return the claim that was found, if it is this one or missing."""
        if found is not None and found.start != own.start:
            raise ClaimLostError(self._prefix, found.checkpoint, own.checkpoint)
        return found

    def renew(self, own: Owner) -> None:
        """Write a claim again, unless another job has claimed the installation.

        Raises
        ------
        ClaimLostError
            When another job has claimed the installation.
        ProducerFencedError, UnusableProducerError
            When the claim cannot be written.
        """

        def same(found: Owner | None) -> Owner:
            self._checked(own, found)
            return own

        self._replace(same)

    def claim(self, checkpoint: str, partitions: int, now_us: int) -> Owner:
        """Claim the installation, and fence off all producers of earlier owners.

        Parameters
        ----------
        checkpoint : str
            Id of this job's checkpoint.
        partitions : int
            Number of partitions of this job's sink.
        now_us : int
            Wall time in µs since 1970. Claims are numbered by it: numbers grow even if the former
            claim has expired.

        Raises
        ------
        ProducerFencedError, UnusableProducerError
            When the claim cannot be written.
        """
        start = uuid.uuid4().hex

        def next_claim(former: Owner | None) -> Owner:
            known = Owner(0, "", "", 0) if former is None else former
            number = max(now_us, known.number + 1)
            return Owner(number, checkpoint, start, max(partitions, known.partitions))

        for attempt in range(_ATTEMPTS):
            try:
                owner = self._replace(next_claim)
                break
            except ProducerFencedError:
                if attempt == _ATTEMPTS - 1:
                    raise
        self.fence_sink(owner)
        return owner

    def replace(self, own: Owner, new: Owner) -> Owner:
        """Replace a claim by a new one of the same job, unless another job has claimed.

        Workers that have the former claim write no more once their producers are fenced off
        (`fence_sink`). It may be repeated with the same claims.

        Parameters
        ----------
        own, new : Owner
            The present claim, and the one that replaces it (`Owner.replaced`).

        Raises
        ------
        ClaimLostError
            When another job has claimed the installation.
        ProducerFencedError, UnusableProducerError
            When the claim cannot be written.
        """

        def next_claim(found: Owner | None) -> Owner:
            if found is None or found.start != new.start:
                self._checked(own, found)
            return new

        return self._replace(next_claim)

    def fence_sink(self, owner: Owner) -> None:
        """Fence off the producers of the sink that were opened before.

        Parameters
        ----------
        owner : Owner
            The newest claim.

        Raises
        ------
        ProducerFencedError, UnusableProducerError
            When Kafka does not accept a transactional id.
        """
        self._fence_parts(owner.partitions)

    def _fence_parts(self, partitions: int) -> None:
        parts: list[int | str] = [*range(partitions), MERGED]
        self.fence(sink_id(self._prefix, part) for part in parts)

    def fence(self, ids: Iterable[str]) -> None:
        """End the open transactions of all producers with these transactional ids.

        Raises
        ------
        ProducerFencedError, UnusableProducerError
            When Kafka does not accept a transactional id.
        """

        def open_one(transactional_id: str) -> None:
            try:
                open_producer(transactional_id, self._offset.topic, self._properties)
            except KafkaException as error:
                raise self._own_error(error, transactional_id) from error

        with ThreadPoolExecutor(_MAX_AT_ONCE) as threads:
            for _ in threads.map(open_one, ids):
                pass

    def _replace(self, decide: Callable[[Owner | None], Owner]) -> Owner:
        """Replace the claim in one step; `decide` returns the new claim for the former."""
        properties = {**self._properties, "transaction.timeout.ms": _TRANSACTION_MS}
        try:
            producer = open_producer(self._name, self._offset.topic, properties)
        except KafkaException as error:
            raise self._own_error(error) from error
        owner = decide(self._read_replaced())
        try:
            producer.begin_transaction()
            send_offsets(producer, [self._mark(owner)], self._offset.group)
            producer.commit_transaction(TIMEOUT_SECONDS)
        except KafkaException as error:
            # An undecided claim would delay the sink.
            with suppress(KafkaException):
                producer.abort_transaction(TIMEOUT_SECONDS)
            raise self._own_error(error) from error
        return owner

    def _read_replaced(self) -> Owner | None:
        """Read the claim to be replaced; the one before it, if Kafka does not decide it.

        All transactions that claim have ended: that of the new producer's id. The job of an
        undecided claim may have any number of partitions: all producers are fenced off before the
        claim is replaced. It opens no other ones, since it cannot check its claim.
        """
        try:
            with self._lock:
                found, is_decided = self._offset.read_or_former()
        except KafkaException as error:
            raise self._own_error(error) from error
        if not is_decided:
            _log.warning("Kafka does not decide the claim of the installation: it is replaced")
            self._fence_parts(SLOTS_LIMIT)
        return _owner_at(found)

    def _mark(self, owner: Owner) -> TopicPartition:
        return self._offset.at(owner.number, owner.to_json())

    def _own_error(
        self, error: KafkaException, transactional_id: str | None = None
    ) -> SparkJobError:
        user = user_of(self._properties)
        return as_own_error(error, transactional_id or self._name, self._name, user)


def _owner_at(found: TopicPartition | None) -> Owner | None:
    """Return the claim that a committed offset contains."""
    if found is None or not found.metadata:
        return None
    return Owner.from_json(found.offset, found.metadata)


# A worker has many producers and one connection for the claim.
_known: dict[tuple[object, ...], Claims] = {}
_known_lock = threading.Lock()


def claims_of(topics: Topics, properties: Properties) -> Claims:
    """Return this process's connection for the claim of an installation."""
    key = (topics.config, *sorted(properties.items()))
    with _known_lock:
        if key not in _known:
            _known[key] = Claims(topics, properties)
        return _known[key]
