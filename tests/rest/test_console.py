"""The console in a real Chromium, on a running service without a job."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Browser, Page, expect

from cli.stack.broker import free_port
from tests.rest.running import Service, fresh_settings, running
from tests.support.browser import PHONE, Tab, chromium, tab
from tests.support.kafka import Sent, produce
from tests.support.patience import wait_until
from tests.support.results import NOON_US, headers_of, result

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
STREAM = {"topic": "events-of-console-tests", "max_uncertainty": "2s", "max_delay": "1s"}
PAIR = {"kind": "mutual_deadline", "a": "mic", "b": "geo", "window": "1s", "threshold": 0.6}
PAYLOADS = [
    "<img src=x onerror=alert(1)>",
    '"><script>alert(2)</script>',
    "<svg onload=alert(3)>",
    "javascript:alert(4)",
    "' onfocus=alert(5) autofocus='",
    "{{constructor.constructor('alert(6)')()}}",
    "\u202egnp.exe\u0000\u2028",
    "<a href=javascript:alert(7)>" + "A" * 3000,
]
# Values of other types than the fields of records have; `null` instead of a method, too.
NAMED = {"stream": "mic", "id": "m", "time": 1e300}
SHAPES: list[object] = [None, {"toString": None}, 1e300, [None]]
FIELDS = ("condition", "detected_at", "threshold", "a", "b", "events", "change", "record")
QUERY = """\
DETECT Lone
ON event m: mic
   not event g: geo
WHERE m.rt.end <= g.rt.end, g.rt.end <= m.rt.end + 5 s
END"""
# Chromium without a window does not hide pages.
CHANGE_VISIBILITY = """() => {
  Object.defineProperty(document, "hidden", { value: !document.hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
VIEWS = ["", "streams", "conditions", "alarms", "validate"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def opened(service: Service, browser: Browser) -> Iterator[Tab]:
    with tab(browser, str(service.client.base_url)) as found:
        yield found
        assert found.faults == []


def event(stream: str, ident: str, begin: int, end: int, **more: object) -> dict[str, Any]:
    times = {"earliest": NOON_US + begin, "latest": NOON_US + end}
    return {"id": ident, "stream": stream, "key": "north", **times, **more}


def alarm(number: int, a: str, b: str, **more: Any) -> Sent:  # noqa: ANN401  any JSON value
    return result(
        number,
        version=1,
        kind="mutual_deadline",
        threshold=0.6,
        decided_by="probe",
        late=False,
        a=event("mic", a, 1_500_000, 2_000_000),
        b=event("geo", b, 0, 2_000_000),
        **more,
    )


def register(service: Service) -> None:
    for name in ("mic", "geo"):
        assert service.client.put(f"/v1/streams/{name}", json=STREAM).is_success
    assert service.client.put("/v1/conditions/footsteps", json=PAIR).is_success


def send(service: Service, *records: Sent) -> None:
    produce(service.settings.bootstrap, service.settings.topics.alarms, records)


def visit(page: Page, address: str) -> None:
    page.goto(f"/#/{address}")
    expect(page.get_by_text("Loading…")).to_have_count(0)


def test_empty_views_say_what_to_do(kafka_bootstrap: str, browser: Browser) -> None:
    with (
        running(fresh_settings(kafka_bootstrap)) as service,
        tab(browser, str(service.client.base_url)) as opened,
    ):
        page = opened.page
        for address, words in {
            "": "Nothing is registered yet.",
            "streams": "No stream is registered.",
            "conditions": "No condition is registered.",
            "alarms": "No alarm yet.",
            "validate": "every condition names streams",
            "nowhere": "page with this address",
        }.items():
            visit(page, address)
            expect(page.get_by_text(words)).to_be_visible()
        visit(page, "")
        expect(page.get_by_text("No job has reported")).to_be_visible()
        visit(page, "alarms/coincide.alarms/0/7")
        expect(page.get_by_text("not in the memory")).to_be_visible()
        visit(page, "streams/missing")
        expect(page.get_by_text("Trying again every 5 s.")).to_be_visible()
        assert opened.faults == []


def test_alarms_appear_as_they_are_written(service: Service, opened: Tab) -> None:
    register(service)
    page = opened.page
    visit(page, "alarms?condition=footsteps")
    expect(page.get_by_text("● live")).to_be_visible()
    send(service, alarm(1, "mic-1", "geo-1"), result(2, "other"))
    alarms = page.get_by_role("list", name="Alarms, the newest first").get_by_role("listitem")
    expect(alarms).to_have_count(1)
    expect(alarms).to_contain_text("mic:mic-1 ↔ geo:geo-1")
    page.get_by_role("button", name="Pause").click()
    send(service, alarm(3, "mic-3", "geo-3"))
    expect(page.get_by_text("1 of them wait")).to_be_visible()
    expect(alarms).to_have_count(1)
    page.get_by_role("button", name="Pause").click()
    expect(alarms).to_have_count(2)
    expect(alarms.first).to_contain_text("mic-3")
    page.get_by_label("Condition").fill("missing")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("No alarm yet.")).to_be_visible()


def test_hidden_page_does_not_follow_alarms(service: Service, opened: Tab) -> None:
    register(service)
    page = opened.page

    def has_readers(number: int) -> bool:
        return f"coincide_alarm_readers {number}.0" in service.client.get("/metrics").text

    visit(page, "alarms?condition=unseen")
    expect(page.get_by_text("● live")).to_be_visible()
    wait_until(lambda: has_readers(1))
    page.evaluate(CHANGE_VISIBILITY)
    wait_until(lambda: has_readers(0))
    send(service, alarm(21, "mic-21", "geo-21", condition="unseen"))
    expect(page.get_by_text("0 new alarms")).to_be_visible()
    page.evaluate(CHANGE_VISIBILITY)
    expect(page.locator(".alarm")).to_contain_text("mic-21")
    expect(page.get_by_text("1 new alarms")).to_be_visible()
    wait_until(lambda: has_readers(1))


def test_focus_stays_on_its_alarm_while_others_arrive(service: Service, opened: Tab) -> None:
    register(service)
    page = opened.page
    visit(page, "alarms?condition=chosen")
    expect(page.get_by_text("● live")).to_be_visible()
    send(service, alarm(31, "mic-31", "geo-31", condition="chosen"))
    chosen = page.get_by_role("link", name="mic-31")
    chosen.focus()
    address = chosen.get_attribute("href") or ""
    send(service, alarm(32, "mic-32", "geo-32", condition="chosen"))
    expect(page.locator(".alarm").first).to_contain_text("mic-32")
    expect(chosen).to_be_focused()
    expect(page.locator(":focus")).to_have_attribute("href", address)
    page.keyboard.press("Enter")
    expect(page.get_by_role("definition").filter(has_text="mic:mic-31")).to_be_visible()


def test_pair_is_explained_as_a_picture(service: Service, opened: Tab) -> None:
    register(service)
    send(service, alarm(11, "mic-11", "geo-11", probability=0.625))
    page = opened.page
    visit(page, "alarms")
    page.get_by_role("link", name="mic-11").click()
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(page.get_by_text("satisfied: the probability is 0.625 (5/8)")).to_be_visible()
    for name in (
        "When A and B happened: A mic:mic-11 from 2026-01-01T12:00:01.5Z to 2026-01-01T12:00:02Z",
        "Probability 0.625, threshold 0.6",
        "Regions of A: ",
    ):
        expect(page.get_by_role("img", name=name)).to_be_visible()
    expect(page.get_by_text("B in the window (filled: certain)")).to_be_visible()
    # The address is that of the alarm: it can be sent to others.
    page.reload()
    expect(page.get_by_role("img", name="Probability 0.625")).to_be_visible()


def test_hostile_strings_are_shown_as_text(service: Service, opened: Tab) -> None:
    register(service)
    planted = [
        alarm(100 + number, payload, payload, probability=0.9, attributes={payload: payload})
        for number, payload in enumerate(PAYLOADS)
    ]
    combination = {
        "condition": PAYLOADS[0],
        "kind": "event_query",
        "type": PAYLOADS[2],
        "attributes": {it: it for it in PAYLOADS},
        "begin": NOON_US,
        "end": NOON_US,
        "events": {it: event(it, it, 0, 0, attributes={it: it}) for it in PAYLOADS},
        "threshold": PAYLOADS[1],
        "detected_at": NOON_US,
    }
    # The second one is not valid: it is shown as JSON.
    for hostile in (combination, combination | {"kind": PAYLOADS[1]}):
        value = json.dumps(hostile).encode()
        planted.append(Sent(value, PAYLOADS[0].encode(), headers=headers_of("footsteps")))
    send(service, *planted)
    page = opened.page

    def listed() -> int:
        items = service.client.get("/v1/alarms").json()["items"]
        return sum(it["record"].get("number", 0) >= 100 for it in items)

    wait_until(lambda: listed() >= len(PAYLOADS))
    wait_until(lambda: "event_query" in service.client.get("/v1/alarms").text)
    visit(page, "alarms")
    links = page.locator(".alarm")
    for payload in PAYLOADS[:6]:
        expect(links.filter(has_text=payload).first).to_be_visible()
    # The combination is shown by its kind.
    expect(links.filter(has_text=f"{PAYLOADS[2]}  {PAYLOADS[0]}=")).to_have_count(1)
    # Each alarm is opened, and asks the service for its explanation.
    for address in {it.get_attribute("href") or "" for it in links.all()}:
        visit(page, address.removeprefix("#/"))
        expect(page.get_by_text("Asking how")).to_have_count(0)
    visit(page, "")
    expect(page.get_by_role("heading", name="Newest alarms")).to_be_visible()
    for address in ("conditions", "streams", "alarms"):
        visit(page, f"{address}/{'%3Cimg%20src%3Dx%20onerror%3Dalert(8)%3E'}")
    assert page.locator("img[src=x], svg[onload], [onerror], main script").count() == 0


def test_records_of_any_shape_are_shown(service: Service, opened: Tab) -> None:
    register(service)
    assert service.client.put("/v1/conditions/shapes", json=PAIR).is_success
    whole = json.loads(alarm(41, "mic-41", "geo-41", condition="shapes").value or b"")
    a, b = whole["a"], whole["b"]
    changes: list[dict[str, object]] = [{field: it} for field in FIELDS for it in SHAPES]
    changes += [
        {"a": {**a, "latest": 1e300}},
        {"a": {**a, "latest": 10**18}},
        {"a": {**a, "histogram": 7}, "b": {**b, "histogram": [{"lo": None}]}},
        {"a": {**a, "stream": {"toString": None}, "id": None, "key": {}}},
        {"a": {**a, "id": "a\u202eb"}, "probability": 1e300, "threshold": {}},
        {"change": "moved", "older": {"time": 1e300}},
        {"change": "moved", "rank": {"toString": None}, "older": NAMED, "newer": NAMED},
        {"events": {"s": None, "r": {"begin": 0, "end": 1e300}}},
    ]
    values = [json.dumps({**whole, **change}).encode() for change in changes]
    send(service, *(Sent(it, b"north", headers=headers_of("shapes")) for it in values))
    page = opened.page
    visit(page, "alarms?condition=shapes")
    links = page.locator(".alarm")
    expect(links).to_have_count(len(changes))
    visit(page, "")
    expect(page.get_by_role("heading", name="Newest alarms")).to_be_visible()
    visit(page, "alarms?condition=shapes")
    expect(links).to_have_count(len(changes))
    for address in [it.get_attribute("href") or "" for it in links.all()]:
        visit(page, address.removeprefix("#/"))
        expect(page.get_by_text("Asking how")).to_have_count(0)
        record = page.locator("summary", has_text="Record")
        expect(record).to_be_visible()
        record.click()
        expect(page.locator("details pre")).not_to_contain_text("\u202e")


def test_form_checks_a_condition_while_one_types(service: Service, opened: Tab) -> None:
    register(service)
    page = opened.page
    visit(page, "validate")
    answer = page.get_by_role("region", name="Answer")
    expect(answer.get_by_text("not valid")).to_be_visible()
    page.get_by_label("kind", exact=True).select_option("mutual_deadline")
    page.get_by_label("a required", exact=True).fill("mic")
    page.get_by_label("b required", exact=True).fill("nowhere")
    page.get_by_label("window required").fill("2")
    page.get_by_label("threshold required").fill("1.5")
    expect(page.locator("#problem-window")).to_contain_text("unit; got 2")
    expect(page.locator("#problem-threshold")).to_contain_text("must be")
    expect(page.get_by_label("threshold required")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("b required", exact=True).fill("geo")
    page.get_by_label("window required").fill("1s")
    page.get_by_label("threshold required").fill("0.6")
    page.get_by_label("rates.mic").fill("500")
    page.get_by_label("rates.geo").fill("20")
    page.get_by_label("keys").fill("10")
    expect(answer.get_by_text("● valid")).to_be_visible()
    body = {"condition": {**PAIR, "threshold": "0.6"}, "rates": {"mic": 500, "geo": 20}, "keys": 10}
    derived = service.client.post("/v1/conditions:validate", json=body).json()["derived"]
    chance = page.locator("dt", has_text="chance alarms per hour").locator("+ dd")
    expect(chance).to_have_text(f"{derived['chance_alarms_per_hour']:,.2f}".rstrip("0").rstrip("."))
    page.get_by_label("keys").fill("none")
    expect(page.locator("#problem-keys")).not_to_be_empty()


def test_form_asks_for_the_rates_of_a_query(service: Service, opened: Tab) -> None:
    register(service)
    page = opened.page
    visit(page, "validate")
    page.get_by_label("kind", exact=True).select_option("event_query")
    page.get_by_label("query required").fill(QUERY)
    page.get_by_text("Optional fields").click()
    page.get_by_label("threshold", exact=True).fill("0.9")
    page.get_by_label("rates.mic").fill("500")
    page.get_by_label("rates.geo").fill("20")
    buffered = page.locator("dt", has_text="expected buffered events").locator("+ dd li")
    expect(buffered).to_have_count(2)
    # The rates of streams that a query does not read any more are left out.
    page.get_by_label("query required").fill("DETECT Loud ON event m: mic END")
    expect(buffered).to_have_text([re.compile("^mic: ")])
    expect(page.get_by_text("● valid")).to_be_visible()


def test_console_works_with_the_keyboard_alone(service: Service, opened: Tab) -> None:
    register(service)
    page = opened.page
    visit(page, "")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    visit(page, "conditions")
    names = ["Coincide", "Overview", "Streams"]
    page.get_by_role("link", name="Skip to the content").focus()
    for name in names:
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name=name, exact=True)).to_be_focused()
        expect(page.locator(":focus")).to_have_css("outline-style", "solid")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Streams", level=1)).to_be_focused()
    expect(page.get_by_role("link", name="Streams")).to_have_attribute("aria-current", "page")
    expect(page.get_by_role("link", name="geo")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="geo")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Stream geo")).to_be_focused()
    visit(page, "validate")
    page.get_by_label("kind", exact=True).focus()
    # One letter: a pause between two would begin the search again.
    page.keyboard.type("m")
    expect(page.get_by_label("kind", exact=True)).to_have_value("mutual_deadline")
    for typed in ("mic", "geo", "1s", "0.6"):
        page.keyboard.press("Tab")
        page.keyboard.type(typed)
    expect(page.get_by_text("● valid")).to_be_visible()
    optional = page.locator("details", has_text="Optional fields")
    first, second = optional.locator("input, select, textarea").all()[:2]
    expect(first).to_be_hidden()
    page.keyboard.press("Tab")
    expect(optional.locator("summary")).to_be_focused()
    expect(page.locator(":focus")).to_have_css("outline-style", "solid")
    page.keyboard.press("Enter")
    for field in (first, second):
        page.keyboard.press("Tab")
        expect(field).to_be_focused()
    for _ in range(2):
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    expect(first).to_be_hidden()
    expect(optional.locator("summary")).to_be_focused()


def test_alarms_are_filtered_and_paused_with_the_keyboard_alone(
    service: Service, opened: Tab
) -> None:
    register(service)
    page = opened.page
    visit(page, "alarms")
    page.get_by_role("heading", name="Alarms", level=1).focus()
    typing = page.get_by_label("Condition")
    page.keyboard.press("Tab")
    expect(typing).to_be_focused()
    page.keyboard.type("keyed")
    # The join key is between the two.
    for _ in range(2):
        page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Filter")).to_be_focused()
    expect(page.locator(":focus")).to_have_css("outline-style", "solid")
    page.keyboard.press("Space")
    expect(page).to_have_url(re.compile("#/alarms.condition=keyed$"))
    expect(page.get_by_role("heading", name="Alarms", level=1)).to_be_focused()
    expect(typing).to_have_value("keyed")
    expect(page.get_by_text("● live")).to_be_visible()
    pause = page.get_by_role("button", name="Pause")
    # The two fields, Filter, and the link to all alarms are before it.
    for _ in range(5):
        page.keyboard.press("Tab")
    expect(pause).to_be_focused()
    expect(page.locator(":focus")).to_have_css("outline-style", "solid")
    page.keyboard.press("Space")
    expect(pause).to_have_attribute("aria-pressed", "true")
    send(service, alarm(51, "mic-51", "geo-51", condition="keyed"))
    expect(page.get_by_text("1 of them wait")).to_be_visible()
    expect(page.locator(".alarm")).to_have_count(0)
    expect(pause).to_be_focused()
    page.keyboard.press("Enter")
    expect(pause).to_have_attribute("aria-pressed", "false")
    expect(page.locator(".alarm")).to_contain_text("mic-51")


def test_console_goes_on_while_the_service_is_away(kafka_bootstrap: str, browser: Browser) -> None:
    settings = fresh_settings(kafka_bootstrap)
    port = free_port()
    with tab(browser, f"http://127.0.0.1:{port}") as opened:
        page = opened.page
        with running(settings, port) as service:
            register(service)
            visit(page, "alarms")
            send(service, alarm(1, "mic-1", "geo-1"))
            expect(page.locator(".alarm")).to_have_count(1)
        away = page.locator("#connection", has_text="does not answer")
        expect(away).to_be_visible()
        # The alarms stay, and the other views say that nothing can be loaded.
        expect(page.locator(".alarm")).to_have_count(1)
        page.get_by_role("link", name="Streams").click()
        expect(page.get_by_text("Trying again every 5 s.")).to_be_visible()
        page.get_by_role("link", name="Alarms").click()
        with running(settings, port) as service:
            send(service, alarm(2, "mic-2", "geo-2"))
            expect(page.locator(".alarm")).to_have_count(2)
            expect(away).to_have_count(0)
            expect(page.get_by_text("● live")).to_be_visible()
        assert opened.faults == []


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_accessible_and_fit_a_phone(
    service: Service, browser: Browser, view: str
) -> None:
    register(service)
    url = str(service.client.base_url)
    # axe-core adds its own script, which the policy of the page would refuse.
    with tab(browser, url, viewport=PHONE, bypass_csp=True) as opened:
        visit(opened.page, view)
        assert opened.violations() == []
        assert opened.overflow() <= 0
        assert opened.faults == []
