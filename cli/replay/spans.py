"""What is there of the topics that a replay reads: from where to where each partition goes."""

from __future__ import annotations

import difflib
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaException

from cli.errors import BrokerError, UsageError
from spark_jobs.offsets import KafkaOffsets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.replay.setup import Setup
    from cli.settings import Settings
    from correlation.streams import Stream


class Span(NamedTuple):
    """Offsets of a partition: of its oldest record, and one more than that of its last."""

    begin: int
    end: int


# By stream and partition.
Spans = dict[str, dict[int, Span]]


class TopicsThere:
    """The topics of a broker, as far as streams name them.

    Parameters
    ----------
    settings
        Where the broker is.
    offsets
        Asks it.

    Raises
    ------
    KafkaException
        It does not answer.
    """

    def __init__(self, settings: Settings, offsets: KafkaOffsets) -> None:
        self._bootstrap = settings.bootstrap
        self._offsets = offsets
        self._partitions = offsets.partitions()

    def count_partitions(self, stream: Stream) -> int:
        """Give the number of partitions of a stream's topic.

        Raises
        ------
        BrokerError
            There is no such topic.
        """
        if stream.topic not in self._partitions:
            similar = difflib.get_close_matches(stream.topic, self._partitions)
            remedy = f"similar ones: {', '.join(similar)}" if similar else "correct its topic"
            raise BrokerError(
                f"stream {stream.name}: there is no topic {stream.topic} at {self._bootstrap}; "
                f"{remedy}"
            )
        return self._partitions[stream.topic]

    def spans(self, setup: Setup) -> Spans:
        """Give what there is of each partition now.

        Records of open transactions, and what stands behind them, are not there yet. The marks
        that end transactions are no records: a span ends where the last record does.

        Raises
        ------
        BrokerError
            A partition does not answer in time.
        KafkaException
            The broker does not answer.
        """
        places = {
            name: [(stream.topic, number) for number in range(setup.partitions[name])]
            for name, stream in setup.streams.items()
        }
        asked = {place for found in places.values() for place in found}
        begins = self._offsets.begins(asked)
        ends = self._offsets.after_last_records(self._offsets.ends(asked), begins)
        silent = sorted(asked - ends.keys())
        if silent:
            topic, number = silent[0]
            raise BrokerError(f"partition {number} of {topic} does not answer")
        return {
            name: {place[1]: Span(min(begins[place], ends[place]), ends[place]) for place in found}
            for name, found in places.items()
        }


@contextmanager
def topics_there(settings: Settings) -> Iterator[TopicsThere]:
    """Ask a broker for its topics.

    Raises
    ------
    BrokerError
        It does not answer, also later.
    UsageError
        The Kafka properties of the settings are not what the client takes.
    """
    try:
        offsets = KafkaOffsets(settings.client, "coincide-cli")
    except KafkaException as error:
        raise UsageError(f"COINCIDE_KAFKA_PROPERTIES: {error.args[0].str()}") from error
    with closing(offsets):
        try:
            yield TopicsThere(settings, offsets)
        except KafkaException as error:
            raise BrokerError(f"no broker answers at {settings.bootstrap}: {error}") from error
