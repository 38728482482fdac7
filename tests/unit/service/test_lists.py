"""The view of a compacted channel: present lists by condition and join key."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from correlation.result_format import ListName
from service.lists import UNKNOWN_VERSION, UNREADABLE, KeyPage, ListsView
from service.log import LogRecord


def view_of(*records: tuple[str, bytes | None, object]) -> ListsView:
    """Return the view of lists by condition and key; None withdraws."""
    view = ListsView()
    for offset, (condition, key, found) in enumerate(records):
        value = None if found is None else orjson.dumps(found)
        name = ListName(condition, key).record_key()
        view.apply(LogRecord(offset, name, value, 0))
    return view


def one(name: str) -> dict[str, Any]:
    return {"v": 1, "items": [{"id": name}]}


def test_newest_record_of_a_key_is_the_list() -> None:
    view = view_of(("c", None, one("a")), ("d", None, one("b")), ("c", None, one("x")))
    assert view.find("c", None) == one("x")
    assert view.find("d", None) == one("b")
    assert view.find("e", None) is None
    assert view.find("c", "k") is None


def test_tombstone_withdraws_the_list() -> None:
    view = view_of(
        ("c", b"k", one("a")), ("c", b"q", one("b")), ("c", b"k", None), ("c", b"never", None)
    )
    assert view.find("c", "k") is None
    assert view.keys("c", 9, "") == KeyPage(["q"], None)


def test_keys_are_paged_in_order() -> None:
    view = view_of(*(("c", key, one("a")) for key in (b"z", b"a/b", b"\xff", b"m")))
    assert view.keys("c", 2, "") == KeyPage(["\\xff", "a/b"], "a/b")
    assert view.keys("c", 2, "a/b") == KeyPage(["m", "z"], None)
    assert view.find("c", "\\xff") == one("a")


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"no JSON", UNREADABLE),
        (b"[]", UNREADABLE),
        (b'{"v": 2, "items": []}', UNKNOWN_VERSION),
        (b"{}", UNKNOWN_VERSION),
        (b'{"v": 1, "items": [null]}', UNREADABLE),
        (b'{"v": 1, "items": [{}, 5]}', UNREADABLE),
        (b'{"v": 1, "items": {}}', UNREADABLE),
        (b'{"v": 1, "items": null}', UNREADABLE),
        (b'{"v": 1, "items": [], "as_of": 1.5}', UNREADABLE),
        (b'{"v": 1, "items": [], "version": "1"}', UNREADABLE),
        (b'{"v": 1, "items": [], "detected_at": []}', UNREADABLE),
        (b'{"v": 1, "items": [], "error": {}}', UNREADABLE),
    ],
)
def test_record_of_other_software_is_an_error_of_its_list(value: bytes, error: str) -> None:
    view = ListsView()
    view.apply(LogRecord(0, b"c", value, 0))
    assert view.find("c", None) == {"error": error}


def test_record_without_the_key_of_a_list_is_skipped() -> None:
    view = ListsView()
    view.apply(LogRecord(0, b"\xff", b"{}", 0))
    view.apply(LogRecord(1, b"c", orjson.dumps(one("a")), 0))
    assert view.find("c", None) == one("a")
