"""Reader for the alarms of timing conditions: converts records back to pairs and events."""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any

from correlation.record_fields import Fields
from correlation.reporting import ShownRecord
from correlation.resources.attributes import describe_attributes
from correlation.resources.times import describe_moment
from correlation.timing.alarm_format import TARGETS, TIMING_KINDS
from correlation.timing.factored.expanding import Expander, is_factored

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from correlation.resources.streams import Stream
    from correlation.timing.conditions import TimingCondition

# Fields that are shown, of an alarm and of each of its events.
_ALARM_FIELDS: dict[str, type | tuple[type, ...]] = {
    "condition": str,
    "detected_at": int,
    "decided_by": str,
    "threshold": (int, float),
    "a": dict,
    # null when no event of B satisfies the condition with A.
    "b": (dict, NoneType),
}
_EVENT_FIELDS: dict[str, type | tuple[type, ...]] = {
    "stream": str,
    "id": str,
    "earliest": int,
    "latest": int,
}


class AlarmReader:
    """Reads the alarms of timing conditions, plain or factored; see `ResultReader`."""

    def __init__(self) -> None:
        self._expander = Expander()

    def claims(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record is an alarm or a part of factored alarms."""
        kind = record.get("kind")
        return is_factored(record) or ("decided_by" in record and kind in (None, *TIMING_KINDS))

    def read(self, record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Return the alarms of a record; see `ResultReader.read`."""
        for alarm in self._expander.take(record):
            if not _is_alarm(alarm):
                raise ValueError("not an alarm of a timing condition")
            yield alarm

    def describe(self, result: Mapping[str, Any]) -> str:
        """Return the events, the probability and the way in which the pair was decided."""
        parts = [
            _describe_event(result["a"]),
            *_describe_match(result),
            f"({result['decided_by'].replace('_', ' ')})",
        ]
        if result.get("late"):
            parts.append("late")
        return "  ".join(parts)

    def show(self, record: Mapping[str, Any]) -> ShownRecord:
        """Return an alarm, or a part of factored alarms; see `ResultReader.show`."""
        if is_factored(record):
            return _show_part(Fields(record))
        (alarm,) = self.read(record)
        a, b = alarm["a"], alarm["b"]
        if b is None:
            return ShownRecord(f"{_name(a)}  without", {"A": a})
        probability = alarm.get("probability")
        known = "" if probability is None else f"  p={probability:.3f}"
        return ShownRecord(f"{_name(a)}  ↔  {_name(b)}{known}", {"A": a, "B": b})


def events_to_explain(
    condition: TimingCondition,
    streams: Mapping[str, Stream],
    record: Mapping[str, Any],
) -> dict[str, dict[str, Any]]:
    """Return the two events of an alarm, as a request of `explain` gives them.

    Alarms do not contain histograms: these events are given by their ids, which the service
    searches for in Kafka. Other records have no pair.
    """
    if is_factored(record) or not _is_alarm(record) or record["b"] is None:
        return {}
    # The condition may read other streams now.
    if [record[role]["stream"] for role in ("a", "b")] != [condition.a, condition.b]:
        return {}
    by_id = any(streams[name].has_shapes for name in (condition.a, condition.b))
    return {role: _give_event(record[role], by_id=by_id) for role in ("a", "b")}


def _give_event(event: Mapping[str, Any], *, by_id: bool) -> dict[str, Any]:
    if by_id:
        return {"id": event["id"]}
    fields = ("id", "key", "earliest", "latest", "attributes")
    return {"event": {name: event[name] for name in fields if event.get(name) is not None}}


def _show_part(fields: Fields) -> ShownRecord:
    """Return a table of targets, or an event and the number of its pairs."""
    if fields.text("record") == TARGETS:
        targets = f"targets of {fields.text('stream')}"
        return ShownRecord(f"table of {fields.integer('size')} {targets}", {})
    role = "a" if fields.has("a") else "b"
    event = fields.inner(role).content
    if not _is_event(event):
        raise fields.refuse(role, "must be an event")
    described = f"{_name(event)}  in {fields.integer('pairs')} pairs"
    return ShownRecord(described, {role.upper(): event})


def _name(event: Mapping[str, Any]) -> str:
    return f"{event['stream']}:{event['id']}"


def _is_alarm(found: Mapping[str, Any]) -> bool:
    if not _has(found, _ALARM_FIELDS) or not isinstance(
        found.get("probability"), int | float | None
    ):
        return False
    events = [found["a"]] if found["b"] is None else [found["a"], found["b"]]
    return all(map(_is_event, events))


def _is_event(event: Mapping[str, Any]) -> bool:
    return _has(event, _EVENT_FIELDS) and isinstance(event.get("attributes", {}), dict)


def _has(found: Mapping[str, Any], fields: dict[str, type | tuple[type, ...]]) -> bool:
    """Return whether an object has these fields with values of these types."""
    return all(name in found and isinstance(found[name], kind) for name, kind in fields.items())


def _describe_match(alarm: Mapping[str, Any]) -> list[str]:
    """Return the event of B and the probability, or "without" if B is missing."""
    if alarm["b"] is None:
        return ["without", f"p≥{alarm['threshold']}"]
    probability = alarm.get("probability")
    known = f"p={probability:.3f}" if probability is not None else f"p≥{alarm['threshold']}"
    return ["↔", _describe_event(alarm["b"]), known]


def _describe_event(event: Mapping[str, Any]) -> str:
    key = f" @{event['key']}" if event.get("key") else ""
    interval = f"[{describe_moment(event['earliest'])} … {describe_moment(event['latest'])}]"
    attributes = describe_attributes(event.get("attributes", {}))
    return " ".join(filter(None, [f"{_name(event)}{key}", interval, attributes]))
