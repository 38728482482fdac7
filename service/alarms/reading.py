"""State of the reading of each topic: its problem, if there is one; changes are logged once."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict

_LOGGER = logging.getLogger(__name__)


class ReadingState:
    """Problems of the followed topics; one thread writes, any thread may read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Topic → source of the problem → problem.
        self._problems: dict[str, dict[str, str]] = {}

    def keep(self, topics: frozenset[str]) -> None:
        """Set the topics that are to be followed; the state of others is removed."""
        with self._lock:
            self._problems = {it: self._problems.get(it, {}) for it in topics}

    def report(
        self, topic: str, source: str, problem: str | None, cause: str | None = None
    ) -> None:
        """Set or remove the problem of a topic.

        Parameters
        ----------
        topic : str
            A topic that is to be followed; others are ignored.
        source : str
            What has the problem; a topic has one problem of each source.
        problem : str or None
            The problem; None: it is solved.
        cause : str or None
            What the log shows instead of the problem.
        """
        with self._lock:
            found = self._problems.get(topic)
            if found is None:
                return
            former = found.pop(source, None)
            if problem is not None:
                found[source] = problem
        if problem is None and former is not None:
            _LOGGER.info("alarms of %s are read again", topic)
        elif problem is not None and former is None:
            _LOGGER.warning("reading alarms of %s: %s", topic, cause or problem)

    def problems(self) -> dict[str, str | None]:
        """Return the problems of each topic in one string, by topic; None: no problem."""
        with self._lock:
            return {
                topic: "; ".join(found.values()) or None
                for topic, found in sorted(self._problems.items())
            }


class ForeignRecords:
    """Counts records that are not results of conditions, by topic."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = defaultdict(int)

    def count(self, topic: str, partition: int, offset: int) -> str:
        """Count a record; return the problem of its topic."""
        self._counts[topic] += 1
        return (
            f"{self._counts[topic]} records are not results of conditions and are left out, the "
            f"last one at offset {offset} of partition {partition}"
        )

    def forget(self, topic: str) -> None:
        """Begin again for a topic."""
        self._counts.pop(topic, None)
