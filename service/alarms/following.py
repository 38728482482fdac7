"""A thread that reads the topics of results into memory, and never stops the service.

The followed topics are looked up every two seconds: output topics come and go with conditions, a
topic may get partitions, or be deleted and created again. Reading starts at the newest records of
each partition. An error is reported in the state of its topic, and tried again.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition

from kafka_client.clients import UserAdmin
from kafka_client.consumers import END_OF_PARTITION, open_consumer, place_of, reading_error
from kafka_client.partition_offsets import Edge, list_offsets
from kafka_client.rights import with_right
from kafka_client.topic_ids import read_topic_id
from service.alarms.memory import Start
from service.alarms.positions import make_key, make_tag
from service.alarms.reading import ForeignRecords, ReadingState
from service.alarms.records import Place, read_message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from confluent_kafka import Message

    from kafka_client.clients import UserConsumer
    from service.alarms.memory import Positions, RecentRecords
    from service.alarms.records import ResultRecord
    from service.settings import Settings

_LOGGER = logging.getLogger(__name__)
_CLIENT = "coincide-service-alarms"
_POLL_SECONDS = 0.1
_AT_ONCE = 500
# Max size of the records that the client has fetched and the service has not read. A burst fills
# this queue, whose default size is 64 MB.
_QUEUE_KBYTES = 8 * 1024
# Interval of the look-up of topics, and max wait for each of its answers.
_LOOK_SECONDS = 2.0
_ANSWER_SECONDS = 5.0
# Offsets read of a partition for each record that is kept: a transaction of one record has two.
_OFFSETS_PER_RECORD = 2
# Errors after which the offsets of a partition are looked up again.
_MOVED = frozenset(
    {
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001  librdkafka's own codes carry the underscore
        KafkaError.OFFSET_OUT_OF_RANGE,
    }
)
# Problem that every caller may read: an exception may contain paths and addresses.
_FAILED = "reading failed and is tried again; the log of the service has the reason"
# Sources of problems.
_TOPIC, _FETCH, _RECORDS = "topic", "fetch", "records"


class _Found(NamedTuple):
    """A topic in Kafka: tag of its id, and number of partitions."""

    tag: bytes
    partitions: int


class Follower:
    """Follows the topics of results.

    Parameters
    ----------
    settings : Settings
        Broker address, timeouts and bounds.
    topics : callable
        Returns the topics that are to be followed.
    memory : RecentRecords
        Receives the records.
    on_records : callable
        Called in the follower's thread after records were added.
    """

    def __init__(
        self,
        settings: Settings,
        topics: Callable[[], frozenset[str]],
        memory: RecentRecords,
        on_records: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._topics = topics
        self._memory = memory
        self._on_records = on_records
        self.state = ReadingState()
        self.key: bytes | None = None
        self._foreign = ForeignRecords()
        self._stopping = threading.Event()
        self._caught_up = threading.Event()
        self._thread: threading.Thread | None = None
        self._admin: UserAdmin | None = None
        # Partitions that have not been read to their end yet.
        self._behind: set[Place] = set()

    def start(self) -> None:
        """Start reading; return when existing records are read, or the broker does not answer."""
        self._stopping.clear()
        self._admin = UserAdmin(self._settings.client_properties(_CLIENT))
        self._thread = threading.Thread(target=self._run, name="alarms", daemon=True)
        self._thread.start()
        if not self._caught_up.wait(self._settings.broker_timeout_seconds):
            _LOGGER.warning("the recent alarms have not been read yet; the service starts anyway")

    def stop(self) -> None:
        """Stop reading and close the clients."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._admin = None

    def is_within(self, place: Place, offset: int) -> bool:
        """Return whether an offset is not beyond the end of a followed partition.

        Raises
        ------
        KafkaException
            The broker does not answer.
        """
        names = (it for it, found in self._memory.topics().items() if found[0] == place.tag)
        topic, admin = next(names, None), self._admin
        if topic is None or admin is None:
            return False
        there = (topic, place.partition)
        return offset <= list_offsets(admin, [there], Edge.END, _ANSWER_SECONDS)[there]

    def _run(self) -> None:
        """Run the thread."""
        while not self._stopping.is_set():
            try:
                self._follow()
            # Any error: reading begins again, and the service goes on.
            except Exception as error:  # noqa: BLE001  see the line above
                for topic in self._topics():
                    self.state.report(topic, _FETCH, _FAILED, f"{type(error).__name__}: {error}")
                self._stopping.wait(_LOOK_SECONDS)

    def _follow(self) -> None:
        """Read until the service stops, or until the topics changed.

        A client that has read a topic does not reliably read another one of the same name.
        """
        self._look()
        properties = self._settings.client_properties(_CLIENT)
        group = f"{self._settings.prefix}.service"
        consumer = open_consumer(
            properties,
            group,
            auto_offset_reset="error",
            queued_max_messages_kbytes=_QUEUE_KBYTES,
        )
        try:
            self._assign(consumer)
            next_look = time.monotonic() + _LOOK_SECONDS
            while not self._stopping.is_set():
                if not self._behind:
                    self._caught_up.set()
                if time.monotonic() >= next_look:
                    if self._look():
                        return
                    next_look = time.monotonic() + _LOOK_SECONDS
                messages = consumer.consume(_AT_ONCE, _POLL_SECONDS)
                if messages and self._take(messages):
                    return
        finally:
            consumer.close()

    def _assign(self, consumer: UserConsumer) -> None:
        names = {found[0]: topic for topic, found in self._memory.topics().items()}
        consumer.assign(
            [
                TopicPartition(names[place.tag], place.partition, offset)
                for place, offset in self._memory.positions().items()
            ]
        )

    def _look(self) -> bool:
        """Look the topics up; return whether the followed partitions changed."""
        wanted = self._topics()
        self.state.keep(wanted)
        followed = self._memory.topics()
        for topic in followed.keys() - wanted:
            self._forget(topic)
        for topic, found in self._describe(wanted).items():
            tag, partitions = followed.get(topic, (found.tag, 0))
            if tag != found.tag or found.partitions < partitions:
                self._forget(topic)
                partitions = 0
            if found.partitions > partitions:
                self._add(topic, found, partitions)
        return self._memory.topics() != followed

    def _describe(self, topics: frozenset[str]) -> dict[str, _Found]:
        """Return the existing topics; problems of the others are reported."""
        admin = self._admin
        if admin is None:
            return {}
        if self.key is None:
            cluster = admin.list_topics(timeout=_ANSWER_SECONDS).cluster_id
            self.key = make_key(cluster, self._settings.prefix)
        asked = TopicCollection(sorted(topics))
        described = admin.describe_topics(asked, request_timeout=_ANSWER_SECONDS)
        found = {}
        for topic, future in described.items():
            problem = None
            try:
                it = future.result(_ANSWER_SECONDS)
                tag = make_tag(topic, read_topic_id(it.topic_id))
                found[topic] = _Found(tag, len(it.partitions))
            except FutureTimeoutError:
                problem = "the broker does not answer"
            except KafkaException as error:
                user = self._settings.kafka_user
                problem = with_right(error.args[0], "Describe", topic, user).str()
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    problem = "the topic does not exist"
                    self._forget(topic)
            self.state.report(topic, _TOPIC, problem)
        return found

    def _add(self, topic: str, found: _Found, first: int) -> None:
        """Follow the partitions of a topic from a number on, if the broker answers."""
        admin = self._admin
        places = [(topic, number) for number in range(first, found.partitions)]
        if admin is None:
            return
        try:
            begins = list_offsets(admin, places, Edge.BEGIN, _ANSWER_SECONDS)
            ends = list_offsets(admin, places, Edge.END, _ANSWER_SECONDS)
        except KafkaException as error:
            self.state.report(topic, _TOPIC, error.args[0].str())
            return
        read = _OFFSETS_PER_RECORD * self._settings.recent_alarms
        starts = {
            place[1]: Start(begins[place], max(begins[place], ends[place] - read))
            for place in places
        }
        self._memory.follow(topic, found.tag, starts)
        self._behind |= {Place(found.tag, number) for number in starts}

    def _forget(self, topic: str) -> None:
        tag, _ = self._memory.topics().get(topic, (None, 0))
        self._behind = {it for it in self._behind if it.tag != tag}
        self._memory.forget(topic)
        self._foreign.forget(topic)
        self.state.report(topic, _FETCH, None)
        self.state.report(topic, _RECORDS, None)

    def _take(self, messages: Sequence[Message]) -> bool:
        """Add the records of messages; return whether topics must be looked up again."""
        tags = {topic: found[0] for topic, found in self._memory.topics().items()}
        records: list[ResultRecord] = []
        positions: Positions = {}
        moved: set[str] = set()
        for message in messages:
            topic, partition = place_of(message)
            error, offset = message.error(), message.offset()
            # Messages may remain of a topic that is not followed any more.
            if topic not in tags:
                continue
            place = Place(tags[topic], partition)
            if error is not None and error.code() in _MOVED:
                moved.add(topic)
            elif error is not None and error.code() != END_OF_PARTITION:
                refused = reading_error(message, error, self._settings.kafka_user)
                self.state.report(topic, _FETCH, refused.str())
                # A topic that cannot be read does not delay the start of the service.
                self._behind.discard(place)
            elif offset is not None:
                self.state.report(topic, _FETCH, None)
                positions[place] = offset
                if error is not None:
                    self._behind.discard(place)
                    continue
                positions[place] += 1
                record = read_message(message, place)
                if record is None:
                    problem = self._foreign.count(topic, partition, offset)
                    self.state.report(topic, _RECORDS, problem)
                else:
                    records.append(record)
        self._memory.add(records, positions)
        if records:
            self._on_records()
        for topic in moved:
            self._forget(topic)
        return bool(moved)
