"""First and next offsets of partitions, and offsets of times, as reported by the broker.

All functions raise the same error when the broker does not answer in time.
librdkafka's AdminClient returns the offset -1001 instead, without an error.
"""

from __future__ import annotations

import time
from concurrent.futures import TimeoutError as FutureTimeoutError
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from kafka_client.clients import find_indescribable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from concurrent.futures import Future

    from confluent_kafka.admin import ListOffsetsResultInfo

    from kafka_client.clients import UserAdmin, UserConsumer

_Answer = TypeVar("_Answer")
Place = tuple[str, int]
# Error codes of unknown topics and of unknown partitions.
_UNKNOWN = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - librdkafka's own codes carry the underscore
    }
)
_TIMED_OUT = KafkaError._TIMED_OUT  # noqa: SLF001 - as above
# Error codes of requests that were not answered, or not sent, in time.
TIMEOUTS = frozenset(
    {
        _TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,  # noqa: SLF001 - as above
    }
)
# Error codes after the leader of a partition changed, or a starved broker rejoined.
_LEADER_CHANGED = frozenset(
    {
        KafkaError._NOENT,  # noqa: SLF001 - as above; "No leaders found"
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - as above; and of a consumer that lost the leader
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_LEADER_EPOCH,
    }
)
# Error codes of the partitions of topics that the user may not describe.
_MAYBE_REFUSED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError._NOENT,  # noqa: SLF001 - as above
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - as above
    }
)
_PAUSE_SECONDS = 0.1
# Minimum timeout of a request, so that the client has time to connect.
_SHORTEST_SECONDS = 0.1


class OffsetRange(NamedTuple):
    """Range of offsets of a partition, from `begin` (inclusive) to `end` (exclusive)."""

    begin: int
    end: int


class Edge(Enum):
    """An edge of a partition: its oldest record, its end, or the end of its committed records."""

    BEGIN = "begin"
    END = "end"
    COMMITTED_END = "committed_end"


def list_offsets(
    admin: UserAdmin,
    places: Iterable[Place],
    edge: Edge,
    timeout_seconds: float,
    *,
    skip_unknown: bool = False,
) -> dict[Place, int]:
    """Return the offset of an edge of each partition.

    Parameters
    ----------
    admin : UserAdmin
        Client that sends the request.
    places : iterable of (topic, partition)
        The partitions.
    edge : Edge
        Edge whose offset is returned.
    timeout_seconds : float
        Maximum time to wait for the response.
    skip_unknown : bool
        Skip partitions that do not exist instead of raising an error.

    Raises
    ------
    KafkaException
        The broker does not answer in time, or returns an error.
    """
    spec = OffsetSpec.earliest() if edge is Edge.BEGIN else OffsetSpec.latest()  # type: ignore[no-untyped-call]  # untyped in the client
    level = IsolationLevel.READ_UNCOMMITTED
    if edge is Edge.COMMITTED_END:
        level = IsolationLevel.READ_COMMITTED
    asked = {TopicPartition(topic, number): spec for topic, number in places}
    if not asked:
        return {}

    def ask(left: float) -> dict[Place, int]:
        found = admin.list_offsets(asked, isolation_level=level, request_timeout=left)
        return _take_offsets(found, left, skip_unknown=skip_unknown)

    wanted = [(it.topic, it.partition) for it in asked]
    return _with_leaders(admin, ask, timeout_seconds, wanted)


def _take_offsets(
    found: Mapping[TopicPartition, Future[ListOffsetsResultInfo]],
    timeout_seconds: float,
    *,
    skip_unknown: bool,
) -> dict[Place, int]:
    """Wait for the offsets of a request."""
    offsets: dict[Place, int] = {}
    late = "the broker did not list the offset in time"
    for place, future in found.items():
        key = (place.topic, place.partition)
        try:
            offset = int(future.result(timeout_seconds).offset)
        except FutureTimeoutError as error:
            raise timed_out(key, late) from error
        except KafkaException as error:
            if skip_unknown and error.args[0].code() in _UNKNOWN:
                continue
            raise
        # When a request times out, librdkafka reports an invalid offset (-1001) and no error.
        if offset < 0:
            raise timed_out(key, late)
        offsets[key] = offset
    return offsets


def list_ranges(
    consumer: UserConsumer, places: Iterable[Place], timeout_seconds: float
) -> dict[Place, OffsetRange]:
    """Return the range of offsets of each partition that a consumer can read.

    Parameters
    ----------
    consumer : UserConsumer
        Consumer that sends one request per partition. If another thread polls the consumer, the
        response is delayed: use `list_offsets` instead.
    places : iterable of (topic, partition)
        The partitions.
    timeout_seconds : float
        Maximum time to wait for all responses.

    Raises
    ------
    KafkaException
        The broker does not answer in time, or returns an error.
    """
    deadline = time.monotonic() + timeout_seconds
    ranges = {}
    for place in places:
        ask = partial(consumer.get_watermark_offsets, TopicPartition(*place))
        left = max(deadline - time.monotonic(), _SHORTEST_SECONDS)
        ranges[place] = OffsetRange(*_with_leaders(consumer, ask, left, [place]))
    return ranges


def find_offsets(
    consumer: UserConsumer, places: Iterable[Place], moment_ms: int, timeout_seconds: float
) -> dict[Place, int | None]:
    """Return the first offset of each partition whose record has a Kafka timestamp from a time on.

    Parameters
    ----------
    consumer : UserConsumer
        Consumer that sends the request.
    places : iterable of (topic, partition)
        The partitions.
    moment_ms : int
        The time, in ms since 1970.
    timeout_seconds : float
        Maximum time to wait for the response.

    Returns
    -------
    dict
        The offsets; None for a partition without such a record.

    Raises
    ------
    KafkaException
        The broker does not answer in time, or returns an error.
    """
    wanted = list(places)
    if not wanted:
        return {}

    def ask(left: float) -> dict[Place, int | None]:
        asked = [TopicPartition(*place, moment_ms) for place in wanted]
        found = consumer.offsets_for_times(asked, timeout=left)
        for it in found:
            if it.error is not None:
                raise KafkaException(it.error)
        return {(it.topic, it.partition): it.offset if it.offset >= 0 else None for it in found}

    return _with_leaders(consumer, ask, timeout_seconds, wanted)


def _with_leaders(
    client: UserAdmin | UserConsumer,
    ask: Callable[[float], _Answer],
    timeout_seconds: float,
    places: Collection[Place],
) -> _Answer:
    """Return the answer to a request, repeated after a change of leader until the timeout.

    Parameters
    ----------
    client : UserAdmin or UserConsumer
        Client of the request.
    ask : callable
        Sends the request, given its timeout in seconds.
    timeout_seconds : float
        Maximum time for all attempts.
    places : collection of (topic, partition)
        Partitions of the request.

    Raises
    ------
    KafkaException
        The request has failed; a missing right is named.
    """
    deadline = time.monotonic() + timeout_seconds

    def left() -> float:
        return max(deadline - time.monotonic(), _SHORTEST_SECONDS)

    while True:
        try:
            return ask(left())
        except KafkaException as error:
            code = error.args[0].code()
            if code in _MAYBE_REFUSED:
                refused = find_indescribable(client, {topic for topic, _ in places}, left())
                if refused is not None:
                    raise KafkaException(refused) from error
            if code not in _LEADER_CHANGED or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)
            # librdkafka uses the outdated leader until it reads the metadata again.
            known = client.list_topics(timeout=left()).topics
            is_unknown = code == KafkaError._UNKNOWN_PARTITION  # noqa: SLF001 - as above
            if is_unknown and not all(
                topic in known and number in known[topic].partitions for topic, number in places
            ):
                raise


def is_timeout(error: KafkaException) -> bool:
    """Return whether an error is a timeout."""
    return error.args[0].code() in TIMEOUTS


def timed_out(place: Place, reason: str) -> KafkaException:
    """Return the timeout error of a partition."""
    topic, number = place
    return KafkaException(KafkaError(_TIMED_OUT, f"{topic} [{number}]: {reason}"))
