"""Records of present lists, as `tail --list` reads them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from confluent_kafka import Message

from cli.client.list_tables import ShownLists
from cli.client.lists import _updates
from correlation.kinds import KINDS

LISTS = KINDS["topk_similarity"].lists
SET = {"stream": "s", "id": "x", "time": 5}
ITEM: dict[str, Any] = {"rank": 1, "similarity": 0.5, "older": SET, "newer": SET}


def read(**fields: object) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the lists in a record of condition c, and the reports."""
    assert LISTS is not None
    value = orjson.dumps({"v": 1, "condition": "c", **fields})
    message = Message("best.current", 0, 7, b"c", value)
    reports: list[str] = []
    return list(_updates(message, "c", LISTS, reports.append)), reports


def test_list_is_read_with_its_items() -> None:
    (found,), reports = read(as_of=5, items=[ITEM])
    assert (found["items"], reports) == ([ITEM], [])


@pytest.mark.parametrize(
    "fields",
    [
        {"items": [None]},
        {"items": [{}]},
        {"items": None},
        {"items": 3},
        {"items": [ITEM, {**ITEM, "older": [1]}]},
        {"items": [{**ITEM, "newer": {**SET, "time": "soon"}}]},
        {"items": [ITEM], "as_of": "now"},
    ],
)
def test_record_of_another_shape_is_reported_and_skipped(fields: dict[str, Any]) -> None:
    found, reports = read(**fields)
    assert found == []
    assert len(reports) == 1
    assert reports[0].startswith("best.current-0@7: is not a list: ")


def test_nasty_strings_of_a_list_are_shown_escaped() -> None:
    assert LISTS is not None
    nasty = "\x1b[2J\nforged"
    item = {**ITEM, "older": {**SET, "stream": nasty, "id": nasty}}
    (found,), _ = read(key=nasty, items=[item])
    group = ShownLists("c", LISTS).take(found)
    assert "\x1b" not in str(group.renderables[0])
