"""Change output records that Kafka refuses, so that one record does not block the others.

A condition's output topic may be deleted, not writable for the job, or internal to Kafka. Its
records are then written to the dead-letter topic. A value that exceeds the size limit of every
topic is left out, and a header states its length. On a compacted channel, a record without value
would delete its key: there, a short JSON object replaces the value, and the whole record is written
to the dead-letter topic.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import orjson
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation

from correlation.reasons import Reason
from correlation.resources.topics import OMITTED_HEADER, is_internal, refusal_headers
from kafka_client.clients import UserAdmin, find_unwritable
from kafka_client.rights import is_missing_right, no_right
from kafka_client.users import user_of
from spark_jobs.worker.envelope import Record

if TYPE_CHECKING:
    from correlation.resources.topics import Topics
    from spark_jobs.settings import Properties

_log = logging.getLogger(__name__)

# A smaller record is never shortened: the limit of its topic is misconfigured.
_SHORTEN_FROM_BYTES = 64 * 1024
# Max length of a string that is kept in a shortened object.
_SHORT_CHARACTERS = 1_000
_METADATA_SECONDS = 10.0
_INTERNAL_TOPIC = "it is an internal topic of Kafka"
# A refused topic is tried again after this time.
_RETRY_SECONDS = 30.0
# Errors of a topic, not of the broker.
_REFUSALS = frozenset(
    {
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - the client's public name
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - the client's public name
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.POLICY_VIOLATION,
        KafkaError.INVALID_RECORD,
    }
)


class Refused(NamedTuple):
    """A record that Kafka refused because it, or the batch it was sent in, is too large."""

    topic: str
    key: bytes | None
    value: bytes | None


class OutputTopics:
    """The topics that a worker knows to be writable or refused.

    The installation's own topics always count as writable: the job needs them to report errors.

    Parameters
    ----------
    topics : Topics
        Topics of the installation.
    properties : mapping
        librdkafka properties for queries of the broker.
    """

    def __init__(self, topics: Topics, properties: Properties) -> None:
        self._own = frozenset(topics.all())
        self._dead_letter = topics.dead_letter
        self._properties = properties
        self._no_right = no_right(user_of(properties), "Write")
        self._client: UserAdmin | None = None
        self._writable = set(self._own)
        self._refused: dict[str, tuple[str, float]] = {}

    def direct(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield the records; those whose topics cannot be written become dead letters.

        Raises
        ------
        KafkaException
            When the broker does not answer.
        """
        for record in records:
            yield record if record.topic in self._writable else self._redirect(record)

    def _redirect(self, record: Record) -> Record:
        """Return the record, or a dead letter if its topic is rejected."""
        detail = self._why_refused(record.topic)
        if detail is None:
            return record
        headers = refusal_headers(Reason.OUTPUT_REFUSED, detail, record.topic)
        return Record(
            self._dead_letter, record.key, record.value, (*record.headers, *headers.items())
        )

    def _why_refused(self, topic: str) -> str | None:
        detail, until = self._refused.get(topic, (None, 0.0))
        if detail is not None and time.monotonic() < until:
            return detail
        # Records of an unknown topic would delay the whole batch.
        detail = self._ask(topic)
        if detail is not None:
            self._refuse(topic, detail)
            return detail
        self._writable.add(topic)
        self._refused.pop(topic, None)
        return None

    def refuse(self, topic: str, error: KafkaError) -> bool:
        """Record that Kafka refused a record; return whether its topic is avoided from now on."""
        if topic in self._own or error.code() not in _REFUSALS:
            return False
        self._refuse(topic, self._detail(error))
        return True

    def refuse_large(self, topic: str) -> bool:
        """Record that a topic refuses records of this size; return whether it is avoided now."""
        if topic in self._own:
            return False
        self._refuse(topic, "its max.message.bytes is smaller than a record")
        return True

    def refuse_missing(self) -> set[str]:
        """Query the writable topics again; return the topics that are avoided from now on.

        Raises
        ------
        KafkaException
            When the broker does not answer.
        """
        missing = set()
        for topic in self._writable - self._own:
            detail = self._ask(topic)
            if detail is not None:
                self._refuse(topic, detail)
                missing.add(topic)
        return missing

    def find_unwritable(self, topics: set[str]) -> list[KafkaError]:
        """Return an error for each own topic among `topics` that the job may not write."""
        return find_unwritable(self._admin(), self._own & topics, _METADATA_SECONDS)

    def _admin(self) -> UserAdmin:
        if self._client is None:
            self._client = UserAdmin({"log_level": 2, **self._properties})
        return self._client

    def _refuse(self, topic: str, detail: str) -> None:
        _log.error("topic %s: %s; its records go to %s", topic, detail, self._dead_letter)
        self._writable.discard(topic)
        self._refused[topic] = (detail, time.monotonic() + _RETRY_SECONDS)

    def _ask(self, topic: str) -> str | None:
        """Query the broker; return the reason why a topic cannot be written, or None."""
        if is_internal(topic):
            return _INTERNAL_TOPIC
        try:
            found = (
                self._admin()
                .describe_topics(
                    TopicCollection([topic]),
                    include_authorized_operations=True,
                    request_timeout=_METADATA_SECONDS,
                )[topic]
                .result()
            )
        except KafkaException as error:
            if error.args[0].code() in _REFUSALS:
                return self._detail(error.args[0])
            raise
        if found.is_internal:
            return _INTERNAL_TOPIC
        allowed = found.authorized_operations
        # A broker without an authorizer returns no operations.
        if allowed and AclOperation.WRITE not in allowed:
            return self._no_right
        return None

    def _detail(self, error: KafkaError) -> str:
        return self._no_right if is_missing_right(error) else str(error.str())


def shorten(
    records: Iterable[Record], too_large: Collection[Refused], topics: Topics
) -> list[Record] | None:
    """Remove the values that are too large for every topic, and add a header with their length.

    Parameters
    ----------
    records : iterable of Record
        All records of a batch.
    too_large : collection of Refused
        Records that are too large for every topic.
    topics : Topics
        Topics of the installation.

    Returns
    -------
    list of Record
        None when all refused records are below the size from which records are shortened.
    """
    shortened: list[Record] = []
    count = 0
    compacted = topics.compacted_channels()
    for record in records:
        is_refused = (record.topic, record.key, record.value) in too_large
        if not is_refused or record.nbytes < _SHORTEN_FROM_BYTES:
            shortened.append(record)
            continue
        count += 1
        if record.topic == topics.state:
            # Without a letter: its content is of no use to people.
            shortened.append(_replaced(record, topics.dead_letter)[-1])
        elif record.topic in compacted:
            shortened += _replaced(record, topics.dead_letter)
        else:
            shortened.append(_without_bulk(record))
    if not count:
        return None
    _log.warning("%d values were omitted because they exceed the limit of their topic", count)
    return shortened


def _replaced(record: Record, dead_letter: str) -> list[Record]:
    """Return a dead letter of a record, and the record with the short fields of its object."""
    detail = f"{record.nbytes} bytes exceed max.message.bytes of the topic"
    headers = refusal_headers(Reason.TOO_LARGE, detail, record.topic)
    letter = Record(dead_letter, record.key, record.value, (*record.headers, *headers.items()))
    if len(record.key or b"") >= _SHORTEN_FROM_BYTES:
        # Kafka does not accept a record without key on a compacted topic.
        return [letter]
    found = _short_fields(record.value or b"")
    value = orjson.dumps({**found, "error": Reason.TOO_LARGE, "omitted_bytes": record.nbytes})
    short = [it for it in record.headers if len(it[1] or b"") < _SHORTEN_FROM_BYTES]
    omitted = (OMITTED_HEADER, str(record.nbytes).encode())
    return [letter, Record(record.topic, record.key, value, (*short, omitted))]


def _short_fields(value: bytes) -> dict[str, object]:
    """Return the fields of a JSON object that are not long: numbers and short strings."""
    try:
        found = orjson.loads(value)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        name: it
        for name, it in found.items()
        if isinstance(it, int | float) or (isinstance(it, str) and len(it) <= _SHORT_CHARACTERS)
    }


def _without_bulk(record: Record) -> Record:
    headers = [
        (name, value) for name, value in record.headers if len(value or b"") < _SHORTEN_FROM_BYTES
    ]
    key = record.key if len(record.key or b"") < _SHORTEN_FROM_BYTES else None
    return Record(
        record.topic, key, None, [*headers, (OMITTED_HEADER, str(record.nbytes).encode())]
    )
