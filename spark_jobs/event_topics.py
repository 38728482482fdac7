"""Which topics there are, remembered while a broker's answer leaves one out.

A stream whose topic is missing from one answer must stay in force: otherwise its events would be
forgotten, and read again a moment later. A topic that stays away was deleted; a job that asked for
it all the same would fail, for all streams.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

_log = logging.getLogger(__name__)

_GONE_SECONDS = 10.0


class EventTopics:
    """Number of partitions of the topics.

    Parameters
    ----------
    clock : callable
        Time in seconds; only differences count.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._partitions: dict[str, int] = {}
        self._missing_since: dict[str, float] = {}

    def take(self, found: Mapping[str, int]) -> dict[str, int]:
        """Take in an answer of the broker; give the partitions of the topics that there are.

        Parameters
        ----------
        found : mapping of topic to int
            Number of partitions, of all topics that the broker named.
        """
        now = self._clock()
        self._partitions |= found
        for topic in self._partitions.keys() - found.keys():
            if now - self._missing_since.setdefault(topic, now) >= _GONE_SECONDS:
                _log.warning("the topic %s is gone: what was to be read from it waits", topic)
                del self._partitions[topic]
        self._missing_since = {
            topic: since
            for topic, since in self._missing_since.items()
            if topic in self._partitions and topic not in found
        }
        return dict(self._partitions)
