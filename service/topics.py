"""Coincide's own topics: created at start if they are missing, checked if they exist.

The settings of an existing topic are not changed: differences are reported in the log and by
/readyz, because its owner may have chosen them. The exception is a harmful value that an earlier
version of this software set: it is altered at start.
"""

from __future__ import annotations

import logging
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from kafka_client.clients import UserAdmin
from kafka_client.rights import with_right
from service.errors import BrokerError, TopicRefusedError
from service.own_topics import (
    CLEANUP,
    STAMPED_BY_KAFKA,
    UNLIMITED,
    TopicSpec,
    own_topics,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from concurrent.futures import Future

    from service.settings import Settings

_T = TypeVar("_T")
_LOGGER = logging.getLogger(__name__)

# Errors that the requested topic causes, not the broker.
_REFUSALS = frozenset(
    {
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.POLICY_VIOLATION,
        KafkaError.INVALID_PARTITIONS,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    }
)
_VERBS = {
    "Create": "creating",
    "Describe": "describing",
    "DescribeConfigs": "describing",
    "AlterConfigs": "altering",
}


class TopicProblem(NamedTuple):
    """A setting of an existing topic that differs from the required value."""

    topic: str
    setting: str
    found: str
    needed: str


class TopicKeeper:
    """Creates and checks topics.

    Parameters
    ----------
    settings : Settings
        Broker address, timeouts, and properties of new topics.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._admin: UserAdmin | None = None

    def ensure_own(self) -> tuple[TopicProblem, ...]:
        """Create Coincide's own topics; log and return the problems of topics that existed.

        Raises
        ------
        BrokerError, TopicRefusedError
            When the broker does not answer or refuses to create one.
        """
        specs = own_topics(self._settings)
        partitions = self._partitions()
        existing = [spec for spec in specs if spec.name in partitions]
        self._create([spec for spec in specs if spec.name not in partitions])
        problems = self._check(existing, partitions)
        for it in problems:
            _LOGGER.warning("topic %s: %s is %s but should be %s; Coincide does not change it", *it)
        return problems

    def check_event_topics(
        self, needed: Mapping[str, Mapping[str, str]]
    ) -> tuple[TopicProblem, ...]:
        """Find settings of topics that do not suit their streams.

        Parameters
        ----------
        needed : mapping of str to mapping
            Needed settings of each topic; numbers may be larger. Topics that do not exist are left
            out.

        Raises
        ------
        BrokerError, TopicRefusedError
            When the broker does not answer or refuses to describe the topics.
        """
        there = self._partitions()
        specs = [
            TopicSpec(topic, there[topic], settings, frozenset(settings))
            for topic, settings in sorted(needed.items())
            if topic in there
        ]
        return self._check(specs, there)

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic; 0 if it does not exist.

        Raises
        ------
        BrokerError
            When the broker does not answer.
        """
        return self._partitions().get(topic, 0)

    def names(self) -> frozenset[str]:
        """Return the names of all topics.

        Raises
        ------
        BrokerError
            When the broker does not answer.
        """
        return frozenset(self._partitions())

    def internal(self, topics: Collection[str]) -> frozenset[str]:
        """Return those of some existing topics that the broker marks as internal.

        Raises
        ------
        BrokerError, TopicRefusedError
            When the broker does not answer or refuses to describe a topic.
        """
        if not topics:
            return frozenset()
        described = self._client().describe_topics(
            TopicCollection(sorted(topics)), request_timeout=self._settings.broker_timeout_seconds
        )
        found = {name: self._result(it, "Describe", name) for name, it in described.items()}
        return frozenset(name for name, it in found.items() if it.is_internal)

    def compacted(self, topics: Collection[str]) -> frozenset[str]:
        """Return those of some existing topics that are compacted; errors as in `internal`."""
        resources = {ConfigResource(ResourceType.TOPIC, it): it for it in sorted(topics)}
        if not resources:
            return frozenset()
        described = self._client().describe_configs(
            list(resources), request_timeout=self._settings.broker_timeout_seconds
        )
        found = set()
        for resource, future in described.items():
            name = resources[resource]
            entries = self._result(future, "DescribeConfigs", name)
            if "compact" in str(entries[CLEANUP].value).split(","):
                found.add(name)
        return frozenset(found)

    def create(self, topics: Collection[str]) -> None:
        """Create topics for events or alarms; Kafka stamps their records.

        Raises
        ------
        BrokerError
            When the broker does not answer.
        TopicRefusedError
            When the broker refuses a topic.
        """
        partitions = self._settings.event_partitions
        self._create([TopicSpec(it, partitions, STAMPED_BY_KAFKA) for it in sorted(topics)])

    def _client(self) -> UserAdmin:
        if self._admin is None:
            self._admin = UserAdmin(self._settings.client_properties("coincide-service-admin"))
        return self._admin

    def _partitions(self) -> dict[str, int]:
        try:
            found = self._client().list_topics(timeout=self._settings.broker_timeout_seconds)
        except KafkaException as error:
            raise BrokerError(
                f"Kafka does not answer at {self._settings.bootstrap}: {error.args[0].str()}"
            ) from error
        return {name: len(topic.partitions) for name, topic in found.topics.items()}

    def _create(self, specs: list[TopicSpec]) -> None:
        if not specs:
            return
        replicas = self._settings.replication_factor
        created = self._client().create_topics(
            [
                NewTopic(
                    spec.name,
                    num_partitions=spec.partitions,
                    replication_factor=replicas,
                    config=dict(spec.settings),
                )
                for spec in specs
            ],
            operation_timeout=self._settings.broker_timeout_seconds,
            request_timeout=self._settings.broker_timeout_seconds,
        )
        for name, future in created.items():
            try:
                self._result(future, "Create", name)
            except BrokerError as error:
                # Another service that starts at the same time may have created it, or the user may
                # not describe it, which raises the error that names the right.
                if not _already_there(error.__cause__):
                    raise
                self.internal([name])

    def _check(
        self, specs: list[TopicSpec], partitions: Mapping[str, int]
    ) -> tuple[TopicProblem, ...]:
        resources = {
            ConfigResource(ResourceType.TOPIC, spec.name): spec for spec in specs if spec.checked
        }
        problems = [
            TopicProblem(spec.name, "partitions", str(partitions[spec.name]), "1")
            for spec in specs
            if spec.one_partition and partitions[spec.name] != 1
        ]
        if not resources:
            return tuple(problems)
        described = self._client().describe_configs(
            list(resources), request_timeout=self._settings.broker_timeout_seconds
        )
        for resource, future in described.items():
            spec = resources[resource]
            found = self._result(future, "DescribeConfigs", spec.name)
            problems += [
                TopicProblem(spec.name, setting, str(found[setting].value), spec.settings[setting])
                for setting in sorted(spec.checked)
                if not _is_enough(str(found[setting].value), spec.settings[setting])
            ]
            outdated = {
                setting: value
                for setting, value in spec.outdated.items()
                if str(found[setting].value) == value
            }
            problems += self._renew(spec, outdated)
        return tuple(problems)

    def _renew(self, spec: TopicSpec, outdated: Mapping[str, str]) -> list[TopicProblem]:
        """Alter outdated settings of a topic; return the settings that could not be altered."""
        if not outdated:
            return []
        entries = [
            ConfigEntry(
                setting, spec.settings[setting], incremental_operation=AlterConfigOpType.SET
            )
            for setting in outdated
        ]
        resource = ConfigResource(ResourceType.TOPIC, spec.name, incremental_configs=entries)
        altered = self._client().incremental_alter_configs(
            [resource], request_timeout=self._settings.broker_timeout_seconds
        )
        try:
            self._result(altered[resource], "AlterConfigs", spec.name)
        except (BrokerError, TopicRefusedError) as error:
            _LOGGER.warning("topic %s could not be altered: %s", spec.name, error.detail)
            return [
                TopicProblem(spec.name, setting, value, spec.settings[setting])
                for setting, value in outdated.items()
            ]
        for setting, value in outdated.items():
            new = spec.settings[setting]
            _LOGGER.info("topic %s: %s altered from %s to %s", spec.name, setting, value, new)
        return []

    def _result(self, future: Future[_T], operation: str, topic: str) -> _T:
        """Wait for the answer to an operation on a topic."""
        try:
            return future.result(self._settings.broker_timeout_seconds)
        except (KafkaException, FutureTimeoutError) as error:
            found = error.args[0] if error.args else None
            if isinstance(found, KafkaError) and found.code() in _REFUSALS:
                user = self._settings.kafka_user
                refused = with_right(found, operation, topic, user)
                raise TopicRefusedError(refused.str(), topic) from error
            reason = (
                found.str()
                if isinstance(found, KafkaError)
                else "the broker did not answer in time"
            )
            raise BrokerError(f"{_VERBS[operation]} {topic}: {reason}") from error


def _already_there(cause: BaseException | None) -> bool:
    found = cause.args[0] if cause is not None and cause.args else None
    return isinstance(found, KafkaError) and found.code() == KafkaError.TOPIC_ALREADY_EXISTS


def _is_enough(found: str, needed: str) -> bool:
    """Return whether a setting suffices: numbers may be larger, other values must be equal."""
    if needed.isdecimal():
        return found == UNLIMITED or (found.isdecimal() and int(found) >= int(needed))
    return set(found.split(",")) == {needed}
