"""First and next offsets of partitions, as the broker lists them."""

from __future__ import annotations

from concurrent.futures import TimeoutError as FutureTimeoutError
from enum import Enum
from typing import TYPE_CHECKING

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka.admin import AdminClient

Place = tuple[str, int]
# Of a topic, and of a partition that its topic does not have.
_UNKNOWN = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - librdkafka's own codes carry the underscore
    }
)


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
    found = admin.list_offsets(asked, isolation_level=level, request_timeout=timeout_seconds)
    for place, future in found.items():
        try:
            offset = int(future.result(timeout_seconds).offset)
        except FutureTimeoutError as error:
            raise _timed_out(place) from error
        except KafkaException as error:
            if skip_unknown and error.args[0].code() in _UNKNOWN:
                continue
            raise
        # When a request times out, librdkafka reports an invalid offset (-1001) and no error.
        if offset < 0:
            raise _timed_out(place)
        offsets[place.topic, place.partition] = offset
    return offsets


def _timed_out(place: TopicPartition) -> KafkaException:
    reason = f"{place.topic} [{place.partition}]: the broker did not list the offset in time"
    return KafkaException(KafkaError(KafkaError._TIMED_OUT, reason))  # noqa: SLF001 - as above
