"""The reason why a broker does not answer: no connection, TLS, or a password.

librdkafka reports a wrong password or certificate as "Broker transport failure", and the cause only
to a callback.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

if TYPE_CHECKING:
    from kafka_client.settings import Properties

_ALL_DOWN = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 - librdkafka's own codes carry the underscore
_POLL_SECONDS = 0.1
_SECONDS = 10.0
# Address before a message, and state of the connection after it.
_ADDRESS = re.compile(r"^\w+://[^ ]+: ")
_STATE = re.compile(r" \(after .*\)$")
_REMEDIES = {
    KafkaError._AUTHENTICATION: "correct sasl.username, sasl.mechanisms and the password",  # noqa: SLF001 - as above
    KafkaError._SSL: "correct ssl.ca.location, or the certificate of the broker",  # noqa: SLF001 - as above
}


def explain_silence(properties: Properties, seconds: float = _SECONDS) -> str | None:
    """Connect once more, and return the first error of the connection.

    Parameters
    ----------
    properties : dict
        librdkafka properties of the client that received no answer.
    seconds : float
        Maximum time to wait for the error.

    Returns
    -------
    str or None
        The error and, for TLS and passwords, its remedy; None if no error was reported in time, or
        the broker answers now.
    """
    errors: list[KafkaError] = []
    options: dict[str, Any] = {**properties, "log_level": 0, "error_cb": errors.append}
    client = AdminClient(options)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            client.list_topics(timeout=_POLL_SECONDS)
        except KafkaException:
            client.poll(_POLL_SECONDS)
        else:
            return None
        for error in errors:
            if error.code() != _ALL_DOWN:
                return _describe(error)
    return None


def _describe(error: KafkaError) -> str:
    text = _STATE.sub("", _ADDRESS.sub("", error.str()))
    remedy = _REMEDIES.get(error.code())
    return f"{text}; {remedy}" if remedy else text
