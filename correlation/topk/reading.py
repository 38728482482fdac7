"""Reader of the changes of top-k conditions, and cells of their present lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from correlation.resources.times import describe_moment
from correlation.topk.change_format import KIND

_FIELDS: dict[str, type] = {
    "condition": str,
    "detected_at": int,
    "change": str,
    "rank": int,
    "older": dict,
    "newer": dict,
}
_SIGNS = {"entered": "+", "left": "-", "moved": "~"}
COLUMNS = ("rank", "similarity", "older", "time", "newer", "time")


class ChangeReader:
    """Reads the changes of top-k conditions; see `ResultReader`."""

    def claims(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record is a change of a top-k condition."""
        return record.get("kind") == KIND and "change" in record

    def read(self, record: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
        """Return the change of a record; see `ResultReader.read`."""
        valid = all(isinstance(record.get(name), kind) for name, kind in _FIELDS.items())
        if not valid or not all(_is_set(record[name]) for name in ("older", "newer")):
            raise ValueError("not a change of a top-k condition")
        return [dict(record)]

    def describe(self, result: Mapping[str, Any]) -> str:
        """Return change, rank, value and sets of a pair."""
        sign = _SIGNS.get(result["change"], result["change"])
        key = f"  @{result['key']}" if result.get("key") else ""
        sets = "  ↔  ".join(_describe_set(result[name]) for name in ("older", "newer"))
        return f"{sign} #{result['rank']}  {describe_value(result)}{key}  {sets}"


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
        f"{older['stream']}:{older['id']}",
        describe_moment(older["time"]),
        f"{newer['stream']}:{newer['id']}",
        describe_moment(newer["time"]),
    )


def _is_set(value: Mapping[str, Any]) -> bool:
    named = all(isinstance(value.get(name), str) for name in ("stream", "id"))
    return named and isinstance(value.get("time"), int)


def _describe_set(value: Mapping[str, Any]) -> str:
    return f"{value['stream']}:{value['id']} [{describe_moment(value['time'])}]"
