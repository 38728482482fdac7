"""A client that is opened again after it has lost its brokers.

A broker that was paused for longer than its session reports for a moment that no broker is alive.
After such a report, a client of librdkafka 2.11 to 2.16 may know no broker any more, not even those
of `bootstrap.servers`, and never asks for them again
(https://github.com/confluentinc/librdkafka/issues/5301).
"""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from confluent_kafka import KafkaError, KafkaException

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

_Client = TypeVar("_Client")
_log = logging.getLogger(__name__)
# Interval of the statistics. A client that nobody polls keeps them all, about 1 kB each.
_STATISTICS_MS = 15_000
# A client that loses its brokers and finds them again may know none in one of the statistics.
_STATISTICS_WITHOUT_BROKERS = 2
# Error codes of requests that were not answered, or not sent; also for want of a leader.
_UNANSWERED = frozenset(
    {
        KafkaError._TIMED_OUT,  # noqa: SLF001 - librdkafka's own codes carry the underscore
        KafkaError._TIMED_OUT_QUEUE,  # noqa: SLF001 - as above
        KafkaError._TRANSPORT,  # noqa: SLF001 - as above
        KafkaError._NOENT,  # noqa: SLF001 - as above
    }
)
# Min time between two clients: while the broker is down, requests of each one stay unanswered.
_RENEWAL_SECONDS = 5.0


class Loss:
    """Whether a client has lost its brokers, as far as it reports.

    A client refers to it, and it does not refer to the client: a client in a cycle of references
    would be closed by the garbage collector, at any moment and in any thread.
    """

    def __init__(self) -> None:
        self._reported = threading.Event()
        self._without_brokers = 0

    def __bool__(self) -> bool:
        return self._reported.is_set()

    def properties(self) -> dict[str, Any]:
        """Return librdkafka properties with which a client reports what it knows, when polled."""
        return {"statistics.interval.ms": _STATISTICS_MS, "stats_cb": self.take_statistics}

    def take_statistics(self, statistics: str) -> None:
        """Take librdkafka's statistics of the client.

        A broker that is down is one that the client knows. "logical" ones are the coordinators,
        which have no address of their own.
        """
        brokers = json.loads(statistics)["brokers"].values()
        if any(it["source"] != "logical" for it in brokers):
            self._without_brokers = 0
            return
        self._without_brokers += 1
        if self._without_brokers >= _STATISTICS_WITHOUT_BROKERS:
            self._reported.set()

    def take_answer(self, answer: Future[Any]) -> None:
        """Take the answer to a request, or its error."""
        error = answer.exception()
        if isinstance(error, KafkaException):
            self.take_error(error)

    def take_error(self, error: KafkaException) -> None:
        """Take the error of a request; without an answer, the brokers may be lost or down."""
        if error.args[0].code() in _UNANSWERED:
            self._reported.set()


class Renewed(Generic[_Client]):
    """A client, and its successors.

    Parameters
    ----------
    open_client : callable
        Opens a client that reports to the given loss.
    """

    def __init__(self, open_client: Callable[[Loss], _Client]) -> None:
        self._open_client = open_client
        self._lock = threading.Lock()
        # Requests of other threads may still wait for its answers.
        self._former: _Client | None = None
        self._client = self._open()

    def get(self) -> _Client:
        """Return the client, or its successor after it has lost its brokers."""
        with self._lock:
            if self._loss and time.monotonic() >= self._renewable_at:
                _log.info("a Kafka client has lost its brokers and is opened again")
                self._former, self._client = self._client, self._open()
            return self._client

    def _open(self) -> _Client:
        self._loss = Loss()
        self._renewable_at = time.monotonic() + _RENEWAL_SECONDS
        return self._open_client(self._loss)
