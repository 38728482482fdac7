"""Lists of conditions at the end of a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from cli.client.list_tables import ShownLists
from correlation.kinds import KINDS
from correlation.result_format import ListName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from correlation.lists import Lists


def add_lists(report: dict[str, Any], lists: Mapping[bytes, bytes]) -> None:
    """Add the field `lists` to the conditions of a report that have lists, in order of the keys.

    Parameters
    ----------
    report
        Report as `cli.replay.report.summarise` returns it.
    lists
        Newest record of each list, by Kafka key.
    """
    for key, value in sorted(lists.items()):
        found = report["conditions"][ListName.from_record_key(key).condition]
        found.setdefault("lists", []).append(orjson.loads(value))


def show_lists(report: Mapping[str, Any], console: Console) -> None:
    """Print the lists of a report as tables."""
    for name, found in report["conditions"].items():
        present = found.get("lists", ())
        declared = _declared(present[0]["kind"]) if present else None
        if declared is not None:
            shown = ShownLists(name, declared)
            for one in reversed(present):
                tables = shown.take(one)
            console.print(tables)


def _declared(kind: str) -> Lists | None:
    return KINDS[kind].lists
