"""Reader of the results of event queries: one record is one result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from correlation.event_query.alarm_format import KIND
from correlation.reporting import ShownRecord
from correlation.resources.attributes import describe_attributes
from correlation.resources.times import describe_moment

if TYPE_CHECKING:
    from correlation.event_query.condition import EventQueryCondition
    from correlation.resources.streams import Stream

_FIELDS: dict[str, type] = {
    "condition": str,
    "detected_at": int,
    "type": str,
    "attributes": dict,
    "begin": int,
    "end": int,
    "events": dict,
}
# Begin and end of an event that lasts, or the first and last possible time of an instant.
_SPANS = (("begin", "end"), ("earliest", "latest"))


class QueryResultReader:
    """Reads the results of event queries; see `ResultReader`."""

    def claims(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record is a result of an event query."""
        return record.get("kind") == KIND

    def read(self, record: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
        """Return the result of a record; see `ResultReader.read`."""
        valid = all(isinstance(record.get(name), kind) for name, kind in _FIELDS.items())
        valid = valid and isinstance(record.get("probability"), int | float | None)
        if not valid or not all(map(_is_event, record["events"].values())):
            raise ValueError("not a result of an event query")
        return [dict(record)]

    def describe(self, result: Mapping[str, Any]) -> str:
        """Return type, attributes, time and probability of a result, and its events."""
        parts = [result["type"]]
        parts += [f"{name}={_shown(value)}" for name, value in result["attributes"].items()]
        parts.append(_describe_span(result["begin"], result["end"]))
        if result.get("probability") is not None:
            parts.append(f"p={result['probability']:.3f}")
        parts += [_describe_event(alias, it) for alias, it in result["events"].items()]
        if result.get("late"):
            parts.append("late")
        return "  ".join(parts)

    def show(self, record: Mapping[str, Any]) -> ShownRecord:
        """Return a result with its events by alias; see `ResultReader.show`."""
        (result,) = self.read(record)
        events = result["events"]
        names = (f"{alias}={it['stream']}:{it['id']}" for alias, it in events.items())
        return ShownRecord("  ".join([result["type"], *names]), events)


def events_to_explain(
    condition: EventQueryCondition,  # noqa: ARG001 - as all kinds
    streams: Mapping[str, Stream],  # noqa: ARG001 - as all kinds
    record: Mapping[str, Any],
) -> dict[str, dict[str, Any]]:
    """Return the ids of a result's events by alias, as a request of `explain` gives them."""
    (result,) = QueryResultReader().read(record)
    return {alias: {"id": it["id"]} for alias, it in result["events"].items()}


def _is_event(event: object) -> bool:
    if not isinstance(event, dict):
        return False
    named = all(isinstance(event.get(name), str) for name in ("stream", "id"))
    has_attributes = isinstance(event.get("attributes", {}), dict)
    return named and has_attributes and _span(event) is not None


def _span(event: Mapping[str, Any]) -> tuple[int, int] | None:
    for names in _SPANS:
        first, last = map(event.get, names)
        if isinstance(first, int) and isinstance(last, int):
            return first, last
    return None


def _describe_event(alias: str, event: Mapping[str, Any]) -> str:
    key = f" @{event['key']}" if event.get("key") else ""
    span = _span(event)
    shown = "" if span is None else _describe_span(*span)
    attributes = describe_attributes(event.get("attributes", {}))
    name = f"{alias}={event['stream']}:{event['id']}{key}"
    return " ".join(filter(None, [name, shown, attributes]))


def _describe_span(begin: int, end: int) -> str:
    if begin == end:
        return f"[{describe_moment(begin)}]"
    return f"[{describe_moment(begin)} … {describe_moment(end)}]"


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
