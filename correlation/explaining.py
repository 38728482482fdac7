"""Explanation of why events are reported or not: the part shared by all kinds.

The user gives a record for each role of the kind: the two events of a pair, or the events of a
query by alias. A record has the form of its topic, or is a canonical event, and is read as the job
reads it. `ConditionKind.explain` then decides on the events and names the first failed step. Each
kind defines its steps (`timing.explain`, `event_query.explain`); the first is common to all:

    contract      a record is not a valid event of its stream and goes to the dead-letter topic
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from correlation.errors import RejectedEventError
from correlation.limits import TIME_LIMIT_US
from correlation.parsing.attribute_values import value_reader
from correlation.parsing.event_reader import MappedEvent, compile_mapping
from correlation.parsing.intake import Problem
from correlation.reasons import Reason
from correlation.resources.attributes import Attribute, AttributeValue
from correlation.resources.durations import describe_duration
from correlation.resources.filters import Filter
from correlation.resources.histogram import Histogram
from correlation.resources.mapping import EventMapping
from correlation.resources.paths import has_path
from correlation.resources.streams import Stream
from correlation.resources.tokens import Tokens

Form = Literal["record", "event"]
Items = Sequence[Mapping[str, Any]]


class FoundList(NamedTuple):
    """A present list.

    Parameters
    ----------
    as_of_us : int
        Time up to which events have taken effect, in µs.
    items : sequence of dict or None
        Items, the first place first; None: the list is too large or cannot be read.
    """

    as_of_us: int
    items: Items | None


# Finds the present list of a join key; None: the list is empty or was not written.
FindList = Callable[[str | None], FoundList | None]
# Fields that hold the time of a canonical event.
_CANONICAL = ({"time"}, {"earliest", "latest"}, {"detected", "template"}, {"histogram"})
# Timestamp of a record whose own is unknown: after any time, so the event is not future-dated.
_NEVER_US = 2 * TIME_LIMIT_US


class Step(NamedTuple):
    """A step of the explanations of a kind.

    Attributes
    ----------
    name : str
        Name in the answer.
    failure : str
        Meaning of the step if it failed, for the documentation.
    title : str
        Name that `coincide explain` shows; empty: `name`.
    """

    name: str
    failure: str
    title: str = ""


CONTRACT = Step("contract", "a record is not a valid event of its stream")


class SearchEffect(NamedTuple):
    """Effect of the events that `ConditionKind.search` finds: a verb and its object."""

    verb: str
    object: str


class Place(NamedTuple):
    """Position of a record in Kafka."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}@{self.offset}"


@dataclass(frozen=True, slots=True)
class GivenRecord:
    """A record to be explained.

    Parameters
    ----------
    value : object
        Parsed value.
    record_key : bytes or None
        Kafka key.
    record_timestamp_us : int or None
        Kafka's timestamp, in µs since 1970; None: unknown.
    place : Place or None
        Position in Kafka; None: the record does not come from Kafka.
    form : {"record", "event"} or None
        "record": the stream's mapping applies; "event": a canonical event. None: "event" if the
        record has canonical time fields and lacks time fields of the mapping, otherwise "record".
    text : bytes or None
        JSON of the value; None when `value` holds its fractions as decimals.
    problem : Problem or None
        Why the value, which is then None, cannot be parsed; None: it was parsed.
    """

    value: object
    record_key: bytes | None = None
    record_timestamp_us: int | None = None
    place: Place | None = None
    form: Form | None = None
    text: bytes | None = None
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class ReadEvent:
    """A given record after reading.

    Parameters
    ----------
    stream : Stream
        Stream of the record.
    given : GivenRecord
        The record.
    form : {"record", "event"}
        Form in which the record was read, as in `GivenRecord`.
    event : MappedEvent or None
        The event; None when the record was rejected.
    reason, detail
        Why the record was rejected; without a reason, why the stream's `where` excludes it.
    attributes : mapping of name to value
        Values of the attributes; None: missing.
    """

    stream: Stream
    given: GivenRecord
    form: Form
    event: MappedEvent | None
    reason: Reason | None = None
    detail: str = ""
    attributes: Mapping[str, AttributeValue | None] = field(default_factory=dict)

    @property
    def breach(self) -> str:
        """Why the record is not an event of the stream; empty if it is."""
        if self.event is not None:
            return ""
        if self.reason is None:
            return f"is not an event of stream {self.stream.name}: {self.detail}"
        return f"is not a valid event of stream {self.stream.name}: {self.reason}, {self.detail}"

    @property
    def tokens(self) -> list[str] | None:
        """The tokens of the event, in order of their first use; None: rejected or filtered."""
        return None if self.event is None else [it.decode() for it in self.event.tokens]

    @property
    def delay_us(self) -> int | None:
        """Kafka's timestamp minus the latest time or end; None if unknown or no live clock."""
        if (
            self.event is None
            or self.given.record_timestamp_us is None
            or self.stream.clock != "live"
        ):
            return None
        return self.given.record_timestamp_us - self.event.latest

    def describe(self) -> dict[str, Any]:
        """Return the record and its event as a JSON-able dict.

        The times of an event that lasts are `begin` and `end`, those of an instant `earliest` and
        `latest`, as in the results and in canonical events.
        """
        event, given = self.event, self.given
        first, last = ("begin", "end") if self.stream.lasts else ("earliest", "latest")
        return {
            "stream": self.stream.name,
            "read_as": self.form,
            "id": None if event is None else _text(event.id),
            "key": None
            if event is None or self.stream.partitioning.by != "key"
            else _text(event.key),
            first: None if event is None else event.earliest,
            last: None if event is None else event.latest,
            **({"attributes": dict(self.attributes)} if self.stream.attributes else {}),
            **({} if self.stream.tokens is None else {"tokens": self.tokens}),
            **_describe_shape(event),
            "length_us": None if event is None else event.latest - event.earliest,
            "record_timestamp": given.record_timestamp_us,
            "delay_us": self.delay_us,
            "place": None if given.place is None else given.place._asdict(),
            "reason": self.reason,
            "detail": self.detail or None,
        }


def read_given(stream: Stream, given: GivenRecord) -> ReadEvent:
    """Read a record of a stream as the job reads it.

    Parameters
    ----------
    stream : Stream
        Stream with the mapping and the contract.
    given : GivenRecord
        Record to read.
    """
    form = given.form or _form_of(stream.mapping, given.value)
    if given.problem is not None:
        return ReadEvent(stream, given, form, None, *given.problem)
    reader = stream if form == "record" else _canonical(stream)
    record_timestamp_us = (
        _NEVER_US if given.record_timestamp_us is None else given.record_timestamp_us
    )
    attributes, unfit = _read_attributes(reader, given)
    if stream.where is not None:
        decided = (it for it in stream.where.requirements if it.attribute not in unfit)
        mismatch = Filter(tuple(decided)).mismatch(attributes)
        if mismatch is not None:
            detail = f"it does not match where.{mismatch.attribute}"
            return ReadEvent(stream, given, form, None, None, detail, attributes)
    try:
        for error in unfit.values():
            raise error
        read = compile_mapping(reader)
        event = read(given.value, given.text, given.record_key, record_timestamp_us)
    except RejectedEventError as error:
        return ReadEvent(stream, given, form, None, error.reason, error.detail, attributes)
    if event.id is None and given.place is not None:
        event = event._replace(id="-".join(map(str, given.place)).encode())
    return ReadEvent(stream, given, form, event, attributes=attributes)


def _canonical(stream: Stream) -> Stream:
    """Return the stream with the mapping of canonical events, as alarms contain them."""
    mapping = EventMapping()
    if stream.lasts:
        keyed = stream.partitioning.by == "key"
        mapping = EventMapping(
            "lasting",
            id_path=("id",),
            key_path=("key",) if keyed else None,
            begin_path=("begin",),
            end_path=("end",),
            format="epoch_us",
        )
    attributes = tuple(
        Attribute(it.name, ("attributes", it.name), it.type) for it in stream.attributes
    )
    tokens = None if stream.tokens is None else Tokens(("tokens",))
    return replace(stream, mapping=mapping, attributes=attributes, tokens=tokens)


def _read_attributes(
    stream: Stream, given: GivenRecord
) -> tuple[dict[str, AttributeValue | None], dict[str, RejectedEventError]]:
    """Return the values of a record's attributes, and the errors of those that do not fit."""
    place = given.place
    placed: Mapping[str | None, AttributeValue | None] = {
        "$topic": None if place is None else place.topic,
        "$partition": None if place is None else place.partition,
        "$offset": None if place is None else place.offset,
        "$timestamp": given.record_timestamp_us,
    }
    values: dict[str, AttributeValue | None] = {}
    unfit = {}
    for attribute in stream.attributes:
        values[attribute.name] = placed.get(attribute.record_field)
        if attribute.record_field is not None:
            continue
        try:
            values[attribute.name] = value_reader(attribute)(given.value, given.text)
        except RejectedEventError as error:
            unfit[attribute.name] = error
    return values, unfit


class Steps:
    """The steps of an explanation, in order; the steps after a failed step are skipped."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._taken: list[tuple[bool, str]] = []

    @property
    def failed(self) -> str | None:
        """Name of the failed step, or None."""
        passed = [it for it, _ in self._taken]
        return None if all(passed) else self._names[len(passed) - 1]

    def take(self, *, passed: bool, detail: str) -> None:
        """Record the next step, unless a step has failed."""
        if self.failed is None:
            self._taken.append((passed, detail))

    def describe(self) -> dict[str, Any]:
        """Return verdict, explanation and steps as a JSON-able dict."""
        skipped = [(None, None)] * (len(self._names) - len(self._taken))
        return {
            "verdict": "satisfied" if self.failed is None else "not_satisfied",
            "failed_step": self.failed,
            "explanation": self._taken[-1][1],
            "steps": [
                {"step": name, "passed": passed, "detail": detail}
                for name, (passed, detail) in zip(
                    self._names, [*self._taken, *skipped], strict=True
                )
            ],
        }


def describe_delay(
    role: str, read: ReadEvent, lost: str = "the job may have decided without it"
) -> list[str]:
    """Return a note if a record reached Kafka later than its stream declares.

    Parameters
    ----------
    role : str
        Name of the event.
    read : ReadEvent
        The record.
    lost : str
        Possible consequence.
    """
    delay_us, declared_us = read.delay_us, read.stream.max_delay_us
    if delay_us is None or delay_us <= declared_us:
        return []
    end = "end" if read.stream.lasts else "latest time"
    late = f"{describe_duration(delay_us)} after its {end}"
    limit = f"max_delay is {describe_duration(declared_us)}"
    return [f"{role} reached Kafka {late}, but {limit}: {lost}"]


def _form_of(mapping: EventMapping, value: object) -> Form:
    paths = mapping.time_paths
    if not paths or not isinstance(value, Mapping):
        return "record"
    names = set(value)
    forms = _CANONICAL if mapping.form != "lasting" else ({"begin", "end"},)
    canonical = any(form <= names for form in forms)
    if canonical and not all(has_path(value, path) for path in paths):
        return "event"
    return "record"


def _describe_shape(event: MappedEvent | None) -> dict[str, Any]:
    """Return the buckets, in µs since 1970, of an event whose time is not uniform."""
    if event is None or event.shape is None:
        return {}
    times = Histogram.from_shape_bytes(event.shape).moved(event.latest)
    return {"histogram": times.to_buckets()}


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "backslashreplace")
