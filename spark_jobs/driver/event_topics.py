"""Which of the wanted topics there are, remembered while a broker's answer leaves one out.

A topic is known by Kafka's id: one that was deleted and created again is another topic.

A stream whose topic is missing from one answer must stay in force: otherwise its events would be
forgotten, and read again a moment later. A topic that stays away was deleted, if the broker says so
when it is asked for it; a job that read it all the same would fail, for all streams.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from spark_jobs.driver.offsets import FoundTopic
from spark_jobs.errors import MissingTopicError

if TYPE_CHECKING:
    from correlation.resources.streams import Stream

_log = logging.getLogger(__name__)

GONE_SECONDS = 10.0


def check_topics(streams: Mapping[str, Stream], found: Collection[str]) -> None:
    """Make sure that every stream has its topic: a job that ends does not wait for one.

    Parameters
    ----------
    streams : mapping of name to Stream
        All that are registered.
    found : collection of str
        Topics that there are.

    Raises
    ------
    MissingTopicError
        When a stream's topic is not there, or no stream is registered.
    """
    missing = [
        f"{it.topic} of stream {it.name}" for it in streams.values() if it.topic not in found
    ]
    if missing:
        raise MissingTopicError(f"there is no topic {', '.join(missing)}: nothing was read")
    if not streams:
        raise MissingTopicError("no stream is registered: there is nothing to read")


class EventTopics:
    """The topics that there are; their partitions never get fewer while a topic is there.

    Parameters
    ----------
    known : mapping of topic to FoundTopic
        Those that were there when the job last ran.
    is_deleted : callable
        Asks the broker whether there is no such topic; one that may only not be seen is there.
    clock : callable
        Time in seconds; only differences count.
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
        """Those of the topics that there are."""
        return dict(self._found)

    @property
    def is_certain(self) -> bool:
        """Whether no topic was missing from the last answer, unless for so long that it counts."""
        now = self._clock()
        return all(now - since >= GONE_SECONDS for since in self._missing_since.values())

    def take(
        self, found: Mapping[str, FoundTopic], wanted: Collection[str]
    ) -> dict[str, FoundTopic]:
        """Take in an answer of the broker; return the topics that there are.

        Parameters
        ----------
        found : mapping of topic to FoundTopic
            Topics that the broker named.
        wanted : collection of str
            The topics to be read; others are forgotten.
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
                _log.warning("the topic %s is gone: what was to be read from it waits", topic)
                del self._found[topic], self._missing_since[topic]
        return self.found

    def _merge(self, known: FoundTopic | None, found: FoundTopic) -> FoundTopic:
        """Return what is to be believed: an answer may be older than one that came before it."""
        if known is None:
            return found
        if known.id is not None and found.id not in {known.id, None}:
            if found.id in self._former_ids:
                return known
            self._former_ids.add(known.id)
            return found
        return FoundTopic(max(known.partitions, found.partitions), found.id or known.id)
