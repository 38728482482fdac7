"""JSON of alarms and their events as lists of parts.

A part is constant or a value: the bytes of a single alarm, or codes of the pieces of many alarms
(`correlation.buffers.joining`). Both are joined in the same order, so that they have one format.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from correlation.operators import Encode
from correlation.result_format import as_text
from correlation.timing.alarm_format import ALARM_VERSION
from correlation.timing.conditions import TimingCondition

_Value = TypeVar("_Value")


class AlarmValues(NamedTuple, Generic[_Value]):
    """Values of an alarm, as JSON.

    Parameters
    ----------
    detected_at
        Time at which the correlation completed, in µs since 1970.
    ident
        Id of the alarm, without quotes.
    verdict
        Fields `decided_by` and `late`, without braces (`encode_verdicts`).
    probability
        Satisfaction probability; None if alarms do not contain it.
    a, b
        The events (`event_parts`); `b` is None for an alarm without a B.
    """

    detected_at: _Value | bytes
    ident: _Value
    verdict: _Value
    probability: _Value | None
    a: _Value
    b: _Value | None


class EventValues(NamedTuple, Generic[_Value]):
    """Values of an event, as JSON.

    Parameters
    ----------
    ident, key
        Id and join key, without quotes (`encode_name`); `key` is None if it is not the users' own.
    earliest, latest
        Interval in µs since 1970.
    attributes
        Object of the attributes; None if the stream declares none.
    """

    ident: _Value
    key: _Value | None
    earliest: _Value
    latest: _Value
    attributes: _Value | None


def begin_alarm(condition: TimingCondition, encode: Encode) -> bytes:
    """Return the fields with which all alarms of a condition begin, as JSON without end."""
    common = {
        "v": ALARM_VERSION,
        "condition": condition.name,
        "version": condition.version,
        "kind": condition.kind,
        "threshold": float(condition.threshold),
    }
    return encode(common)[:-1] + b',"detected_at":'


def alarm_parts(begin: bytes, values: AlarmValues[_Value]) -> list[_Value | bytes]:
    """Return the parts of an alarm; `begin` is that of its condition (`begin_alarm`)."""
    parts: list[_Value | bytes] = [begin, values.detected_at]
    parts += [b',"alarm_id":"', values.ident, b'",', values.verdict]
    if values.probability is not None:
        parts += [b',"probability":', values.probability]
    parts += [b',"a":', values.a, b',"b":', b"null" if values.b is None else values.b, b"}"]
    return parts


def event_parts(stream: bytes, values: EventValues[_Value]) -> list[_Value | bytes]:
    """Return the parts of an event; `stream` is the name of its stream as JSON."""
    parts: list[_Value | bytes] = [b'{"id":"', values.ident, b'","stream":%b,"key":' % stream]
    parts += [b"null"] if values.key is None else [b'"', values.key, b'"']
    parts += [b',"earliest":', values.earliest, b',"latest":', values.latest]
    if values.attributes is not None:
        parts += [b',"attributes":', values.attributes]
    return [*parts, b"}"]


def event_record(
    stream: str, event_id: bytes, key: bytes | None, earliest: int, latest: int
) -> dict[str, object]:
    """Return an event as `event_parts` writes it, without attributes."""
    return {
        "id": as_text(event_id),
        "stream": stream,
        "key": None if key is None else as_text(key),
        "earliest": earliest,
        "latest": latest,
    }


def encode_verdicts(way: str, encode: Encode) -> list[bytes]:
    """Encode `decided_by` and `late`, as JSON without braces: first on time, then late."""
    return [encode({"decided_by": way, "late": late})[1:-1] for late in (False, True)]


def encode_name(name: bytes, encode: Encode) -> bytes:
    """Encode an id or a key as a JSON string without quotes; see `result_format.as_text`."""
    return encode(as_text(name))[1:-1]
