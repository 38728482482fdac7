"""The form of a top-k condition in the console, in a real Chromium, on a service without a job."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browser import Tab, chromium, tab

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.rest.running import Service

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
TIMED = {"topic": "events-of-form-tests", "max_uncertainty": "0s", "max_delay": "1s"}
TAGGED = {
    **TIMED,
    "partitioning": "grid",
    "tokens": "tags",
    "attributes": {"level": {"path": "level", "type": "integer"}},
}
STREAMS: dict[str, dict[str, Any]] = {
    "alerts": TAGGED,
    "tickets": TAGGED,
    "plain": {**TIMED, "partitioning": "grid"},
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def opened(service: Service, browser: Browser) -> Iterator[Tab]:
    """Return a tab with the form of the kind."""
    for name, document in STREAMS.items():
        assert service.client.put(f"/v1/streams/{name}", json=document).is_success
    with tab(browser, str(service.client.base_url)) as found:
        page = found.page
        page.goto("/#/validate")
        page.get_by_label("kind", exact=True).select_option("topk_similarity")
        page.get_by_text("Optional fields").click()
        yield found
        assert found.faults == []


def field(page: Page, name: str) -> Locator:
    return page.locator(f"#field-{name}")


def fill(page: Page, **values: str) -> None:
    for name, value in values.items():
        field(page, name).fill(value)


def choose(page: Page, **values: str) -> None:
    for name, value in values.items():
        field(page, name).select_option(value)


def expect_problem(page: Page, name: str, problem: str) -> None:
    expect(page.locator(f"#problem-{name}")).to_contain_text(problem)
    expect(field(page, name)).to_have_attribute("aria-invalid", "true")


def expect_no_problems(page: Page) -> None:
    expect(page.get_by_text("● valid")).to_be_visible()
    expect(page.locator("[aria-invalid]")).to_have_count(0)
    expect(page.locator(".problem span")).to_have_count(0)


def shown_document(page: Page) -> dict[str, Any]:
    """Return the document beside the form."""
    found: dict[str, Any] = json.loads(
        page.get_by_role("region", name="Answer").locator("pre").inner_text()
    )
    return found


def test_form_of_a_list_has_the_fields_of_its_kind(opened: Tab) -> None:
    page = opened.page
    expect(page.locator("label", has_text="required")).to_have_text(
        ["a required", "k required", "window required"]
    )
    options = {
        "similarity": ["jaccard", "cosine", "dice", "overlap", "hamming"],
        "report": ["batch", "every"],
        "search": ["shortest", "newest"],
        "per_key": ["true", "false"],
    }
    defaults = {
        "similarity": "jaccard",
        "report": "batch",
        "search": "shortest",
        "per_key": "false",
    }
    for name, values in options.items():
        found = field(page, name).locator("option").all_inner_texts()
        assert found[0] == f"default: {defaults[name]}"
        assert {*values} <= {*found[1:]}, name
    # Fields that the reader has not reached have no problem yet.
    expect(page.get_by_text("not valid: 3 problems")).to_be_visible()
    expect(page.locator("[aria-invalid]")).to_have_count(0)
    assert opened.violations() == []


def test_problems_of_a_list_are_beside_their_fields(opened: Tab) -> None:
    page = opened.page
    fill(page, a="plain", k="0", window="10", min_similarity="0.12345")
    expect_problem(page, "k", "must be at least 1")
    expect_problem(page, "window", "unit; got 10")
    expect_problem(page, "min_similarity", "decimal places")
    fill(page, k="2", window="0s")
    expect_problem(page, "window", "must be at least 1us; got 0s")
    choose(page, similarity="hamming")
    fill(page, window="10s", min_similarity="0.5")
    expect_problem(page, "min_similarity", "hamming is a distance")
    fill(page, min_similarity="", max_distance="3")
    # The problem that is left is one of the stream.
    expect_problem(page, "a", "plain declares no tokens")
    expect(page.locator("[aria-invalid]")).to_have_count(1)
    fill(page, a="alerts", b="nowhere")
    expect_problem(page, "b", "nowhere")
    fill(page, b="tickets")
    choose(page, per_key="true")
    expect_problem(page, "per_key", "alerts is partitioned by")
    choose(page, per_key="")
    fill(page, where='{"a": {"room": "x"}}')
    expect_problem(page, "where", "where.a.room: ")
    fill(page, where='{"a": {"level": {"min": 3}}}')
    expect_no_problems(page)
    expect(field(page, "a")).not_to_have_attribute("aria-invalid", "true")
    assert opened.violations() == []


def test_form_of_a_list_shows_document_and_costs(service: Service, opened: Tab) -> None:
    page = opened.page
    fill(page, a="alerts", b="tickets", k="20", window="10s", min_similarity="0.5")
    choose(page, similarity="cosine", report="every")
    fill(page, **{"rates\\.alerts": "100", "rates\\.tickets": "0.5"})
    stock = page.locator("dt", has_text="max stock pairs").locator("+ dd")
    expect(stock).not_to_be_empty()
    expect_no_problems(page)
    condition = {
        "kind": "topk_similarity",
        "a": "alerts",
        "b": "tickets",
        "k": 20,
        "window": "10s",
        "min_similarity": "0.5",
        "similarity": "cosine",
        "report": "every",
    }
    body = {"condition": condition, "rates": {"alerts": 100, "tickets": 0.5}}
    answer = service.client.post("/v1/conditions:validate", json=body).json()
    assert answer["valid"]
    expect(stock).to_have_text(f"{answer['derived']['max_stock_pairs']:,}")
    assert shown_document(page) == answer["document"]
    latency = page.locator("dt", has_text="worst case alarm latency").locator("+ dd")
    expect(latency).to_have_text(f"{answer['derived']['worst_case_alarm_latency_us'] / 1e6:g} s")
    # The document can be registered as it is shown.
    registered = service.client.put("/v1/conditions/formed", json=shown_document(page))
    assert registered.status_code == 201
    assert registered.json()["document"] == answer["document"]
    # Without a second stream the costs are those of one.
    fill(page, b="")
    del condition["b"]
    body = {"condition": condition, "rates": {"alerts": 100}}
    single = service.client.post("/v1/conditions:validate", json=body).json()
    expect(stock).to_have_text(f"{single['derived']['max_stock_pairs']:,}")
