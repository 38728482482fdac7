"""Uses of every right that the manual lists, by the code of the process that needs it."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from cli.client.backup import CONFIG, PARTS, STATE, Backup, read_backup, restore
from cli.client.backup import Record as KeptRecord
from cli.client.committed import read_committed
from cli.client.events import EventSender, close_stream
from cli.client.repair import find_unreadable, remove
from cli.settings import Settings as CliSettings
from correlation.engine.heartbeats import Heartbeat
from correlation.resources.streams import Stream
from kafka_client.clients import UserAdmin
from kafka_client.consumers import is_record, open_consumer, read_ranges
from kafka_client.partition_offsets import Edge, list_offsets, list_ranges
from kafka_client.topic_offsets import KafkaOffsets
from kafka_client.users import user_of
from service.alarms.feed import AlarmFeed
from service.alarms.records import Selection
from service.log import TopicLog
from service.lookup import RecordFinder
from service.settings import Settings as ServiceSettings
from service.stream_topics import StreamTopics
from service.topics import TopicKeeper
from service.transactions import NewRecord, Others, Transactions
from spark_jobs.driver.config_watch import ConfigWatch
from spark_jobs.driver.reports import Reporter
from spark_jobs.driver.rivals import refuse_rivals
from spark_jobs.settings import Settings as JobSettings
from spark_jobs.sink.transactions import PartitionProducer
from spark_jobs.source.range_reader import reader_of
from spark_jobs.source.reading import Reading
from spark_jobs.worker.envelope import Record
from spark_jobs.worker.packing import Packing
from tests.support.claims import claim, target
from tests.support.kafka import Sent, create_topics, produce
from tests.support.patience import PATIENCE_SECONDS, SERVICE_SECONDS, wait_until
from tests.support.secured_kafka import Right

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cli.client.repair import Found
    from kafka_client.settings import ClientSettings
    from spark_jobs.sink.options import Owner
    from tests.support.secured_kafka import SecuredBroker, User

MANUAL = Path(__file__).parents[2] / "docs" / "configuration.md"
EVENT_TOPICS, OUTPUT_TOPICS = "event topics", "output topics"
_ROW = re.compile(r"^\| (\w+) \| (topic|group|transactional-id) \| (.+) \| (.+) \|$", re.MULTILINE)
_ASK_SECONDS = 0.5
_TEN_YEARS_MS = str(10 * 365 * 24 * 3600 * 1000)


class ListedRight(NamedTuple):
    """A right in the manual's table, of one user, resource and operation."""

    user: str
    resource: str
    name: str
    operation: str

    def of(self, names: Mapping[str, str], prefix: str) -> Right:
        """Return the right for an installation.

        Parameters
        ----------
        names
            Topics in place of ``event topics`` and ``output topics``.
        prefix
            Prefix of the installation.
        """
        name = names.get(self.name, self.name.strip("`").replace("PREFIX", prefix))
        return Right(self.operation, self.resource, name)


def listed_rights() -> list[ListedRight]:
    """Return all rights in the manual's table."""
    return [
        ListedRight(user, resource, name, operation)
        for user, resource, names, operations in _ROW.findall(MANUAL.read_text(encoding="utf-8"))
        for name in names.split(", ")
        for operation in operations.split(", ")
    ]


class Installation:
    """The topics of an installation without processes, and the settings of its users.

    Parameters
    ----------
    broker
        Broker of the installation.
    users
        User of ``service``, ``job``, ``cli`` and ``backup``.
    prefix
        Prefix of the topics.
    """

    def __init__(self, broker: SecuredBroker, users: Mapping[str, User], prefix: str) -> None:
        self.bootstrap = broker.bootstrap
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        # Log of the processes' code; set by the test.
        self.logged: Callable[[], str] = str
        self.names = {EVENT_TOPICS: f"{prefix}-events", OUTPUT_TOPICS: f"{prefix}-output"}
        self.prefix = prefix
        given = {
            name: {
                "bootstrap": broker.secured,
                "prefix": prefix,
                "kafka_password": user.password,
                "kafka_properties": broker.properties(user),
            }
            for name, user in users.items()
        }
        seconds = dict.fromkeys(
            ("broker_timeout_seconds", "write_timeout_seconds"), SERVICE_SECONDS
        )
        self.service = ServiceSettings.model_validate(
            {**given["service"], **seconds, "explain_seconds": SERVICE_SECONDS}
        )
        self.job = JobSettings.model_validate(given["job"])
        self.cli = CliSettings.model_validate(given["cli"])
        self.backup = CliSettings.model_validate(given["backup"])
        self.events = self.names[EVENT_TOPICS]
        self.stream = Stream("s", self.events, max_uncertainty_us=1, max_delay_us=1)
        topics = self.service.topics
        self._owner: Owner | None = None
        create_topics(broker.bootstrap, dict.fromkeys((*topics.all(), *self.names.values()), 1))
        # A user without the right to read an empty topic is not refused.
        lists = topics.compacted_channels()
        read = (topics.config, topics.heartbeats, topics.metrics, topics.state)
        for topic in (*read, *lists, *self.names.values()):
            self.send(topic, b"{}")

    def owner(self) -> Owner:
        """Return the claim of the installation, as a user with all rights has written it."""
        if self._owner is None:
            self._owner = claim(self.job.topics, {"bootstrap.servers": self.bootstrap})
        return self._owner

    def right(self, listed: ListedRight) -> Right:
        """Return a listed right for this installation."""
        return listed.of(self.names, self.prefix)

    def rights(self) -> dict[str, list[Right]]:
        """Return all listed rights for this installation, by user."""
        found: dict[str, list[Right]] = {}
        for it in listed_rights():
            found.setdefault(it.user, []).append(self.right(it))
        return found

    def send(self, topic: str, value: bytes) -> None:
        """Send a record that the config topic's readers cannot read."""
        produce(self.bootstrap, topic, [Sent(value, b"stream/unreadable")])

    def end(self, topic: str) -> int:
        """Return the end offset of a topic's partition."""
        place = (topic, 0)
        admin = UserAdmin({"bootstrap.servers": self.bootstrap})
        return list_offsets(admin, [place], Edge.END, PATIENCE_SECONDS)[place]

    def delete(self, topic: str) -> None:
        """Delete a topic, if it exists, and wait until it is gone."""
        if topic in self._topics():
            self._admin.delete_topics([topic])[topic].result(PATIENCE_SECONDS)
        wait_until(lambda: topic not in self._topics())

    def set_outdated(self, topic: str) -> None:
        """Set the value that an earlier version set for a topic's tombstones."""
        entry = ConfigEntry(
            "delete.retention.ms", _TEN_YEARS_MS, incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        self._admin.incremental_alter_configs([resource])[resource].result(PATIENCE_SECONDS)

    def _topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=PATIENCE_SECONDS).topics)


Use = Callable[[Installation, str], object]


def _read_log(place: Installation, topic: str) -> None:
    log = TopicLog(place.service, topic, lambda _: None)
    try:
        log.start()
    finally:
        log.stop()


def _create_own(place: Installation, _: str) -> None:
    place.delete(f"{place.prefix}.topk")
    TopicKeeper(place.service).ensure_own()


def _create(place: Installation, topic: str) -> None:
    place.delete(topic)
    TopicKeeper(place.service).create([topic])
    # A user without the right to read an empty topic is not refused.
    place.send(topic, b"{}")


def _check_own(place: Installation, _: str) -> None:
    TopicKeeper(place.service).ensure_own()


def _alter(place: Installation, topic: str) -> None:
    place.set_outdated(topic)
    TopicKeeper(place.service).ensure_own()


def _follow(settings: ClientSettings, topic: str, group: str) -> None:
    """Follow a topic until the client knows whether the group has the right."""
    properties = settings.client_properties("tests")
    wanted = {**properties, "group.id": group, "enable.auto.commit": False, "log_level": 2}
    with closing(Consumer(wanted)) as consumer:
        place = TopicPartition(topic, 0, 0)
        consumer.assign([place])

        def is_answered() -> bool:
            # Without the right the client does not answer this request, and reports the right.
            with suppress(KafkaException):
                consumer.committed([place], _ASK_SECONDS)
                return True
            while (message := consumer.poll(0)) is not None:
                is_record(message, user_of(properties))
            return False

        wait_until(is_answered)


def _write_in_transaction(place: Installation, topic: str) -> None:
    job = place.job
    own = target(job.topics, place.owner(), query=f"query-{time.monotonic_ns()}")
    PartitionProducer(own, job.client).write(0, [Record(topic, b"key", b"{}")])


def _write_alarm(place: Installation, _: str) -> None:
    _write_in_transaction(place, place.job.topics.alarms)


def _report(place: Installation, topic: str, use: Callable[[Reporter], None]) -> None:
    """Write a record of the job, and wait until it is stored or refused."""
    job, end = place.job, place.end(topic)
    with closing(Reporter(job.client, job.topics, lambda: 0, str)) as reporter:
        use(reporter)

        def is_answered() -> bool:
            reporter.refresh()
            return place.end(topic) > end or "was not written" in place.logged()

        wait_until(is_answered)


def _heartbeat(place: Installation, topic: str) -> None:
    _report(place, topic, lambda it: it.heartbeats([Heartbeat("s", 0, 0, 0)]))


def _watch(place: Installation, topic: str) -> None:
    with ConfigWatch(place.job.client, topic) as watch:
        watch.read_to_end()


def _ends(place: Installation, topic: str) -> None:
    with closing(KafkaOffsets(place.job.client, f"{place.prefix}.job")) as offsets:
        offsets.ends([(topic, 0)])


def _read_batch(place: Installation, topic: str) -> None:
    """Read the records of a batch, as the source of the query does."""
    packing = Packing(place.job.topics, (), (1,), 1_000)
    reading = Reading(uuid.uuid4().hex, f"{place.prefix}.source", place.job.client, packing, 1)
    with closing(reader_of(reading)) as reader:
        for _ in reader.read([(topic, 0, 0, place.end(topic))], skips_missing=True):
            pass


def _send(place: Installation, topic: str) -> str | None:
    sender = EventSender(place.cli)
    sender.send(topic, None, b"{}")
    return sender.finish().first_error


def _read(place: Installation, topic: str) -> list[object]:
    return list(read_committed(place.cli, topic))


def _remove(place: Installation, topic: str) -> list[Found]:
    place.send(topic, b"{")
    return remove(place.cli, find_unreadable(place.cli))


def _rivals(place: Installation, _: str) -> None:
    refuse_rivals(place.job.client, place.job.topics, "checkpoint", lambda: 0, Event())


def _read_whole(place: Installation, topic: str) -> None:
    places = [(topic, 0)]
    with closing(open_consumer(place.job.client, f"{topic}.reader")) as consumer:
        there = list_ranges(consumer, places, PATIENCE_SECONDS)
        assert list(read_ranges(consumer, there, time.monotonic() + PATIENCE_SECONDS))


def _reset(place: Installation, _: str) -> None:
    topics = StreamTopics(
        place.service, TopicKeeper(place.service), lambda names: dict.fromkeys(names, 0)
    )
    topics.reset_watermark(place.stream)


def _configure(place: Installation, topic: str) -> None:
    Transactions(place.service, topic).write([NewRecord(b"stream/x", None)], SERVICE_SECONDS)


def _audit(place: Installation, topic: str) -> None:
    records = [NewRecord(b"stream/x", None)]
    transactions = Transactions(place.service, place.service.topics.config)
    transactions.write(records, SERVICE_SECONDS, Others(topic, lambda _: records))


def _recent(place: Installation, _: str) -> dict[str, str | None]:
    feed = AlarmFeed(place.service, lambda: frozenset({place.names[OUTPUT_TOPICS]}))
    try:
        feed.start()
        return feed.page(Selection(), 1, None).reading
    finally:
        feed.stop()


def _sample(place: Installation, topic: str) -> object:
    return RecordFinder(place.service).read_newest([topic], 1)


def _is_compacted(place: Installation, topic: str) -> bool:
    return bool(TopicKeeper(place.service).compacted([topic]))


def _restore(place: Installation, topic: str) -> None:
    """Restore a topic that has no records."""
    part = CONFIG if topic == place.cli.topics.config else STATE
    kept = Backup(place.prefix, 0, [KeptRecord(part, b"stream/unreadable", b"{}", [])])
    place.delete(topic)
    create_topics(place.bootstrap, {topic: 1})
    try:
        restore(place.backup, kept, [part])
    finally:
        # A user without the right to read an empty topic is not refused.
        place.send(topic, b"{}")


_WRITTEN = ("alarms", "late", "dead-letter", "topk", "topk.current")
# Use of each right of the manual.
USES: dict[tuple[str, str, str, str], Use] = {
    ("service", "topic", "`PREFIX.*`", "Create"): _create_own,
    ("service", "topic", "`PREFIX.*`", "Describe"): _check_own,
    ("service", "topic", "`PREFIX.*`", "DescribeConfigs"): _check_own,
    ("service", "topic", "`PREFIX.config`", "Read"): _read_log,
    ("service", "topic", "`PREFIX.config`", "Write"): _configure,
    ("service", "topic", "`PREFIX.metrics`", "Read"): _read_log,
    ("service", "topic", "`PREFIX.metrics`", "AlterConfigs"): _alter,
    ("service", "topic", "`PREFIX.audit`", "Write"): _audit,
    ("service", "topic", "`PREFIX.heartbeats`", "Write"): _reset,
    ("service", "topic", "`PREFIX.alarms`", "Read"): _recent,
    ("service", "topic", "`PREFIX.topk`", "Read"): _recent,
    ("service", "topic", "`PREFIX.topk.current`", "Read"): _read_log,
    ("service", "topic", EVENT_TOPICS, "Create"): _create,
    ("service", "topic", EVENT_TOPICS, "DescribeConfigs"): _is_compacted,
    ("service", "topic", EVENT_TOPICS, "Read"): _sample,
    ("service", "topic", OUTPUT_TOPICS, "Create"): _create,
    ("service", "topic", OUTPUT_TOPICS, "DescribeConfigs"): _is_compacted,
    ("service", "topic", OUTPUT_TOPICS, "Read"): _recent,
    ("service", "group", "`PREFIX.service`", "Describe"): lambda place, group: _follow(
        place.service, place.service.topics.config, group
    ),
    ("service", "transactional-id", "`PREFIX.config`", "Write"): _configure,
    ("job", "topic", "`PREFIX.config`", "Read"): _watch,
    ("job", "topic", EVENT_TOPICS, "Read"): _ends,
    ("job", "topic", "`PREFIX.heartbeats`", "Read"): _read_batch,
    ("job", "topic", "`PREFIX.heartbeats`", "Write"): _heartbeat,
    ("job", "topic", "`PREFIX.metrics`", "Read"): _rivals,
    ("job", "topic", "`PREFIX.metrics`", "Write"): lambda place, topic: _report(
        place, topic, lambda it: it.state("starting")
    ),
    ("job", "topic", "`PREFIX.state`", "Read"): _read_whole,
    ("job", "topic", "`PREFIX.state`", "Write"): _write_in_transaction,
    **{("job", "topic", f"`PREFIX.{it}`", "Write"): _write_in_transaction for it in _WRITTEN},
    ("job", "topic", OUTPUT_TOPICS, "Write"): _write_in_transaction,
    ("job", "group", "`PREFIX.*`", "Read"): _write_alarm,
    ("job", "transactional-id", "`PREFIX.*`", "Write"): _write_alarm,
    ("cli", "topic", EVENT_TOPICS, "Read"): _read,
    ("cli", "topic", EVENT_TOPICS, "Write"): _send,
    ("cli", "topic", "`PREFIX.heartbeats`", "Write"): lambda place, _: close_stream(
        place.cli, "s", place.events
    ),
    **{("cli", "topic", f"`PREFIX.{it}`", "Read"): _read for it in _WRITTEN},
    ("cli", "topic", OUTPUT_TOPICS, "Read"): _read,
    ("cli", "topic", "`PREFIX.config`", "Read"): _read,
    ("cli", "topic", "`PREFIX.config`", "Write"): _remove,
    ("cli", "group", "`PREFIX.cli`", "Describe"): lambda place, group: _follow(
        place.cli, place.cli.topics.alarms, group
    ),
    **{
        ("backup", "topic", f"`PREFIX.{part}`", operation): use
        for part in PARTS
        for operation, use in (("Read", lambda it, _: read_backup(it.backup)), ("Write", _restore))
    },
    ("backup", "group", "`PREFIX.cli`", "Describe"): lambda place, group: _follow(
        place.backup, place.backup.topics.config, group
    ),
    ("backup", "transactional-id", "`PREFIX.cli.restore`", "Write"): lambda place, _: _restore(
        place, place.backup.topics.config
    ),
}
