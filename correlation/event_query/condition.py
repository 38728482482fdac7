"""Event queries as registered conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from correlation.event_query.alarm_format import KIND
from correlation.event_query.language.streams import streams_of
from correlation.event_query.query import Query


@dataclass(frozen=True, slots=True)
class EventQueryCondition:
    """A registered event query.

    Parameters
    ----------
    name : str
        Name of the condition.
    version : int
        Version of its document.
    query : Query
        The parsed query.
    types : mapping of str to str
        Streams of event types; a type that is missing names its stream in lower case.
    threshold : Decimal or None
        Minimum probability of a result; None if the instants of all streams are exact.
    output_topic : str or None
        Topic of the results; None: the installation's topic.
    """

    name: str
    version: int
    query: Query
    types: Mapping[str, str]
    threshold: Decimal | None = None
    output_topic: str | None = None

    @property
    def kind(self) -> str:
        """Key of its kind."""
        return KIND

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of its input streams, without duplicates."""
        return tuple(dict.fromkeys(self.stream_of.values()))

    @property
    def stream_of(self) -> dict[str, str]:
        """Stream of each alias, in the order of the query."""
        return streams_of(self.query, self.types)
