"""Offset ranges of the topics that a replay reads, by stream and partition."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from cli.client.record_spans import record_spans
from cli.errors import BrokerError
from kafka_client.partition_offsets import OffsetRange

if TYPE_CHECKING:
    from cli.replay.setup import Setup
    from cli.settings import Settings
    from correlation.resources.streams import Stream
    from spark_jobs.driver.offsets import KafkaOffsets

# By stream and partition.
Spans = dict[str, dict[int, OffsetRange]]


class TopicsThere:
    """The existing topics of a broker.

    Parameters
    ----------
    settings
        Broker address.
    offsets
        Reads partitions and offsets from the broker.

    Raises
    ------
    KafkaException
        The broker does not answer.
    """

    def __init__(self, settings: Settings, offsets: KafkaOffsets) -> None:
        self._bootstrap = settings.bootstrap
        self._offsets = offsets
        self._partitions = offsets.partitions()

    def count_partitions(self, stream: Stream) -> int:
        """Return the number of partitions of a stream's topic.

        Raises
        ------
        BrokerError
            The topic does not exist.
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
        """Return the present offset range of each partition of the streams.

        Raises
        ------
        BrokerError
            The leader of a partition does not answer in time.
        KafkaException
            The broker does not answer.
        """
        places = {
            name: [(stream.topic, number) for number in range(setup.partitions[name])]
            for name, stream in setup.streams.items()
        }
        spans = record_spans(self._offsets, {it for found in places.values() for it in found})
        return {name: {place[1]: spans[place] for place in found} for name, found in places.items()}
