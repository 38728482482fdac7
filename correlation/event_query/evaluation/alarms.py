"""Alarms of event queries: records of the combinations that are results."""

from __future__ import annotations

from collections.abc import (
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial, reduce
from hashlib import blake2b
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.attribute_json import encode_values
from correlation.buffers.columns import Int64s
from correlation.buffers.segment import Segment
from correlation.event_query.alarm_format import ALARM_VERSION, CE_TYPE
from correlation.event_query.condition import EventQueryCondition
from correlation.event_query.query import END, Constant, Point, Variable, value_at
from correlation.operators import Encode, Heading, OutputRecord, encode_json, make_heading
from correlation.resources.attributes import encode_value
from correlation.result_format import as_text, framed

# Framed id and JSON of events by row, of a segment in one form. Results of a block share them.
Written = MutableMapping[Hashable, dict[int, tuple[bytes, bytes]]]


@dataclass(frozen=True, slots=True)
class EventsOfAlias:
    """The events of a positive alias in k results.

    Parameters
    ----------
    alias, stream : str
        The alias and its stream.
    lasts : bool
        Whether the events last.
    attributes : tuple of str
        Attributes that the stream declares.
    segments : sequence of Segment
        Segments of the stream.
    numbers, rows : int64[k]
        Event of each result: row rows[i] of segments[numbers[i]].
    written : Written
        Events that were encoded already, by these results or others of the block.
    """

    alias: str
    stream: str
    lasts: bool
    attributes: tuple[str, ...]
    segments: Sequence[Segment]
    numbers: Int64s
    rows: Int64s
    written: Written = field(default_factory=dict)

    def parts(self) -> Iterator[tuple[int, Int64s, Segment]]:
        """Yield the number of each segment, the results whose event it has, and the segment."""
        for number in np.unique(self.numbers).tolist():
            yield number, np.flatnonzero(self.numbers == number), self.segments[number]

    def times(self) -> tuple[Int64s, Int64s]:
        """Return the begins and ends, int64[k] each, in µs."""
        begin, end = np.empty_like(self.rows), np.empty_like(self.rows)
        for _, results, segment in self.parts():
            begin[results] = segment.earliest[self.rows[results]]
            end[results] = segment.latest[self.rows[results]]
        return begin, end

    def late(self) -> NDArray[np.bool_]:
        """Return whether each event was late, bool[k]."""
        found = np.zeros(len(self.rows), np.bool_)
        for _, results, segment in self.parts():
            found[results] = segment.late[self.rows[results]]
        return found

    def keys(self) -> list[bytes]:
        """Return the join keys."""
        found = [b""] * len(self.rows)
        for _, results, segment in self.parts():
            keys = segment.key_of_rows(self.rows[results]).to_list()
            for result, key in zip(results.tolist(), keys, strict=True):
                found[result] = key
        return found

    def encode(self, attribute: str) -> list[bytes]:
        """Return the values of an attribute as JSON."""
        found = [b"null"] * len(self.rows)
        for _, results, segment in self.parts():
            values = encode_values(segment.columns, self.rows[results], attribute)
            for result, value in zip(results.tolist(), values, strict=True):
                found[result] = value
        return found

    def encode_events(self, encode: Encode, *, keyed: bool) -> tuple[list[bytes], list[bytes]]:
        """Return the framed ids, and the events as JSON; each event is encoded once."""
        ids, events = [b""] * len(self.rows), [b""] * len(self.rows)
        for _, results, segment in self.parts():
            rows = self.rows[results].tolist()
            written = self.written.setdefault(
                (segment, self.stream, self.lasts, self.attributes, keyed, encode), {}
            )
            new = np.array(sorted(set(rows) - written.keys()), np.int64)
            if len(new):
                names = segment.id.take(new).to_list()
                values = self._write_events(segment, new, names, encode, keyed=keyed)
                written.update(
                    zip(new.tolist(), zip(map(framed, names), values, strict=True), strict=True)
                )
            for result, row in zip(results.tolist(), rows, strict=True):
                ids[result], events[result] = written[row]
        return ids, events

    def _write_events(
        self, segment: Segment, rows: Int64s, names: list[bytes], encode: Encode, *, keyed: bool
    ) -> Iterator[bytes]:
        labels = ("begin", "end") if self.lasts else ("earliest", "latest")
        keys = segment.key_of_rows(rows).to_list() if keyed else None
        columns = [
            [
                b"%b:%b" % (encode(name), value)
                for value in encode_values(segment.columns, rows, name)
            ]
            for name in self.attributes
        ]
        attributes = map(b",".join, zip(*columns, strict=True)) if columns else repeat(b"")
        events = zip(
            names,
            keys if keys is not None else repeat(None),
            segment.earliest[rows].tolist(),
            segment.latest[rows].tolist(),
            attributes,
            strict=False,
        )
        for name, key, first, last, values in events:
            event = {
                "id": as_text(name),
                "stream": self.stream,
                "key": None if key is None else as_text(key),
                labels[0]: first,
                labels[1]: last,
            }
            yield b'%b,"attributes":{%b}}' % (encode(event)[:-1], values)


@dataclass(frozen=True, slots=True)
class EventQueryAlarms:
    """One or more results of an event query.

    Parameters
    ----------
    condition : EventQueryCondition
        The condition.
    keyed : bool
        Whether the join key is the users' own (partitioning by key).
    events : tuple of EventsOfAlias
        Events of the positive aliases, in the order of the query.
    probability : float64[k] or None
        Probability of each result, if the condition has a threshold.
    """

    condition: EventQueryCondition
    keyed: bool
    events: tuple[EventsOfAlias, ...]
    probability: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.events[0].rows)

    def heading(self, detected_at_us: int) -> Heading:
        """Return channel, topic and CloudEvents headers; see `Result.heading`."""
        return make_heading(self.condition, detected_at_us, CE_TYPE)

    def ready_us(self) -> Int64s:
        """Return the time of each result: the max `latest` of its events, in µs."""
        found: Int64s = np.max([it.times()[1] for it in self.events], axis=0)
        return found

    def records(
        self, detected_at_us: int | Int64s, encode: Encode = encode_json
    ) -> Iterator[OutputRecord]:
        """Return the alarms as records; see `Result.records`."""
        condition = self.condition
        name, version = condition.name, condition.version
        start = blake2b(framed(name.encode()) + framed(str(version).encode()), digest_size=16)
        common: dict[str, object] = {
            "v": ALARM_VERSION,
            "condition": name,
            "version": version,
            "kind": condition.kind,
            "type": condition.query.type,
        }
        if condition.threshold is not None:
            common["threshold"] = float(condition.threshold)
        head = encode(common)[:-1]
        keys = self.events[0].keys() if self.keyed else repeat(name.encode(), len(self))
        columns = zip(
            keys,
            np.broadcast_to(detected_at_us, len(self)).tolist(),
            self._encode_spans(encode),
            self._encode_attributes(encode),
            *self._encode_events(encode),
            strict=True,
        )
        for key, moment, span, attributes, ids, events in columns:
            digest = start.copy()
            digest.update(ids)
            ident = digest.hexdigest()
            value = b'%b,"detected_at":%d,"alarm_id":"%b","attributes":{%b},%b,"events":{%b}}' % (
                head,
                moment,
                ident.encode(),
                attributes,
                span,
                events,
            )
            yield OutputRecord(key, value, ident)

    def _encode_spans(self, encode: Encode) -> Iterator[bytes]:
        """Encode `begin`, `end`, `late` and any `probability` of each result.

        The instant of an event may be uncertain: the begin is then the first possible value of its
        term, and the end the last one.
        """
        begin, end = self._times()
        late = np.any([it.late() for it in self.events], axis=0)
        words = (b"false", b"true")
        more: Iterable[bytes] = repeat(b"", len(self))
        if self.probability is not None:
            numbers = encode(self.probability.tolist())[1:-1].split(b",")
            more = (b',"probability":%b' % number for number in numbers)
        spans = zip(begin.tolist(), end.tolist(), late.tolist(), more, strict=True)
        for first, last, is_late, rest in spans:
            yield b'"begin":%d,"end":%d,"late":%b%b' % (first, last, words[is_late], rest)

    def _times(self) -> tuple[Int64s, Int64s]:
        """Return the begins and the ends of the results, int64[k] each, in µs."""
        times = {it.alias: (it.times(), it.lasts) for it in self.events}

        def at(point: Point, *, latest: bool) -> Int64s:
            (first, last), lasts = times[point.alias]
            return last if (point.side == END if lasts else latest) else first

        query = self.condition.query
        least, greatest = partial(reduce, np.minimum), partial(reduce, np.maximum)
        return (
            value_at(query.begin, partial(at, latest=False), least, greatest),
            value_at(query.end, partial(at, latest=True), least, greatest),
        )

    def _encode_attributes(self, encode: Encode) -> Iterator[bytes]:
        """Encode the attributes of each result, as JSON without braces."""
        bound = self._bound_attributes()
        columns = []
        for it in self.condition.query.attributes:
            name = encode(it.name)
            if isinstance(it.value, Variable):
                alias, attribute = bound[it.value.name]
                columns.append([b"%b:%b" % (name, value) for value in alias.encode(attribute)])
            else:
                columns.append([b"%b:%b" % (name, encode_constant(it.value))] * len(self))
        return map(b",".join, zip(*columns, strict=True)) if columns else repeat(b"", len(self))

    def _bound_attributes(self) -> Mapping[str, tuple[EventsOfAlias, str]]:
        """Return, for each variable, the first alias and attribute that have its value."""
        bound: dict[str, tuple[EventsOfAlias, str]] = {}
        for events, pattern in zip(self.events, self.condition.query.positive, strict=True):
            for it in pattern.attributes:
                if isinstance(it.pattern, Variable):
                    bound.setdefault(it.pattern.name, (events, it.name))
        return bound

    def _encode_events(self, encode: Encode) -> tuple[Iterator[bytes], Iterator[bytes]]:
        """Encode the ids of each result's events, and its events as JSON without braces."""
        ids, events = [], []
        for it in self.events:
            names, written = it.encode_events(encode, keyed=self.keyed)
            ids.append(names)
            alias = encode(it.alias)
            events.append([b"%b:%b" % (alias, event) for event in written])
        return map(b"".join, zip(*ids, strict=True)), map(b",".join, zip(*events, strict=True))


def encode_constant(constant: Constant) -> bytes:
    """Return a constant as JSON."""
    return str(constant).encode() if isinstance(constant, Decimal) else encode_value(constant)
