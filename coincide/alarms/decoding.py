"""Conversion of the fields of records to values. Unknown fields are ignored."""

from __future__ import annotations

from coincide.alarms.values import (
    Event,
    EventQueryAlarm,
    LastingEvent,
    ListChange,
    ListItem,
    PresentList,
    SimilarPair,
    TimingAlarm,
    TokenSet,
    WithdrawnList,
)
from correlation.errors import InvalidRecordError, UnknownRecordVersionError
from correlation.event_query.alarm_format import ALARM_VERSION as QUERY_ALARM_VERSION
from correlation.event_query.alarm_format import KIND as EVENT_QUERY
from correlation.record_fields import Fields, check_version
from correlation.result_format import LIST_VERSION, ListName, as_text
from correlation.timing.alarm_format import ALARM_VERSION, TIMING_KINDS
from correlation.topk.change_format import KIND as TOPK
from correlation.topk.change_format import VERSION as CHANGE_VERSION


def decode_timing_alarm(fields: Fields) -> TimingAlarm:
    """Read an alarm of a timing condition."""
    kind = _check(fields, ALARM_VERSION, *TIMING_KINDS)
    return TimingAlarm(
        alarm_id=fields.text("alarm_id"),
        condition=fields.text("condition"),
        version=fields.integer("version"),
        kind=kind,
        threshold=fields.number("threshold"),
        decided_by=fields.text("decided_by"),
        late=fields.flag("late"),
        a=_decode_event(fields.inner("a")),
        b=None if fields.get("b") is None else _decode_event(fields.inner("b")),
        probability=_optional_number(fields, "probability"),
        detected_at=fields.integer("detected_at"),
    )


def decode_query_alarm(fields: Fields) -> EventQueryAlarm:
    """Read a result of an event query."""
    _check(fields, QUERY_ALARM_VERSION, EVENT_QUERY)
    events = fields.inner("events")
    return EventQueryAlarm(
        alarm_id=fields.text("alarm_id"),
        condition=fields.text("condition"),
        version=fields.integer("version"),
        type=fields.text("type"),
        attributes=fields.attributes("attributes"),
        begin=fields.integer("begin"),
        end=fields.integer("end"),
        events={alias: _decode_query_event(events.inner(alias)) for alias in events.content},
        late=fields.flag("late"),
        probability=_optional_number(fields, "probability"),
        threshold=_optional_number(fields, "threshold"),
        detected_at=fields.integer("detected_at"),
    )


def decode_change(fields: Fields) -> ListChange:
    """Read a change of a top-k list."""
    _check(fields, CHANGE_VERSION, TOPK)
    return ListChange(
        condition=fields.text("condition"),
        version=fields.integer("version"),
        key=_optional_text(fields, "key"),
        change=fields.text("change"),
        rank=fields.integer("rank"),
        pair=_decode_pair(fields),
        reason=fields.text("reason"),
        time=fields.integer("time"),
        detected_at=fields.integer("detected_at"),
    )


def decode_list(fields: Fields) -> PresentList:
    """Read a present list.

    Raises
    ------
    InvalidRecordError
        The list exceeded the size limit of its topic, or a field is not valid.
    """
    _check(fields, LIST_VERSION, TOPK)
    if fields.has("error"):
        raise InvalidRecordError(
            "items",
            f"were left out: {fields.integer('omitted_bytes')} bytes exceed the limit of the topic",
            "read the whole record on the dead-letter topic, and raise max.message.bytes",
        )
    return PresentList(
        condition=fields.text("condition"),
        version=fields.integer("version"),
        key=_optional_text(fields, "key"),
        as_of=fields.integer("as_of"),
        items=tuple(map(_decode_item, fields.inner_list("items"))),
        detected_at=fields.integer("detected_at"),
    )


def decode_withdrawal(record_key: bytes | None) -> WithdrawnList:
    """Read the key of a tombstone, which withdraws a list.

    Raises
    ------
    InvalidRecordError
        The key is missing or not UTF-8.
    """
    try:
        name = ListName.from_record_key(record_key or b"")
    except ValueError as error:
        raise InvalidRecordError("key", f"must be UTF-8; got {record_key!r}") from error
    if not name.condition:
        raise InvalidRecordError("key", "is missing", "pass the key of the record")
    return WithdrawnList(name.condition, None if name.key is None else as_text(name.key))


def _check(fields: Fields, version: int, *kinds: str) -> str:
    """Check version and kind of a record, and return the kind."""
    check_version(fields, version)
    kind = fields.text("kind")
    if kind not in kinds:
        raise UnknownRecordVersionError(
            f"kind: {kind!r} is unknown, this reader reads {', '.join(kinds)}; use the reader of "
            "the package that registers the kind"
        )
    return kind


def _decode_event(fields: Fields) -> Event:
    return Event(
        stream=fields.text("stream"),
        id=fields.text("id"),
        key=fields.text_or_null("key"),
        earliest=fields.integer("earliest"),
        latest=fields.integer("latest"),
        attributes=_optional_attributes(fields),
    )


def _decode_query_event(fields: Fields) -> Event | LastingEvent:
    if not fields.has("begin"):
        return _decode_event(fields)
    return LastingEvent(
        stream=fields.text("stream"),
        id=fields.text("id"),
        key=fields.text_or_null("key"),
        begin=fields.integer("begin"),
        end=fields.integer("end"),
        attributes=_optional_attributes(fields),
    )


def _decode_pair(fields: Fields) -> SimilarPair:
    measure = "distance" if fields.has("distance") else "similarity"
    value = fields.number(measure)
    older_size, newer_size = fields.integers("sizes", 2)
    return SimilarPair(
        similarity=value if measure == "similarity" else None,
        distance=value if measure == "distance" else None,
        overlap=fields.integer("overlap"),
        sizes=(older_size, newer_size),
        older=_decode_set(fields.inner("older")),
        newer=_decode_set(fields.inner("newer")),
    )


def _decode_item(fields: Fields) -> ListItem:
    return ListItem(fields.integer("rank"), _decode_pair(fields))


def _decode_set(fields: Fields) -> TokenSet:
    return TokenSet(fields.text("stream"), fields.text("id"), fields.integer("time"))


def _optional_number(fields: Fields, name: str) -> float | None:
    return fields.number(name) if fields.has(name) else None


def _optional_text(fields: Fields, name: str) -> str | None:
    return fields.text(name) if fields.has(name) else None


def _optional_attributes(fields: Fields) -> dict[str, str | int | float | bool | None]:
    return fields.attributes("attributes") if fields.has("attributes") else {}
