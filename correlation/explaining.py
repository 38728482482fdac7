"""Why a pair of events is reported, or not: what every kind of condition needs to say so.

Someone gives two records, as they stand in Kafka or as canonical events. They are read as the job
reads them; the kind of the condition (`ConditionKind.explain`) takes it from there and names the
first step that failed:

    contract      a record is no event of its stream: a dead letter, with its reason
    same_event    a stream with itself: both are one and the same record
    key           the events have different join keys, so that they never meet
    expired       the events are farther apart than any pair can be: the job forgets them before
    threshold     the condition was evaluated and does not hold
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from correlation.errors import RejectedEventError
from correlation.limits import TIME_LIMIT_US
from correlation.parsing.event_reader import MappedEvent, compile_mapping
from correlation.reasons import Reason
from correlation.resources.mapping import EventMapping
from correlation.resources.paths import has_path
from correlation.resources.streams import Stream

Form = Literal["record", "event"]
# What a canonical event has its time in.
_CANONICAL = ({"time"}, {"earliest", "latest"}, {"detected", "template"}, {"histogram"})
# Of a record that nobody says has arrived: later than any time, so that no event is future-dated.
_NEVER_US = 2 * TIME_LIMIT_US


class Place(NamedTuple):
    """Where a record stands in Kafka."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class GivenRecord:
    """A record to be explained.

    Parameters
    ----------
    value : object
        Its value, parsed.
    record_key : bytes or None
        Its key.
    record_timestamp_us : int or None
        When Kafka took it, in µs since 1970; None: not known.
    place : Place or None
        Where it was found; None: somebody made it up.
    form : {"record", "event"} or None
        How it is to be read: by the stream's mapping, or as a canonical event; None: a record,
        unless only a canonical event has its times where this one has them.
    text : bytes or None
        The JSON that was parsed; None where `value` has decimals for its fractions.
    """

    value: object
    record_key: bytes | None = None
    record_timestamp_us: int | None = None
    place: Place | None = None
    form: Form | None = None
    text: bytes | None = None


@dataclass(frozen=True, slots=True)
class ReadEvent:
    """A given record as its stream reads it.

    Parameters
    ----------
    stream : Stream
        That it was read for.
    given : GivenRecord
        What was read.
    form : {"record", "event"}
        How it was read.
    event : MappedEvent or None
        The event; None when the record is none.
    reason, detail
        Why it is none.
    """

    stream: Stream
    given: GivenRecord
    form: Form
    event: MappedEvent | None
    reason: Reason | None = None
    detail: str = ""

    @property
    def delay_us(self) -> int | None:
        """From its latest time to its arrival, in µs; None where that says nothing."""
        if (
            self.event is None
            or self.given.record_timestamp_us is None
            or self.stream.clock != "live"
        ):
            return None
        return self.given.record_timestamp_us - self.event.latest

    def describe(self) -> dict[str, Any]:
        """Give it as a JSON-able dict."""
        event, given = self.event, self.given
        return {
            "stream": self.stream.name,
            "read_as": self.form,
            "id": None if event is None else _text(event.id),
            "key": None
            if event is None or self.stream.partitioning.by != "key"
            else _text(event.key),
            "earliest": None if event is None else event.earliest,
            "latest": None if event is None else event.latest,
            "length_us": None if event is None else event.latest - event.earliest,
            "appended_at": given.record_timestamp_us,
            "delay_us": self.delay_us,
            "place": None if given.place is None else given.place._asdict(),
            "reason": self.reason,
            "detail": self.detail or None,
        }


def read_given(stream: Stream, given: GivenRecord) -> ReadEvent:
    """Read a record as the job reads it, for one stream.

    Parameters
    ----------
    stream : Stream
        Gives mapping and contract.
    given : GivenRecord
        To be read.
    """
    form = given.form or _form_of(stream.mapping, given.value)
    reader = stream if form == "record" else replace(stream, mapping=EventMapping())
    record_timestamp_us = (
        _NEVER_US if given.record_timestamp_us is None else given.record_timestamp_us
    )
    try:
        read = compile_mapping(reader)
        event = read(given.value, given.text, given.record_key, record_timestamp_us)
    except RejectedEventError as error:
        return ReadEvent(stream, given, form, None, error.reason, error.detail)
    if event.id is None and given.place is not None:
        event = event._replace(id="-".join(map(str, given.place)).encode())
    return ReadEvent(stream, given, form, event)


class Steps:
    """The steps of an explanation, in their order; the first that fails is the last one taken."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._taken: list[tuple[bool, str]] = []

    @property
    def failed(self) -> str | None:
        """Name of the step that failed, or None."""
        passed = [it for it, _ in self._taken]
        return None if all(passed) else self._names[len(passed) - 1]

    def take(self, *, passed: bool, detail: str) -> None:
        """Take the next step, unless one has failed."""
        if self.failed is None:
            self._taken.append((passed, detail))

    def describe(self) -> dict[str, Any]:
        """Give verdict, sentence and steps as a JSON-able dict."""
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


def _form_of(mapping: EventMapping, value: object) -> Form:
    paths = mapping.time_paths
    if not paths or not isinstance(value, Mapping):
        return "record"
    names = set(value)
    canonical = any(form <= names for form in _CANONICAL)
    if canonical and not all(has_path(value, path) for path in paths):
        return "event"
    return "record"


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "backslashreplace")
