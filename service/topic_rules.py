"""Which topics streams and conditions may name, and what becomes of those that do not exist yet.

An output topic must be one that takes alarms and keeps them, and that nobody else lives by: not one
of Kafka's own, not a compacted one, not one of an installation of Coincide. Another installation is
known by its topics: `P.late`, for example, is one of an installation where all of the topics with
the prefix `P` exist. An event topic is only read: it may be anything but Kafka's or Coincide's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from correlation.errors import InvalidFieldError
from correlation.resources.topics import Topics, is_internal
from service.errors import InvalidDocumentError, TopicRefusedError

if TYPE_CHECKING:
    from correlation.resources.records import ResourceKind
    from service.settings import Settings
    from service.topics import TopicKeeper

# Field of a document that names its topic.
TOPIC_FIELDS: dict[ResourceKind, str] = {
    "stream": "topic",
    "condition": "output_topic",
    "template": "",
}
_ANOTHER = "name another topic"


class TopicRules:
    """Checks the topics that documents name, and creates them.

    Parameters
    ----------
    settings : Settings
        Names of the installation's own topics, and what else is allowed.
    keeper : TopicKeeper
        Asks the broker.
    """

    def __init__(self, settings: Settings, keeper: TopicKeeper) -> None:
        self._settings = settings
        self._keeper = keeper

    def check(self, kind: ResourceKind, topic: str | None) -> str | None:
        """Refuse a topic that a document must not name.

        Parameters
        ----------
        kind : {"stream", "condition", "template"}
            Of the document.
        topic : str or None
            That it names.

        Returns
        -------
        str or None
            The topic, where it has to be created first.

        Raises
        ------
        InvalidFieldError, InvalidDocumentError
            Naming the field and what to write instead.
        BrokerError, TopicRefusedError
            When the broker does not answer, or does not let the service ask.
        """
        if topic is None or (kind == "condition" and topic == self._settings.topics.alarms):
            return None
        field = TOPIC_FIELDS[kind]
        self._check_name(kind, field, topic)
        names = self._keeper.names()
        if topic not in names:
            if not self._settings.create_event_topics:
                raise InvalidDocumentError.of(
                    field,
                    f"there is no topic {topic!r} on the broker",
                    "create it, or name another",
                )
            return topic
        owner = _owner(topic, names)
        if kind == "condition" and owner is not None:
            problem = f"{topic} is a topic of the installation of Coincide with the prefix {owner}"
            raise InvalidFieldError(field, problem, _ANOTHER)
        self._check_facts(kind, field, topic)
        return None

    def create(self, kind: ResourceKind, topic: str) -> None:
        """Create a topic that `check` returned.

        Raises
        ------
        InvalidDocumentError
            When the broker does not want it.
        BrokerError
            When the broker does not answer.
        """
        try:
            self._keeper.create(topic)
        except TopicRefusedError as error:
            problem = f"the broker refuses to create {topic!r}: {error.detail}"
            raise InvalidDocumentError.of(TOPIC_FIELDS[kind], problem, _ANOTHER) from error

    def _check_name(self, kind: ResourceKind, field: str, topic: str) -> None:
        # No stream reads the alarms either: it would read those of its own conditions, and those of
        # every condition that is still to come.
        if topic in self._settings.topics.all():
            problem = f"{topic} is one of Coincide's own topics"
            raise InvalidFieldError(field, problem, _ANOTHER)
        if is_internal(topic):
            problem = f"{topic} is an internal topic of Kafka: its name begins with __"
            raise InvalidFieldError(field, problem, _ANOTHER)
        allowed = self._settings.output_topics
        if kind == "condition" and allowed and not any(_matches(topic, it) for it in allowed):
            raise InvalidFieldError(
                field,
                f"{topic} is not one of the allowed output topics",
                f"name one of {', '.join(allowed)}; or change COINCIDE_OUTPUT_TOPICS",
            )

    def _check_facts(self, kind: ResourceKind, field: str, topic: str) -> None:
        if self._keeper.is_internal(topic):
            problem = f"{topic} is an internal topic of Kafka"
            raise InvalidFieldError(field, problem, _ANOTHER)
        if kind == "condition" and self._keeper.is_compacted(topic):
            raise InvalidFieldError(
                field,
                f"{topic} is compacted: Kafka would keep only the newest alarm of each key",
                "name a topic with cleanup.policy=delete",
            )


def _owner(topic: str, names: frozenset[str]) -> str | None:
    """Return the prefix of the installation that a topic is reserved by, if all of it exists."""
    prefix, _, _ = topic.rpartition(".")
    topics = Topics(prefix)
    return prefix if topic in topics.reserved() and names.issuperset(topics.all()) else None


def _matches(topic: str, pattern: str) -> bool:
    """Return whether a topic is what a pattern says: a name, or the begin of one before `*`."""
    return topic.startswith(pattern[:-1]) if pattern.endswith("*") else topic == pattern
