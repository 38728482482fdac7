"""Loops of conditions: the alarms of each condition are events of the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.errors import InvalidDocumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from correlation.operators import Condition
    from correlation.resources.streams import Stream


class Flow:
    """Graph of conditions, from the writers of topics to their readers.

    Parameters
    ----------
    conditions, streams : iterable
        All conditions and streams.
    """

    def __init__(self, conditions: Iterable[Condition], streams: Iterable[Stream]) -> None:
        self._readers: dict[str, list[str]] = {}
        self._outputs: dict[str, str | None] = {}
        topic_of = {stream.name: stream.topic for stream in streams}
        for condition in conditions:
            self._outputs[condition.name] = condition.output_topic
            for name in condition.streams:
                if name in topic_of:
                    self._readers.setdefault(topic_of[name], []).append(condition.name)

    def find_loop(self, begin: Iterable[str]) -> list[str]:
        """Find a loop of conditions, whose alarms come back to them as events.

        Parameters
        ----------
        begin : iterable of str
            Names of conditions; only loops through one of them are searched.

        Returns
        -------
        list of str
            Names of the loop's conditions: each writes to a topic that the next reads. Empty: no
            loop.
        """
        for name in begin:
            loop = _path_back(name, self._followers)
            if loop:
                return loop
        return []

    def refuse_loop(self, begin: Iterable[str], field: str) -> None:
        """Check that the conditions form no loop.

        Parameters
        ----------
        begin : iterable of str
            As in `find_loop`.
        field : str
            Field that the error names.

        Raises
        ------
        InvalidDocumentError
            When they form a loop; names its conditions.
        """
        loop = self.find_loop(begin)
        if loop:
            way = " -> ".join([*loop, loop[0]])
            raise InvalidDocumentError.of(
                field,
                f"the alarms would become events of their own conditions: {way}",
                "use a topic that none of these conditions reads",
            )

    def _followers(self, name: str) -> list[str]:
        """Return the conditions that read what a condition writes, sorted."""
        topic = self._outputs.get(name)
        return sorted(self._readers.get(topic, ())) if topic is not None else []


def _path_back(begin: str, followers: Callable[[str], list[str]]) -> list[str]:
    """Search breadth-first for a path from a condition back to itself."""
    before: dict[str, str] = {}
    waiting = [begin]
    for name in waiting:
        for follower in followers(name):
            if follower == begin:
                path = [name]
                while path[-1] != begin:
                    path.append(before[path[-1]])
                return path[::-1]
            if follower not in before:
                before[follower] = name
                waiting.append(follower)
    return []
