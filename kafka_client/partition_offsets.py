"""First and next offsets of partitions, as the broker lists them.

Both ways of asking raise the same error when the broker does not answer in time. librdkafka's
AdminClient reports an offset of -1001 instead, without an error.
"""

from __future__ import annotations

import time
from concurrent.futures import TimeoutError as FutureTimeoutError
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka import Consumer
    from confluent_kafka.admin import AdminClient

Place = tuple[str, int]
# Of a topic, and of a partition that its topic does not have.
_UNKNOWN = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - librdkafka's own codes carry the underscore
    }
)
_TIMED_OUT = KafkaError._TIMED_OUT  # noqa: SLF001 - as above
# A client needs a moment to connect, however little time is left.
_SHORTEST_SECONDS = 0.1


class OffsetRange(NamedTuple):
    """Offsets of a partition: from `begin` up to the one before `end`."""

    begin: int
    end: int


class Edge(Enum):
    """An edge of a partition: its oldest record, its end, or the end of what is committed."""

    BEGIN = "begin"
    END = "end"
    COMMITTED_END = "committed_end"


def list_offsets(
    admin: AdminClient,
    places: Iterable[Place],
    edge: Edge,
    timeout_seconds: float,
    *,
    skip_unknown: bool = False,
) -> dict[Place, int]:
    """Return the offset of an edge of each partition.

    Parameters
    ----------
    admin : AdminClient
        Asks the broker.
    places : iterable of (topic, partition)
        The partitions.
    edge : Edge
        Which offset.
    timeout_seconds : float
        Longest wait for the answer.
    skip_unknown : bool
        Leave out partitions that do not exist, instead of raising an error.

    Raises
    ------
    KafkaException
        The broker does not answer in time, or refuses.
    """
    spec = OffsetSpec.earliest() if edge is Edge.BEGIN else OffsetSpec.latest()  # type: ignore[no-untyped-call]  # untyped in the client
    level = IsolationLevel.READ_UNCOMMITTED
    if edge is Edge.COMMITTED_END:
        level = IsolationLevel.READ_COMMITTED
    asked = {TopicPartition(topic, number): spec for topic, number in places}
    if not asked:
        return {}
    offsets: dict[Place, int] = {}
    late = "the broker did not list the offset in time"
    found = admin.list_offsets(asked, isolation_level=level, request_timeout=timeout_seconds)
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
    consumer: Consumer, places: Iterable[Place], timeout_seconds: float
) -> dict[Place, OffsetRange]:
    """Return the range of offsets that a consumer can read of each partition.

    Parameters
    ----------
    consumer : Consumer
        Asks the broker, partition by partition. One that is polled by another thread answers
        late: `list_offsets` serves there.
    places : iterable of (topic, partition)
        The partitions.
    timeout_seconds : float
        Longest wait for all answers.

    Raises
    ------
    KafkaException
        The broker does not answer in time, or refuses.
    """
    deadline = time.monotonic() + timeout_seconds
    ranges = {}
    for place in places:
        left = max(deadline - time.monotonic(), _SHORTEST_SECONDS)
        ranges[place] = OffsetRange(*consumer.get_watermark_offsets(TopicPartition(*place), left))
    return ranges


def is_timeout(error: KafkaException) -> bool:
    """Return whether an error says that something did not happen in time."""
    return bool(error.args[0].code() == _TIMED_OUT)


def timed_out(place: Place, reason: str) -> KafkaException:
    """Return the error of a partition of which something did not happen in time."""
    topic, number = place
    return KafkaException(KafkaError(_TIMED_OUT, f"{topic} [{number}]: {reason}"))
