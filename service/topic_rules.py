"""Rules for the topics that streams and conditions name, and creation of missing topics.

An output topic must not be an internal topic of Kafka, a compacted topic, or a topic of an
installation of Coincide. Another installation is recognised by its topics: `P.late`, for example,
belongs to an installation if all topics that every installation has exist with the prefix `P`. An
event topic is only read: it must not be an internal topic of Kafka or one of this installation's
own topics.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from correlation.errors import InvalidFieldError
from correlation.kinds import topics_of
from correlation.resources.topics import Topics, is_internal
from service.errors import InvalidDocumentError, TopicRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from correlation.resources.records import ResourceKind
    from service.settings import Settings
    from service.topics import TopicKeeper

# Field of a document that names its topic.
TOPIC_FIELDS: dict[ResourceKind, str] = {
    "stream": "topic",
    "condition": "output_topic",
    "template": "",
}
_ANOTHER = "use another topic"


class TopicRules:
    """Checks the topics that documents name, and creates them.

    Parameters
    ----------
    settings : Settings
        Names of the installation's own topics, and the allowed output topics.
    keeper : TopicKeeper
        Describes and creates topics.
    """

    def __init__(self, settings: Settings, keeper: TopicKeeper) -> None:
        self._settings = settings
        self._keeper = keeper

    def check(self, kind: ResourceKind, topic: str | None) -> str | None:
        """Check that a document may name a topic; see `TopicSurvey.check`.

        Raises
        ------
        BrokerError, TopicRefusedError
            When the broker does not answer or refuses to describe the topic.
        """
        return self.survey([(kind, topic)]).check(kind, topic)

    def survey(self, uses: Iterable[tuple[ResourceKind, str | None]]) -> TopicSurvey:
        """Ask the broker about all topics that documents name, in a fixed number of requests.

        Parameters
        ----------
        uses : iterable of (kind, topic)
            The kind of each document, and the topic that it names.

        Raises
        ------
        BrokerError, TopicRefusedError
            When the broker does not answer or refuses to describe a topic.
        """
        # Topics that are refused by their names are not described: the user may not have the right.
        own = self._settings.topics.alarms
        named = {(kind, it) for kind, it in uses if it and it != own and self._is_named(kind, it)}
        if not named:
            return TopicSurvey(self._settings, frozenset(), frozenset(), frozenset())
        names = self._keeper.names()
        outputs = {
            it for kind, it in named if kind == "condition" and _owner(it, names) is None
        } & names
        inputs = {it for kind, it in named if kind == "stream"} & names
        return TopicSurvey(
            self._settings,
            names,
            self._keeper.internal(inputs | outputs),
            self._keeper.compacted(outputs),
        )

    def create(self, topics: Mapping[str, ResourceKind]) -> None:
        """Create topics that `check` returned, each given with the kind of its document.

        Raises
        ------
        InvalidDocumentError
            When the broker refuses a topic.
        BrokerError
            When the broker does not answer.
        """
        for together in _without_collisions(topics):
            try:
                self._keeper.create(together)
            except TopicRefusedError as error:
                problem = f"the broker did not create {error.topic!r}: {error.detail}"
                field = TOPIC_FIELDS[topics[error.topic]]
                raise InvalidDocumentError.of(field, problem, _ANOTHER) from error

    def _is_named(self, kind: ResourceKind, topic: str) -> bool:
        """Return whether a document may name a topic, as far as its name shows."""
        try:
            _check_name(self._settings, kind, topic)
        except InvalidFieldError:
            return False
        return True


class TopicSurvey(NamedTuple):
    """Facts of the broker about topics that documents name.

    Parameters
    ----------
    settings : Settings
        As of `TopicRules`.
    names : frozenset of str
        All topics.
    internal, compacted : frozenset of str
        The internal topics, and the compacted output topics, among those that documents name.
    """

    settings: Settings
    names: frozenset[str]
    internal: frozenset[str]
    compacted: frozenset[str]

    def check(self, kind: ResourceKind, topic: str | None) -> str | None:
        """Check that a document may name a topic.

        Parameters
        ----------
        kind : {"stream", "condition", "template"}
            Kind of the document.
        topic : str or None
            Topic that the document names.

        Returns
        -------
        str or None
            The topic, if it must be created first.

        Raises
        ------
        InvalidFieldError, InvalidDocumentError
            When the topic is not allowed; names the field and the remedy.
        """
        if topic is None or (kind == "condition" and topic == self.settings.topics.alarms):
            return None
        field = TOPIC_FIELDS[kind]
        _check_name(self.settings, kind, topic)
        if topic not in self.names:
            if not self.settings.create_event_topics:
                raise InvalidDocumentError.of(
                    field,
                    f"topic {topic!r} does not exist",
                    "create it, or use another topic",
                )
            return topic
        owner = _owner(topic, self.names)
        if kind == "condition" and owner is not None:
            problem = f"{topic} belongs to the Coincide installation with the prefix {owner}"
            raise InvalidFieldError(field, problem, _ANOTHER)
        if topic in self.internal:
            problem = f"{topic} is an internal topic of Kafka"
            raise InvalidFieldError(field, problem, _ANOTHER)
        if kind == "condition" and topic in self.compacted:
            raise InvalidFieldError(
                field,
                f"{topic} is compacted: Kafka would keep only the newest alarm of each key",
                "use a topic with cleanup.policy=delete",
            )
        return None


def _check_name(settings: Settings, kind: ResourceKind, topic: str) -> None:
    """Check a name without a broker; errors as of `TopicSurvey.check`."""
    if kind == "condition" and topic == settings.topics.alarms:
        return
    field = TOPIC_FIELDS[kind]
    # A stream must not read the alarm topic either: it would read the alarms of its own conditions
    # and of every condition that is registered later.
    if topic in settings.topics.all():
        problem = f"{topic} is an internal topic of Coincide"
        raise InvalidFieldError(field, problem, _ANOTHER)
    if is_internal(topic):
        problem = f"{topic} is an internal topic of Kafka: its name begins with __"
        raise InvalidFieldError(field, problem, _ANOTHER)
    allowed = settings.output_topics
    if kind == "condition" and allowed and not any(_matches(topic, it) for it in allowed):
        raise InvalidFieldError(
            field,
            f"{topic} is not one of the allowed output topics",
            f"use one of {', '.join(allowed)}; or change COINCIDE_OUTPUT_TOPICS",
        )


def _without_collisions(topics: Iterable[str]) -> list[list[str]]:
    """Split topics, so that names of one part differ in more than `.` and `_`.

    Kafka refuses a name that differs from an existing one only in these, because names of metrics
    would be equal, but does not compare the names of one request.
    """
    parts: list[list[str]] = []
    seen: Counter[str] = Counter()
    for topic in sorted(topics):
        plain = topic.replace(".", "_")
        if seen[plain] == len(parts):
            parts.append([])
        parts[seen[plain]].append(topic)
        seen[plain] += 1
    return parts


def _owner(topic: str, names: frozenset[str]) -> str | None:
    """Return the prefix of the installation that owns a topic, if its common topics exist.

    Another installation may have fewer kinds of conditions, and thereby fewer channels. One of an
    earlier version has no topic of state.
    """
    for suffix in (it.removeprefix(".") for it in topics_of("").reserved()):
        prefix = topic.removesuffix(f".{suffix}")
        found = Topics(prefix)
        if prefix != topic and names.issuperset({*found.common()} - {found.state}):
            return prefix
    return None


def _matches(topic: str, pattern: str) -> bool:
    """Return whether a topic matches a pattern: a name, or a prefix followed by `*`."""
    return topic.startswith(pattern[:-1]) if pattern.endswith("*") else topic == pattern
