"""The existing event topics, remembered while a response of a broker omits one of them.

A topic is identified by Kafka's topic id: a recreated topic has another id.

A stream whose topic is missing from one response must stay in force: otherwise the job would drop
its events and read them again a moment later. A topic that stays missing counts as deleted when the
broker confirms it. A job that still read it would fail for all streams.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from kafka_client.topic_offsets import FoundTopic
from spark_jobs.errors import MissingTopicError

if TYPE_CHECKING:
    from correlation.resources.streams import Stream

_log = logging.getLogger(__name__)

GONE_SECONDS = 10.0


def check_topics(streams: Mapping[str, Stream], found: Collection[str]) -> None:
    """Check that the topic of every stream exists; an `until_end` job does not wait for topics.

    Parameters
    ----------
    streams : mapping of name to Stream
        All registered streams.
    found : collection of str
        Existing topics.

    Raises
    ------
    MissingTopicError
        When the topic of a stream is missing, or no stream is registered.
    """
    missing = [
        f"{it.topic} of stream {it.name}" for it in streams.values() if it.topic not in found
    ]
    if missing:
        raise MissingTopicError(f"topics are missing: {', '.join(missing)}; create them")
    if not streams:
        raise MissingTopicError("no stream is registered; register one")


class EventTopics:
    """The existing topics; the partition count of an existing topic never decreases.

    Parameters
    ----------
    known : mapping of topic to FoundTopic
        Topics that existed when the job last ran.
    is_deleted : callable
        Asks the broker whether a topic was deleted; a topic without describe rights exists.
    clock : callable
        Time in seconds; only differences are used.
    """

    def __init__(
        self,
        known: Mapping[str, FoundTopic],
        is_deleted: Callable[[str], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._found = dict(known)
        self._is_deleted = is_deleted
        self._clock = clock
        self._missing_since: dict[str, float] = {}
        self._former_ids: set[str] = set()

    @property
    def found(self) -> dict[str, FoundTopic]:
        """The existing topics."""
        return dict(self._found)

    @property
    def is_certain(self) -> bool:
        """Whether each topic missing from the last response has been missing for GONE_SECONDS."""
        now = self._clock()
        return all(now - since >= GONE_SECONDS for since in self._missing_since.values())

    def take(
        self, found: Mapping[str, FoundTopic], wanted: Collection[str]
    ) -> dict[str, FoundTopic]:
        """Merge a response of the broker; return the existing topics.

        Parameters
        ----------
        found : mapping of topic to FoundTopic
            Topics in the response.
        wanted : collection of str
            Topics to be read; other topics are removed.
        """
        now = self._clock()
        known = self._found
        self._found = {
            topic: self._merge(known.get(topic), found.get(topic) or known[topic])
            for topic in wanted
            if topic in found or topic in known
        }
        missing = self._found.keys() - found.keys()
        self._missing_since = {topic: self._missing_since.get(topic, now) for topic in missing}
        for topic, since in list(self._missing_since.items()):
            if now - since >= GONE_SECONDS and self._is_deleted(topic):
                _log.warning(
                    "topic %s was deleted; the job waits for a new topic of this name", topic
                )
                del self._found[topic], self._missing_since[topic]
        return self.found

    def _merge(self, known: FoundTopic | None, found: FoundTopic) -> FoundTopic:
        """Return the newer description: a response may be older than the one before it."""
        if known is None:
            return found
        if known.id is not None and found.id not in {known.id, None}:
            if found.id in self._former_ids:
                return known
            self._former_ids.add(known.id)
            return found
        return FoundTopic(max(known.partitions, found.partitions), found.id or known.id)
