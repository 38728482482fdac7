"""Loops of conditions: the alarms of each condition are events of the next."""

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
    """Find a loop of conditions, whose alarms come back to them as events.

    Parameters
    ----------
    conditions, streams
        All conditions and streams.
    begin : iterable of str
        Names of conditions; only loops through one of them are searched.

    Returns
    -------
    list of str
        Names of the loop's conditions: each writes to a topic that the next reads. Empty: no loop.
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
    """Search breadth-first for a path from a condition back to itself."""
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
    """Check that the conditions form no loop.

    Parameters
    ----------
    conditions, streams, begin
        As in `find_loop`.
    field : str
        Field that the error names.

    Raises
    ------
    InvalidDocumentError
        When they form a loop; names its conditions.
    """
    loop = find_loop(conditions, streams, begin)
    if loop:
        way = " -> ".join([*loop, loop[0]])
        raise InvalidDocumentError.of(
            field,
            f"the alarms would become events of their own conditions: {way}",
            "use a topic that none of these conditions reads",
        )
