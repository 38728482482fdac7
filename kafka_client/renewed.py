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

_Client = TypeVar("_Client")
_log = logging.getLogger(__name__)
# Interval of the statistics of a client. It keeps them, several kB each, until it is polled.
_STATISTICS_MS = 15_000
# A client that loses its brokers and finds them again may know none in one of the statistics.
_STATISTICS_WITHOUT_BROKERS = 2
# Error codes of requests that were not sent, or not answered.
_UNANSWERED = frozenset(
    {
        KafkaError._TIMED_OUT,  # noqa: SLF001 - librdkafka's own codes carry the underscore
        KafkaError._TIMED_OUT_QUEUE,  # noqa: SLF001 - as above
        KafkaError._TRANSPORT,  # noqa: SLF001 - as above
        # No leader is known.
        KafkaError._NOENT,  # noqa: SLF001 - as above
    }
)
# Min time between two clients, which doubles while none gets an answer.
_RENEWAL_SECONDS = 5.0
_MAX_RENEWAL_SECONDS = 60.0


class Loss:
    """Whether a client may have lost its brokers.

    A client refers to it, and it does not refer to the client: a client in a cycle of references
    would be closed by the garbage collector, at any moment and in any thread.
    """

    def __init__(self) -> None:
        self._is_likely = False
        self._has_answered = False
        self._without_brokers = 0

    def __bool__(self) -> bool:
        return self._is_likely

    @property
    def has_answered(self) -> bool:
        """Whether a broker has ever answered the client."""
        return self._has_answered

    def properties(self) -> dict[str, Any]:
        """Return librdkafka properties with which a client reports what it knows, when polled."""
        return {"statistics.interval.ms": _STATISTICS_MS, "stats_cb": self.take_statistics}

    def take_statistics(self, statistics: str) -> None:
        """Take librdkafka's statistics of the client.

        A broker that is down is one that the client knows. "logical" ones are the coordinators,
        which have no address of their own.
        """
        brokers = json.loads(statistics)["brokers"].values()
        known = [it["state"] for it in brokers if it["source"] != "logical"]
        if known:
            self._is_likely, self._without_brokers = False, 0
            self._has_answered = self._has_answered or "UP" in known
            return
        self._without_brokers += 1
        if self._without_brokers >= _STATISTICS_WITHOUT_BROKERS:
            self._is_likely = True

    def take_answer(self) -> None:
        """Take the answer to a request."""
        self._is_likely, self._has_answered = False, True

    def take_error(self, error: KafkaException) -> None:
        """Take the error of a request; without an answer, the brokers may be lost or down."""
        code = error.args[0].code()
        if code in _UNANSWERED:
            self._is_likely = True
        elif code > 0:
            # The broker's own.
            self.take_answer()


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
        self._pause_seconds = _RENEWAL_SECONDS
        self._renewable_at = time.monotonic() + self._pause_seconds
        self._loss = Loss()
        self._client = open_client(self._loss)

    def get(self) -> _Client:
        """Return the client, or its successor if it may have lost its brokers."""
        # A former client is destroyed after the lock is free, unless the caller refers to it.
        former = None
        with self._lock:
            if self._loss and time.monotonic() >= self._renewable_at:
                former = self._renew()
            client = self._client
        del former
        return client

    def _renew(self) -> _Client | None:
        """Replace the client, if another one can be opened; return the former one."""
        seconds = _RENEWAL_SECONDS if self._loss.has_answered else 2 * self._pause_seconds
        self._pause_seconds = min(seconds, _MAX_RENEWAL_SECONDS)
        self._renewable_at = time.monotonic() + self._pause_seconds
        loss = Loss()
        try:
            client = self._open_client(loss)
        except KafkaException as error:
            _log.warning("a Kafka client without an answer was not opened again: %s", error)
            return None
        _log.info("a Kafka client without an answer is opened again")
        former, self._client, self._loss = self._client, client, loss
        return former
