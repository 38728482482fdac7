"""Results as values, with the names of the records' fields; times are in µs since 1970."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

AttributeValue = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Event:
    """An event whose time is uncertain: at some moment from `earliest` to `latest`.

    Parameters
    ----------
    stream, id : str
        Stream and id of the event.
    key : str or None
        Join key; None if the stream is partitioned by grid.
    earliest, latest : int
        Bounds of its time.
    attributes : mapping
        Values of the attributes that the stream declares; None for missing values.
    """

    stream: str
    id: str
    key: str | None
    earliest: int
    latest: int
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LastingEvent:
    """An event of an event query that lasts from `begin` to `end`; otherwise as Event."""

    stream: str
    id: str
    key: str | None
    begin: int
    end: int
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TimingAlarm:
    """A pair of a timing condition, or an event of A without a B.

    Parameters
    ----------
    alarm_id : str
        Id of the alarm: the same pair of the same version of a condition has the same id.
    condition, version, kind
        Name, version and kind of the condition.
    threshold : float
        Confidence threshold of the condition.
    decided_by : str
        How the pair was decided.
    late : bool
        Whether one of the events arrived late.
    a : Event
        Event of A.
    b : Event or None
        Event of B; None for an event of A without a B (`emit: unmatched`).
    probability : float or None
        Probability of the pair; None if the condition does not report it, and without a B.
    detected_at : int
        When the pair was found, or A was judged.
    """

    alarm_id: str
    condition: str
    version: int
    kind: str
    threshold: float
    decided_by: str
    late: bool
    a: Event
    b: Event | None
    probability: float | None
    detected_at: int


@dataclass(frozen=True, slots=True)
class EventQueryAlarm:
    """A result of an event query.

    Parameters
    ----------
    alarm_id : str
        Id of the result: the same events have the same id.
    condition, version
        Name and version of the condition.
    type : str
        Type that the query detects.
    attributes : mapping
        Attributes that the query gives to its result.
    begin, end : int
        Time of the result; by default the min begin and the max end of the events.
    events : mapping of alias to event
        Events of the positive aliases.
    late : bool
        Whether one of the events arrived late.
    probability, threshold : float or None
        Probability of the result and threshold, if the condition has a threshold.
    detected_at : int
        When the result was found.
    """

    alarm_id: str
    condition: str
    version: int
    type: str
    attributes: Mapping[str, AttributeValue]
    begin: int
    end: int
    events: Mapping[str, Event | LastingEvent]
    late: bool
    probability: float | None
    threshold: float | None
    detected_at: int


@dataclass(frozen=True, slots=True)
class TokenSet:
    """A set of tokens in a top-k list: its stream, its id and its time."""

    stream: str
    id: str
    time: int


@dataclass(frozen=True, slots=True)
class SimilarPair:
    """A pair of sets in a top-k list.

    Parameters
    ----------
    similarity, distance : float or None
        Value of the pair: one of the two, as the condition's similarity defines it.
    overlap : int
        Number of shared tokens.
    sizes : (int, int)
        Sizes of the older and the newer set.
    older, newer : TokenSet
        The sets.
    """

    similarity: float | None
    distance: float | None
    overlap: int
    sizes: tuple[int, int]
    older: TokenSet
    newer: TokenSet


@dataclass(frozen=True, slots=True)
class ListChange:
    """A change of a top-k list.

    Parameters
    ----------
    condition, version
        Name and version of the condition.
    key : str or None
        Join key of the list; None if the condition has a single list.
    change : str
        entered, left or moved.
    rank : int
        Rank from 1; that before the change if the pair left.
    pair : SimilarPair
        The pair.
    reason : str
        set, expiry, condition or reset.
    time : int
        Time of the event that caused the change.
    detected_at : int
        When the change was found.
    """

    condition: str
    version: int
    key: str | None
    change: str
    rank: int
    pair: SimilarPair
    reason: str
    time: int
    detected_at: int


@dataclass(frozen=True, slots=True)
class ListItem:
    """A pair of a present list with its rank, from 1."""

    rank: int
    pair: SimilarPair


@dataclass(frozen=True, slots=True)
class PresentList:
    """A whole top-k list; it replaces the former list of its condition and key.

    Parameters
    ----------
    condition, version
        Name and version of the condition.
    key : str or None
        Join key of the list; None if the condition has a single list.
    as_of : int
        Time up to which sets have taken effect.
    items : tuple of ListItem
        The pairs, the first rank first.
    detected_at : int
        When the list was written.
    """

    condition: str
    version: int
    key: str | None
    as_of: int
    items: tuple[ListItem, ...]
    detected_at: int


@dataclass(frozen=True, slots=True)
class WithdrawnList:
    """A list that has become empty or does not exist any more."""

    condition: str
    key: str | None


Result = TimingAlarm | EventQueryAlarm | ListChange | PresentList | WithdrawnList
