"""Write the batches of one partition of the sink exactly once, even when records are refused."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from correlation.resources.topics import Topics
from spark_jobs.errors import DeliveryError, ProducerFencedError, StaleCheckpointError
from spark_jobs.sink.marker import Marker
from spark_jobs.sink.options import Owner
from spark_jobs.sink.ownership import claims_of
from spark_jobs.sink.refusals import OutputTopics, Refused, shorten
from spark_jobs.sink.transactional_client import (
    TIMEOUT_SECONDS,
    SilentCoordinatorError,
    UnusableProducerError,
)
from spark_jobs.sink.transactional_producer import RefusedRecordsError, TransactionalProducer

if TYPE_CHECKING:
    from spark_jobs.settings import Properties
    from spark_jobs.worker.envelope import Record

_log = logging.getLogger(__name__)

# A topic refuses a batch of records as a whole. Records are then sent in smaller batches, and
# finally one by one.
_BATCH_BYTES = (1_000_000, 16_384, 1)
# Small batches cost little and are kept; sending records one by one is expensive.
_KEPT_LEVEL = 1
# Max attempts for a batch whose refused records can be redirected or shortened.
_MAX_ATTEMPTS = 10
# Max times to commit the mark, of one producer after another: one that was open while a broker
# restarted may never commit, a new one does so at once. The last is for a broker that is slow.
_PATIENCE_SECONDS = (5.0, 15.0, TIMEOUT_SECONDS)


class Target(NamedTuple):
    """Place of a part of the sink in an installation.

    Parameters
    ----------
    transactional_id : str
        Transactional id of the part; all jobs of the installation share it.
    group : str
        Consumer group of the marks of the part and of the checkpoint.
    topics : Topics
        Topics of the installation.
    owner : Owner
        Claim of the job.
    stored : int
        First batch that was not written yet when the job started, according to the state topic.
    """

    transactional_id: str
    group: str
    topics: Topics
    owner: Owner
    stored: int = 0


class PartitionProducer:
    """Writes the batches of one partition of the sink, each exactly once.

    Parameters
    ----------
    target : Target
        Place in the installation.
    properties : mapping
        librdkafka properties.
    """

    def __init__(self, target: Target, properties: Properties) -> None:
        self._target = target
        self._properties = properties
        self._outputs = OutputTopics(target.topics, properties)
        self._marker = Marker(target.topics, target.group, properties, stored=target.stored)
        self._producer: TransactionalProducer | None = None
        self._opening: Future[TransactionalProducer] | None = None
        self._level = 0
        self._claims = claims_of(target.topics, properties)

    def open_early(self) -> None:
        """Begin to open a new producer in a thread; `write` waits for it, and raises its errors.

        To open a producer takes some hundredths of a second, in which the task's records are
        computed. The transaction begins in `write`.
        """
        self._producer = None
        opening: Future[TransactionalProducer] = Future()
        self._opening = opening

        def run() -> None:
            try:
                opening.set_result(self._make_producer())
            except BaseException as error:  # noqa: BLE001 - `write` raises it
                opening.set_exception(error)

        # A daemon: a broker that does not answer does not keep the worker from ending.
        threading.Thread(target=run, name="open-producer", daemon=True).start()

    def write(self, batch: int, records: Iterable[Record]) -> int:
        """Write the records of a batch, unless the batch is already written.

        Parameters
        ----------
        batch : int
            Number of the batch; batches arrive in ascending order, and the last may be repeated.
        records : iterable of Record
            All records of this partition in the batch; iterated once per attempt.

        Returns
        -------
        int
            Number of records written; 0 when the batch was already written.

        Raises
        ------
        ClaimLostError
            When another job owns the installation; no record of the batch is visible.
        DeliveryError
            When Kafka did not accept the records; no record of the batch is visible.
        StaleCheckpointError
            When a later batch was written; no record of this batch is written.
        """
        fenced, silences = False, 0
        for _ in range(_MAX_ATTEMPTS):
            try:
                count = self._attempt(batch, records, _PATIENCE_SECONDS[silences])
            except ProducerFencedError as error:
                # Another worker served this partition in between; open a new producer, once.
                self._producer = None
                if fenced:
                    raise DeliveryError(
                        f"another job writes as {self._target.transactional_id}, or its batch took "
                        f"longer than transaction.timeout.ms: {error}"
                    ) from error
                fenced = True
            except UnusableProducerError as error:
                self._producer = None
                silences += 1
                if not isinstance(error, SilentCoordinatorError) or (
                    silences == len(_PATIENCE_SECONDS)
                ):
                    raise DeliveryError(str(error)) from error
                _log.warning("%s; the batch is repeated with a new producer", error)
            except RefusedRecordsError as error:
                if not error.usable:
                    self._producer = None
                records = self._mend(records, error.too_large)
            else:
                if self._level > _KEPT_LEVEL:
                    self._send_in_batches(_KEPT_LEVEL)
                return count
        raise DeliveryError(f"batch {batch}: Kafka rejected its records {_MAX_ATTEMPTS} times")

    def next_batch(self) -> int:
        """Return the first batch that is not in Kafka, after ending an open transaction.

        Raises
        ------
        ClaimLostError
            When another job owns the installation.
        ProducerFencedError, UnusableProducerError
            When Kafka does not accept the transactional id.
        """
        return self._open().next_batch

    def _open(self) -> TransactionalProducer:
        if self._opening is not None:
            opening, self._opening = self._opening, None
            self._producer = opening.result()
        if self._producer is None:
            self._producer = self._make_producer()
        return self._producer

    def _make_producer(self) -> TransactionalProducer:
        return TransactionalProducer(
            self._target.transactional_id,
            self._marker,
            self._properties,
            self._outputs,
            _BATCH_BYTES[self._level],
            partial(self._claims.check, self._target.owner),
        )

    def _attempt(self, batch: int, records: Iterable[Record], patience_seconds: float) -> int:
        producer = self._open()
        # Spark repeats only the last batch of a checkpoint.
        if producer.next_batch > batch + 1:
            raise StaleCheckpointError(batch, producer.next_batch - 1)
        if batch < producer.next_batch:
            return 0
        return producer.write(batch, self._outputs.direct(records), patience_seconds)

    def _mend(self, records: Iterable[Record], too_large: set[Refused]) -> Iterable[Record]:
        """Return the records in a form that Kafka may accept; `direct` handles avoided topics."""
        if not too_large:
            return records
        batch_bytes = _BATCH_BYTES[self._level]
        last = self._level == len(_BATCH_BYTES) - 1
        # A record as large as a batch was sent alone; others may be refused because of their batch.
        alone = {
            found
            for found in too_large
            if last or len(found.value or b"") + len(found.key or b"") >= batch_bytes
        }
        if not alone:
            self._send_in_batches(self._level + 1)
            return records
        if any(self._outputs.refuse_large(found.topic) for found in alone):
            return records
        shortened = shorten(self._outputs.direct(records), alone, self._target.topics)
        if shortened is None:
            places = sorted({found.topic for found in alone})
            raise DeliveryError(
                f"max.message.bytes is too small for the records of: {', '.join(places)}"
            )
        return shortened

    def _send_in_batches(self, level: int) -> None:
        _log.warning("records are sent in batches of %d bytes", _BATCH_BYTES[level])
        self._level = level
        self._producer = None
