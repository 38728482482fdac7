"""Reader of the changes of top-k conditions, and cells of their present lists."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from correlation.reporting import ShownRecord
from correlation.resources.times import describe_moment
from correlation.topk.change_format import KIND

if TYPE_CHECKING:
    from correlation.resources.streams import Stream
    from correlation.topk.condition import TopKCondition

_FIELDS: dict[str, type] = {
    "condition": str,
    "detected_at": int,
    "change": str,
    "rank": int,
    "older": dict,
    "newer": dict,
}
# The two sets of a pair.
_SETS = ("older", "newer")
_SIGNS = {"entered": "+", "left": "-", "moved": "~"}
COLUMNS = ("rank", "value", "older", "time", "newer", "time")


class ChangeReader:
    """Reads the changes of top-k conditions; see `ResultReader`."""

    def claims(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record is a change of a top-k condition."""
        return record.get("kind") == KIND and "change" in record

    def read(self, record: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
        """Return the change of a record; see `ResultReader.read`."""
        valid = all(isinstance(record.get(name), kind) for name, kind in _FIELDS.items())
        if not valid or not all(_is_set(record[name]) for name in _SETS):
            raise ValueError("not a change of a top-k condition")
        return [dict(record)]

    def describe(self, result: Mapping[str, Any]) -> str:
        """Return change, rank, value and sets of a pair."""
        key = f"  @{result['key']}" if result.get("key") else ""
        sets = "  ↔  ".join(_describe_set(result[name]) for name in _SETS)
        return f"{_describe_change(result)}{key}  {sets}"

    def show(self, record: Mapping[str, Any]) -> ShownRecord:
        """Return a change with the two sets of its pair; see `ResultReader.show`."""
        (change,) = self.read(record)
        sets = {name: change[name] for name in _SETS}
        names = "  ↔  ".join(map(_name, sets.values()))
        return ShownRecord(f"{_describe_change(change)}  {names}", sets)


def events_to_explain(
    condition: TopKCondition,
    streams: Mapping[str, Stream],  # noqa: ARG001 - as all kinds
    record: Mapping[str, Any],
) -> dict[str, dict[str, Any]]:
    """Return the ids of the sets of a pair by role, as a request of `explain` gives them."""
    (change,) = ChangeReader().read(record)
    a, b = change["older"], change["newer"]
    if a["stream"] != condition.a:
        a, b = b, a
    if (a["stream"], b["stream"]) != (condition.a, condition.b):
        # The condition reads other streams now.
        return {}
    return {"a": {"id": a["id"]}, "b": {"id": b["id"]}}


def describe_value(item: Mapping[str, Any]) -> str:
    """Return the similarity or distance of a pair."""
    if "distance" in item:
        return f"distance={item['distance']:g}"
    value = item.get("similarity")
    return f"similarity={value:.4g}" if isinstance(value, int | float) else ""


def list_cells(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of an item of a present list, as `COLUMNS`."""
    older, newer = item["older"], item["newer"]
    return (
        str(item["rank"]),
        describe_value(item).partition("=")[2],
        _name(older),
        describe_moment(older["time"]),
        _name(newer),
        describe_moment(newer["time"]),
    )


def list_name(item: Mapping[str, Any]) -> str:
    """Return the sets of an item of a present list, which identify it."""
    return json.dumps([item["older"], item["newer"]])


def _is_set(value: Mapping[str, Any]) -> bool:
    named = all(isinstance(value.get(name), str) for name in ("stream", "id"))
    return named and isinstance(value.get("time"), int)


def _describe_change(result: Mapping[str, Any]) -> str:
    sign = _SIGNS.get(result["change"], result["change"])
    return f"{sign} #{result['rank']}  {describe_value(result)}"


def _describe_set(value: Mapping[str, Any]) -> str:
    return f"{_name(value)} [{describe_moment(value['time'])}]"


def _name(value: Mapping[str, Any]) -> str:
    return f"{value['stream']}:{value['id']}"
