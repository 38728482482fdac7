"""Topics of streams: checks of their timestamp type, and resets of watermarks."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import orjson
from confluent_kafka import KafkaException, Producer

from correlation.engine.heartbeats import RESET, Heartbeat, heartbeat_to_record
from kafka_client.clients import UserAdmin
from kafka_client.partition_offsets import Edge, list_offsets
from kafka_client.rights import with_right
from service.errors import BrokerError, ServiceError
from service.own_topics import CLEANUP, NOT_COMPACTED, RETENTION, STAMPED_BY_KAFKA, TIMESTAMPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from confluent_kafka import KafkaError, Message

    from correlation.resources.streams import Stream
    from service.settings import Settings
    from service.topics import TopicKeeper, TopicProblem

_LOGGER = logging.getLogger(__name__)

_CONSEQUENCES = {
    CLEANUP: "Kafka removes an event when a later record has its key, even if the job has not read "
    "it yet, or needs it again without its checkpoint",
    TIMESTAMPS: "a live stream cannot reject events dated in the future, and one "
    "wrong clock makes all other events late",
    RETENTION: "conditions need events for a longer time, and a job without its checkpoint cannot "
    "read them again",
}


class StreamTopics:
    """Checks the topics of streams and resets watermarks.

    Parameters
    ----------
    settings : Settings
        Settings of the service.
    keeper : TopicKeeper
        Reads the settings of topics.
    horizons_us : callable
        See `Registry.horizons_us`.
    """

    def __init__(
        self,
        settings: Settings,
        keeper: TopicKeeper,
        horizons_us: Callable[[Iterable[str]], Mapping[str, int]],
    ) -> None:
        self._settings = settings
        self._keeper = keeper
        self._horizons_us = horizons_us

    def problems(self, streams: Iterable[Stream]) -> tuple[TopicProblem, ...] | None:
        """Find compacted topics; of live streams, also producer timestamps and short retention.

        A job without a checkpoint reads the buffered events again. The retention that this needs
        is longer by the time for which the job is stopped, which is not known.

        Parameters
        ----------
        streams : iterable of Stream
            Streams whose topic does not exist are skipped.

        Returns
        -------
        tuple of TopicProblem, or None
            None when the settings of the topics cannot be read.
        """
        found = list(streams)
        horizons = self._horizons_us(stream.name for stream in found if _is_live(stream))
        needed: dict[str, dict[str, str]] = {}
        for stream in found:
            settings = needed.setdefault(stream.topic, {**NOT_COMPACTED})
            if _is_live(stream):
                horizon_ms = -(-horizons[stream.name] // 1_000)
                retention_ms = max(horizon_ms, int(settings.get(RETENTION, 0)))
                settings |= {**STAMPED_BY_KAFKA, RETENTION: str(retention_ms)}
        try:
            return self._keeper.check_event_topics(needed)
        except ServiceError as error:
            _LOGGER.warning("the settings of topics could not be read: %s", error)
            return None

    def warnings(self, streams: Iterable[Stream]) -> list[str]:
        """Describe the problems in sentences, and log them; parameters as in `problems`."""
        return [sentence for _, sentence in self._warnings(streams)]

    def warnings_by_stream(self, streams: Sequence[Stream]) -> dict[str, list[str]]:
        """Describe the problems as `warnings` does, by stream; streams without any are missing."""
        found = self._warnings(streams)
        by_stream = {
            stream.name: [
                sentence
                for it, sentence in found
                if it.topic == stream.topic and (_is_live(stream) or it.setting == CLEANUP)
            ]
            for stream in streams
        }
        return {name: sentences for name, sentences in by_stream.items() if sentences}

    def _warnings(self, streams: Iterable[Stream]) -> list[tuple[TopicProblem, str]]:
        """Return problems and the sentences about them, and log the sentences."""
        found = [
            (
                it,
                (
                    f"topic: {it.topic} has {it.setting}={it.found}: "
                    f"{_CONSEQUENCES[it.setting]}; set {it.setting}={it.needed} on the topic"
                ),
            )
            for it in self.problems(streams) or ()
        ]
        for _, sentence in found:
            _LOGGER.warning("%s", sentence)
        return found

    def reset_watermark(self, stream: Stream) -> dict[int, int]:
        """Write a reset of a stream's watermark to the heartbeat topic.

        Parameters
        ----------
        stream : Stream
            The watermark then follows from records after the present end offsets of its topic.

        Returns
        -------
        dict of int to int
            These end offsets, by partition.

        Raises
        ------
        BrokerError
            When Kafka does not answer or refuses; some partitions may already be reset.
        """
        seconds = self._settings.broker_timeout_seconds
        ends = self._ends(stream.topic, seconds)
        producer = Producer(
            {
                **self._settings.client_properties("coincide-service-heartbeats"),
                "acks": "all",
                "enable.idempotence": True,
                "message.timeout.ms": int(seconds * 1000),
            }
        )
        answers: list[KafkaError | None] = []

        def note(error: KafkaError | None, _: Message) -> None:
            answers.append(error)

        # For a topic that does not exist, one reset without a partition is written.
        for partition, offset in ends.items() or [(None, None)]:
            heartbeat = Heartbeat(stream.name, partition, RESET, offset)
            producer.produce(
                self._settings.topics.heartbeats,
                orjson.dumps(heartbeat_to_record(heartbeat)),
                stream.name.encode(),
                on_delivery=note,
            )
        unsent = producer.flush(seconds)
        topic, user = self._settings.topics.heartbeats, self._settings.kafka_user
        failures = (it for it in answers if it is not None)
        refused = next((with_right(it, "Write", topic, user).str() for it in failures), None)
        if unsent or refused is not None:
            raise BrokerError(
                f"the reset was not written: {refused or 'the broker did not answer in time'}"
            )
        return ends

    def _ends(self, topic: str, seconds: float) -> dict[int, int]:
        places = [(topic, number) for number in range(self._keeper.partitions(topic))]
        admin = UserAdmin(self._settings.client_properties("coincide-service-admin"))
        try:
            found = list_offsets(admin, places, Edge.END, seconds)
        except KafkaException as error:
            raise BrokerError(f"the end offsets of {topic} could not be read: {error}") from error
        return {number: offset for (_, number), offset in found.items()}


def _is_live(stream: Stream) -> bool:
    return stream.clock == "live"
