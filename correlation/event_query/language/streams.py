"""Streams of the event types of a query."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from correlation.errors import InvalidFieldError
from correlation.event_query.query import Query
from correlation.resources.checks import NAME, check_name


def stream_of(event_type: str, types: Mapping[str, str]) -> str:
    """Return the stream of an event type: that of `types`, or the type in lower case.

    Parameters
    ----------
    event_type : str
        Event type of a query.
    types : mapping of str to str
        Event types and their streams.

    Raises
    ------
    InvalidFieldError
        The name is not a valid name of a stream.

    Examples
    --------
    >>> stream_of("Smoke", {}), stream_of("Smoke", {"Smoke": "hall-smoke"})
    ('smoke', 'hall-smoke')
    """
    field = f"types.{event_type}"
    if event_type in types:
        return check_name(types[event_type], field)
    if NAME.fullmatch(event_type.lower()) is None:
        raise InvalidFieldError(
            field,
            f"{event_type.lower()!r} is not a valid name of a stream",
            "add the event type and its stream to types",
        )
    return event_type.lower()


def streams_of(query: Query, types: Mapping[str, str]) -> dict[str, str]:
    """Return the stream of each alias of a query.

    Raises
    ------
    InvalidFieldError
        A name is not a valid name of a stream, or `types` has a type that no event has.
    """
    used = sorted({event.type for event in query.events})
    for event_type in types:
        if event_type not in used:
            near = difflib.get_close_matches(event_type, used)
            raise InvalidFieldError(
                f"types.{event_type}",
                "no event of the query has this type",
                f"did you mean {' or '.join(near)}?" if near else "remove it",
            )
    return {event.alias: stream_of(event.type, types) for event in query.events}
