"""Present lists in the console, in a real Chromium, on a service without a job."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from correlation.result_format import ListName
from correlation.topk.results import PRESENT
from tests.rest.test_console import PAYLOADS, SHAPES, STREAM, browser, opened, visit
from tests.support.kafka import Sent, produce
from tests.support.patience import wait_until
from tests.support.results import NOON_US

if TYPE_CHECKING:
    from tests.rest.running import Service
    from tests.support.browser import Tab

__all__ = ["browser", "opened"]
pytestmark = [pytest.mark.kafka, pytest.mark.slow]
SETS = {**STREAM, "max_uncertainty": "0s", "partitioning": "grid", "tokens": "tags"}
PAIRS = {"kind": "topk_similarity", "a": "sets", "k": 4, "window": "10s"}


def register_list(service: Service, name: str) -> None:
    """Register a condition that maintains a list, and its stream."""
    assert service.client.put("/v1/streams/sets", json=SETS).is_success
    assert service.client.put(f"/v1/conditions/{name}", json=PAIRS).is_success


def write_list(service: Service, name: str, olders: str, detected_at: int) -> None:
    """Write a list of pairs with one newer set; each letter is the id of an older one."""
    items = [
        {
            "rank": rank,
            "similarity": 0.5,
            "overlap": 1,
            "sizes": [2, 2],
            "older": {"stream": "sets", "id": older, "time": NOON_US},
            "newer": {"stream": "sets", "id": "new", "time": NOON_US},
        }
        for rank, older in enumerate(olders, start=1)
    ]
    times = {"as_of": NOON_US, "detected_at": detected_at}
    value = json.dumps({"v": 1, "version": 1, **times, "items": items}).encode()
    sent = Sent(value, ListName(name, None).record_key())
    produce(service.settings.bootstrap, service.settings.topics.of(PRESENT), [sent])


def test_rows_that_moved_since_the_list_before_are_marked(service: Service, opened: Tab) -> None:
    register_list(service, "moving")
    page = opened.page
    rows = page.get_by_role("table", name="Items").locator("tbody tr")
    marks = rows.locator("td:nth-of-type(1)")
    write_list(service, "moving", "abc", NOON_US)
    visit(page, "conditions/moving")
    # The first list that the page shows has no marks.
    expect(marks).to_have_text(["", "", ""])
    for number, (olders, expected) in enumerate(
        {
            "bac": ["▲ from 2", "▼ from 1", ""],
            "cbad": ["▲ from 3", "▼ from 1", "▼ from 2", "new"],
            "cbd": ["", "", "▲ from 4"],
        }.items(),
        start=1,
    ):
        write_list(service, "moving", olders, NOON_US + number)
        expect(marks).to_have_text(expected)
        for row, older in zip(rows.all(), olders, strict=True):
            expect(row).to_contain_text(f"sets:{older}")


def test_further_keys_of_a_list_have_a_link(service: Service, opened: Tab) -> None:
    register_list(service, "lists")
    names = [f"key-{number:03}" for number in range(101)]
    value = json.dumps({"v": 1, "items": []}).encode()
    lists = [Sent(value, ListName("lists", it.encode()).record_key()) for it in names]
    produce(service.settings.bootstrap, service.settings.topics.of(PRESENT), lists)
    page = opened.page
    visit(page, "conditions/lists")
    keys = page.get_by_role("list", name="Keys").get_by_role("link")
    expect(keys).to_have_text(names[:100])
    more = page.get_by_role("link", name="More keys")
    more.click()
    expect(keys).to_have_text(names[100:])
    expect(more).to_have_count(0)


def test_hostile_lists_are_shown_as_text(service: Service, opened: Tab) -> None:
    register_list(service, "hostile")
    common = {"rank": 1, "similarity": 0.5, "overlap": 1, "sizes": [2, 2]}
    items: list[dict[str, Any]] = [
        {**common, "rank": rank, "older": hostile, "newer": hostile}
        for rank, payload in enumerate(PAYLOADS, start=1)
        for hostile in [{"stream": payload, "id": payload, "time": 5}]
    ]
    value = json.dumps({"v": 1, "items": items}).encode()
    # Keys of records are bytes: U+0000 is written as it is.
    whole = items[0]
    malformed = [{"older": None}, {**whole, "sizes": 5}, *({**whole, "rank": it} for it in SHAPES)]
    written = dict.fromkeys(PAYLOADS, value) | {
        "null": b'{"v": 1, "items": [null]}',
        **{
            f"shape-{number}": json.dumps({"v": 1, "items": [it]}).encode()
            for number, it in enumerate(malformed)
        },
    }
    lists = [
        Sent(it, ListName("hostile", key.encode()).record_key()) for key, it in written.items()
    ]
    produce(service.settings.bootstrap, service.settings.topics.of(PRESENT), lists)
    page = opened.page
    path = "/v1/conditions/hostile/topk"
    wait_until(lambda: len(service.client.get(path).json()["keys"]) == len(written))
    visit(page, "conditions/hostile")
    keys = page.get_by_role("list", name="Keys").get_by_role("link")
    expect(keys).to_have_count(len(written))
    for address in [it.get_attribute("href") or "" for it in keys.all()]:
        visit(page, address.removeprefix("#/"))
        expect(page.get_by_role("heading", name="Present list")).to_be_visible()
        assert page.locator("img[src=x], svg[onload], [onerror], main script").count() == 0
    visit(page, f"conditions/hostile?key={quote(PAYLOADS[0])}")
    rows = page.get_by_role("table", name="Items").get_by_role("row")
    for payload in PAYLOADS[:6]:
        expect(rows.filter(has_text=payload)).to_have_count(1)
    visit(page, "conditions/hostile?key=null")
    expect(page.get_by_text("cannot be shown: unreadable")).to_be_visible()
