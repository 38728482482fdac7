"""The driver's part of the claim: notice its loss, and keep it from expiring."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from spark_jobs.errors import ProducerFencedError
from spark_jobs.sink.ownership import claims_of
from spark_jobs.sink.transactional_client import UnusableProducerError

if TYPE_CHECKING:
    import threading

    from correlation.resources.topics import Topics
    from spark_jobs.settings import Properties
    from spark_jobs.sink.options import Owner

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 2.0
# Kafka removes committed offsets after `offsets.retention.minutes`, which is at least an hour in
# practice and seven days by default.
_RENEW_SECONDS = 1_200.0
# Kafka ends the transaction of a claim in less time, unless it has lost the end.
_UNDECIDED_SECONDS = 60.0


class Claim:
    """The claim of a running job.

    Parameters
    ----------
    topics : Topics
        Topics of the installation.
    properties : mapping
        librdkafka properties.
    owner : Owner
        The claim, which was just written.

    Attributes
    ----------
    attempted : Owner or None
        Claim that was sent to replace `owner`, while Kafka has not answered; it may be in force.
    """

    def __init__(self, topics: Topics, properties: Properties, owner: Owner) -> None:
        self.owner = owner
        self.attempted: Owner | None = None
        self._claims = claims_of(topics, properties)
        self._look_at = 0.0
        self._renew_at = time.monotonic() + _RENEW_SECONDS
        # When Kafka last answered, or the claim was last renewed without an answer.
        self._answered_at = time.monotonic()

    def widen(self, partitions: int) -> None:
        """Claim more partitions of the sink, so that later owners fence off all of them.

        Raises
        ------
        ClaimLostError
            When another job has claimed the installation.
        ProducerFencedError, UnusableProducerError
            When the claim cannot be written.
        """
        if partitions > self.owner.partitions:
            owner = self.owner._replace(partitions=partitions)
            self._claims.renew(owner)
            self.owner = owner

    def replace(self) -> Owner:
        """Replace the claim by another of this job; workers with the former claim write no more.

        Raises
        ------
        ClaimLostError
            When another job has claimed the installation.
        ProducerFencedError, UnusableProducerError
            When the claim cannot be written.
        """
        # If a commit without an answer is in force, its claim is found in Kafka and adopted.
        self.attempted = self.attempted or self.owner.replaced()
        self.owner = self._claims.replace(self.owner, self.attempted)
        self.attempted = None
        self._renew_at = time.monotonic() + _RENEW_SECONDS
        self._claims.fence_sink(self.owner)
        return self.owner

    def settle(self, stop: threading.Event) -> None:
        """Repeat a replacement that Kafka has not answered: it may be in force.

        Parameters
        ----------
        stop : threading.Event
            Ends the wait for Kafka.

        Raises
        ------
        ClaimLostError
            When another job has claimed the installation.
        """
        while self.attempted is not None and not stop.is_set():
            try:
                self.replace()
            except (ProducerFencedError, UnusableProducerError) as error:
                _log.warning("the claim of the installation was not replaced: %s", error)
                stop.wait(_LOOK_SECONDS)

    def look(self) -> None:
        """Check every few seconds that no other job has claimed the installation.

        The sink does not depend on this: it checks the claim itself.

        Raises
        ------
        ClaimLostError
            When another job has claimed the installation.
        """
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + _LOOK_SECONDS
        try:
            found = self._claims.find(self.owner, _LOOK_SECONDS)
            self._answered_at = time.monotonic()
            if found is None:
                _log.warning("the claim of the installation is missing in Kafka; it is restored")
            elif found.partitions < self.owner.partitions:
                _log.warning("Kafka has dropped the newest claim of this job; it is restored")
            elif time.monotonic() < self._renew_at:
                return
            self._renew()
        except (ProducerFencedError, UnusableProducerError) as error:
            _log.warning("the claim of the installation was not checked: %s", error)
            self._end_undecided()

    def _renew(self) -> None:
        self._claims.renew(self.owner)
        self._renew_at = time.monotonic() + _RENEW_SECONDS

    def _end_undecided(self) -> None:
        """Renew the claim if Kafka has lost the end of a transaction that claims.

        Until the next claim, Kafka does not tell which claim is the newest, and a task that opens a
        producer does not write.
        """
        if time.monotonic() < self._answered_at + _UNDECIDED_SECONDS:
            return
        try:
            # It fails if Kafka does not answer at all.
            self._claims.read_former(_LOOK_SECONDS)
            self._answered_at = time.monotonic()
            _log.warning("Kafka does not decide the claim of the installation: it is renewed")
            self._renew()
        except (ProducerFencedError, UnusableProducerError) as error:
            _log.warning("the claim of the installation was not renewed: %s", error)
