"""From where to where the records of partitions go; marks of transactions are no records."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaException

from cli.client.topics import broker_error
from cli.errors import BrokerError, UsageError
from spark_jobs.driver.offsets import KafkaOffsets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from cli.settings import Settings
    from kafka_client.partition_offsets import Place


class Span(NamedTuple):
    """Offsets of a partition: of its oldest record, and one more than that of its last.

    Both are 0 where there is no record.
    """

    begin: int
    end: int


@contextmanager
def kafka_offsets(settings: Settings) -> Iterator[KafkaOffsets]:
    """Connect to the broker of the settings.

    Raises
    ------
    BrokerError
        It does not answer, also to what it is asked while this is open.
    UsageError
        The Kafka properties of the settings are not what the client takes.
    """
    try:
        offsets = KafkaOffsets(settings.client, "coincide-cli")
    except KafkaException as error:
        raise UsageError(f"COINCIDE_KAFKA_PROPERTIES: {error.args[0].str()}") from error
    with closing(offsets):
        try:
            yield offsets
        except KafkaException as error:
            raise broker_error(settings, error) from error


def record_spans(offsets: KafkaOffsets, places: Collection[Place]) -> dict[Place, Span]:
    """Give what there is of each partition now.

    Records of open transactions, and what stands behind them, are not there yet.

    Parameters
    ----------
    offsets
        Asks the broker.
    places
        Topic and number of each partition.

    Raises
    ------
    BrokerError
        A partition does not answer in time.
    KafkaException
        The broker does not answer.
    """
    begins = offsets.begins(places)
    ends = offsets.after_last_records(offsets.ends(places), begins)
    silent = sorted(set(places) - ends.keys())
    if silent:
        topic, number = silent[0]
        raise BrokerError(f"partition {number} of {topic} does not answer")
    return {place: Span(min(begins[place], ends[place]), ends[place]) for place in places}
