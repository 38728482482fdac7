"""Conditions that build on each other: which writes what which reads, and where that goes round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.errors import InvalidDocumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from correlation.operators import Condition
    from correlation.resources.streams import Stream


def find_loop(
    conditions: Iterable[Condition], streams: Iterable[Stream], begin: Iterable[str]
) -> list[str]:
    """Find conditions whose alarms come back to them as events, through others.

    Parameters
    ----------
    conditions, streams
        All there are.
    begin : iterable of str
        Names of conditions: only loops through one of them are looked for.

    Returns
    -------
    list of str
        Names of the loop's conditions, each writing what the next one reads; empty: there is none.
    """
    readers: dict[str, list[str]] = {}
    topic_of = {stream.name: stream.topic for stream in streams}
    outputs = {}
    for condition in conditions:
        outputs[condition.name] = condition.output_topic
        for name in condition.streams:
            if name in topic_of:
                readers.setdefault(topic_of[name], []).append(condition.name)
    followers = {
        name: sorted(readers.get(topic, ())) if topic is not None else []
        for name, topic in outputs.items()
    }
    for name in begin:
        loop = _path_back(name, followers)
        if loop:
            return loop
    return []


def _path_back(begin: str, followers: Mapping[str, list[str]]) -> list[str]:
    """Search, breadth first, a way from a condition back to it."""
    before: dict[str, str] = {}
    waiting = [begin]
    for name in waiting:
        for follower in followers.get(name, ()):
            if follower == begin:
                path = [name]
                while path[-1] != begin:
                    path.append(before[path[-1]])
                return path[::-1]
            if follower not in before:
                before[follower] = name
                waiting.append(follower)
    return []


def refuse_loop(
    conditions: Iterable[Condition], streams: Iterable[Stream], begin: Iterable[str], field: str
) -> None:
    """Refuse what would close a loop.

    Parameters
    ----------
    conditions, streams, begin
        As for `find_loop`.
    field : str
        Of the document that would close it.

    Raises
    ------
    InvalidDocumentError
        Naming the conditions of the loop.
    """
    loop = find_loop(conditions, streams, begin)
    if loop:
        way = " -> ".join([*loop, loop[0]])
        raise InvalidDocumentError.of(
            field,
            f"the alarms would come back as events for ever: {way}",
            "name a topic that none of these conditions reads",
        )
