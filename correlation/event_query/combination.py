"""The records of a combination, and which patterns, variables and relations they do not match.

A combination has one record for each positive alias. Any number of records of the negated aliases
are compared with it, one by one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from correlation.event_query.comparing import round_constants, satisfies
from correlation.event_query.condition import EventQueryCondition
from correlation.event_query.language.writer import write_attribute, write_formula
from correlation.event_query.meaning import Times, bindings, holds, value_of
from correlation.event_query.query import And, Comparison, EventPattern, Formula, Relation
from correlation.event_query.relevance.split import split_formula
from correlation.explaining import GivenRecord, ReadEvent, read_given
from correlation.resources.durations import describe_duration
from correlation.resources.streams import Stream

Reads = Mapping[str, ReadEvent]


class Combination:
    """The records of the positive aliases.

    Parameters
    ----------
    condition : EventQueryCondition
        The registered condition.
    streams : mapping of name to Stream
        Its streams.
    given : mapping of alias to GivenRecord
        A record for each positive alias; others are ignored.

    Attributes
    ----------
    reads : mapping of alias to ReadEvent
        The records as the job reads them.
    """

    def __init__(
        self,
        condition: EventQueryCondition,
        streams: Mapping[str, Stream],
        given: Mapping[str, GivenRecord],
    ) -> None:
        self._query = condition.query
        self._streams = {alias: streams[name] for alias, name in condition.stream_of.items()}
        compared = round_constants(self._query, self._streams)
        self._compared = {event.alias: event.attributes for event in compared.events}
        self._parts = split_formula(self._query)
        self.reads: Reads = {
            it.alias: self.read(it.alias, given[it.alias]) for it in self._query.positive
        }

    def read(self, alias: str, record: GivenRecord) -> ReadEvent:
        """Return a record of an alias as the job reads it."""
        return read_given(self._streams[alias], record)

    def time(self) -> int:
        """Return the time of the result, its end in µs; all records are events."""
        return value_of(self._query.end, _times(self.reads))

    def breaches(self) -> Iterator[str]:
        """Yield the positive records that are not events of their streams."""
        for alias, read in self.reads.items():
            if read.event is None:
                yield f"{alias} {read.breach}"

    def misfits(self) -> Iterator[str]:
        """Yield the attributes of the positive events that do not match their constants."""
        for event in self._query.positive:
            yield from self._misfits(event, self.reads[event.alias])

    def clashes(self) -> Iterator[str]:
        """Yield the attributes of the positive events that have one variable, but differ."""
        yield from _clashes(self._query.positive, self.reads)

    def broken(self) -> str:
        """Return the first relation among the positive events that does not hold, or ""."""
        return _first_broken(self._parts.positive, self.reads)

    def mismatch(self, event: EventPattern, read: ReadEvent) -> str:
        """Return why an event of a negated alias does not meet the combination, or ""."""
        if read.event is None:
            return f"{event.alias} {read.breach}"
        key = key_of(read)
        if key != key_of(self.reads[self._query.positive[0].alias]):
            return f"its key is {key!r}"
        reads = {**self.reads, event.alias: read}
        return next(self._misfits(event, read), "") or next(
            _clashes((*self._query.positive, event), reads), ""
        )

    def why_not_stopped(self, event: EventPattern, read: ReadEvent) -> str:
        """Return why an event of a negated alias does not stop the combination, or ""."""
        relations = self._parts.negated[event.alias]
        return self.mismatch(event, read) or _first_broken(
            relations, {**self.reads, event.alias: read}
        )

    def stopping_relations(self, event: EventPattern) -> str:
        """Return the relations of an event that stops the combination."""
        parts = self._parts.negated[event.alias].parts
        return " and ".join(map(write_formula, parts)) or "any event of its stream does"

    def _misfits(self, event: EventPattern, read: ReadEvent) -> Iterator[str]:
        for it, compared in zip(event.attributes, self._compared[event.alias], strict=True):
            value, pattern = read.attributes.get(it.name), compared.pattern
            if isinstance(pattern, Comparison) and not satisfies(value, pattern):
                yield f"{event.alias}.{it.name} is {show_value(value)}, not {write_attribute(it)}"


def key_of(read: ReadEvent) -> object:
    """Return the join key of an event; None without keys."""
    return read.describe()["key"]


class Identities:
    """Numbers of events: records at two places in Kafka are two events.

    A record without a place is the event of a record with the same content, if there is one.
    """

    def __init__(self) -> None:
        self._known: list[ReadEvent] = []

    def find(self, read: ReadEvent) -> int | None:
        """Return the number of an event; None if it has none."""
        return next((at for at, it in enumerate(self._known) if _is_same(it, read)), None)

    def number(self, read: ReadEvent) -> int:
        """Return the number of an event; a new event gets the next number."""
        found = self.find(read)
        if found is None:
            self._known.append(read)
            return len(self._known) - 1
        if self._known[found].given.place is None:
            self._known[found] = read
        return found


def _is_same(first: ReadEvent, second: ReadEvent) -> bool:
    if first.stream.name != second.stream.name:
        return False
    places = first.given.place, second.given.place
    if None in places:
        return first.event == second.event
    return places[0] == places[1]


def show_value(value: object) -> str:
    """Return the value of an attribute as text."""
    return "missing" if value is None else json.dumps(value, ensure_ascii=False)


def _clashes(events: tuple[EventPattern, ...], reads: Reads) -> Iterator[str]:
    first: dict[str, Any] = {}
    for name, it in bindings(events, {alias: read.attributes for alias, read in reads.items()}):
        place = f"{it.alias}.{it.attribute}"
        if it.value is None:
            yield f"variable {name}: {place} is missing"
            continue
        other = first.setdefault(name, it)
        if other.value != it.value:
            yield (
                f"variable {name}: {other.alias}.{other.attribute} is {show_value(other.value)}, "
                f"{place} is {show_value(it.value)}"
            )


def _first_broken(formula: And, reads: Reads) -> str:
    """Return the first part that does not hold, and by how much; "" if all hold."""
    times = _times(reads)
    for part in formula.parts:
        if not holds(part, times):
            return f"{write_formula(part)} does not hold{_missed_by(part, times)}"
    return ""


def _times(reads: Reads) -> dict[str, Times]:
    found = {}
    for alias, read in reads.items():
        if read.event is not None:
            begin = read.event.earliest if read.stream.lasts else read.event.latest
            found[alias] = Times(begin, read.event.latest)
    return found


def _missed_by(part: Formula, times: Mapping[str, Times]) -> str:
    if not isinstance(part, Relation):
        return ""
    left, right = value_of(part.left, times), value_of(part.right, times)
    if left == right:
        return ": both are equal"
    place = "after" if left > right else "before"
    return f": the left side is {describe_duration(abs(left - right))} {place} the right side"
