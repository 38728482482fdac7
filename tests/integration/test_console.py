"""Every view of the console in a real Chromium, with a running job: contents, screens, pictures.

COINCIDE_SCREENSHOTS names a folder for the pictures of the views; `make screenshots` sets it.
"""

from __future__ import annotations

import json
import os
import random
import re
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from service.access.keys import new_key, write_keys
from tests.support.browser import DESKTOP, PHONE, chromium, tab
from tests.support.command import running_service
from tests.support.job import JobUnderTest
from tests.support.kafka import Sent, create_topics, produce
from tests.support.patience import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]
SECOND = 1_000_000
MINUTE = 60 * SECOND
STREAMS: dict[str, dict[str, Any]] = {
    "acoustic": {"max_uncertainty": "2s", "max_delay": "1h", "histograms": True},
    "seismic": {"min_uncertainty": "100ms", "max_uncertainty": "2s", "max_delay": "1h"},
    "smoke": {"max_uncertainty": "10min", "max_delay": "1min", "clock": "replay"},
    "report": {"max_uncertainty": "0s", "max_delay": "1min", "clock": "replay"},
    "messages": {
        "max_uncertainty": "0s",
        "max_delay": "1s",
        "clock": "replay",
        "partitioning": "grid",
        "tokens": "words",
    },
}
QUERY = """\
DETECT Unreported
ON event s: smoke
   not event r: report
WHERE s.rt.end <= r.rt.end, r.rt.end <= s.rt.end + 5 min
END"""
CONDITIONS: dict[str, dict[str, Any]] = {
    "footsteps": {
        "kind": "mutual_deadline",
        "a": "acoustic",
        "b": "seismic",
        "window": "1s",
        "threshold": "0.6",
    },
    "unreported": {"kind": "event_query", "query": QUERY, "threshold": "0.5"},
    # Without alarms, except by chance.
    "tremors": {
        "kind": "mutual_deadline",
        "a": "seismic",
        "b": "seismic",
        "window": "1s",
        "threshold": "0.6",
    },
    "alike": {"kind": "topk_similarity", "a": "messages", "k": 3, "window": "10min"},
    "near": {
        "kind": "topk_similarity",
        "a": "messages",
        "k": 3,
        "window": "10min",
        "similarity": "hamming",
    },
}
WORDS = ("disk", "full", "host", "timeout", "retry", "login", "denied", "restart")
# Name of the picture, and address of the view.
VIEWS = {
    "overview": "",
    "streams": "streams",
    "stream": "streams/acoustic",
    "conditions": "conditions",
    "condition": "conditions/footsteps",
    "query": "conditions/unreported",
    "list": "conditions/alike",
    "alarms": "alarms",
    "validate": "validate",
}
# Name of the picture, and condition of the alarm that is explained.
EXPLAINED = {"alarm": "footsteps", "combination": "unreported", "change": "alike"}
SCREENS = {"desktop": DESKTOP, "phone": PHONE}
# Contrast of the light scheme is checked on the desktop only.
LOOKS = [("desktop", "light"), ("desktop", "dark"), ("phone", "dark")]
# The looks without the marker show both screens and both schemes.
EACH_LOOK = [
    pytest.param(*look, marks=pytest.mark.nightly if look == ("desktop", "dark") else ())
    for look in LOOKS
]
# Index of the cell with the alarms by chance; that of the alarms per hour is beside it.
CHANCE = 4
# Index of the cell with the hit ratio; the name of the condition is a header, not a cell.
HIT_RATIO = 5
# Index of the cell with the similarity or the distance of a pair.
VALUE = 1


class Stack(NamedTuple):
    """A service and a job, to which events were sent, and a browser."""

    url: str
    client: httpx.Client
    job: JobUnderTest
    browser: Browser


@pytest.fixture(scope="module")
def stack(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("console")
    prefix = f"console{uuid.uuid4().hex[:10]}"
    # The setting that the service asks for on the topics of live streams.
    create_topics(
        kafka_bootstrap,
        {f"{prefix}-{name}": 1 for name in STREAMS},
        {"message.timestamp.type": "LogAppendTime"},
    )
    with (
        running_service(kafka_bootstrap, prefix, folder) as url,
        httpx.Client(base_url=url, timeout=PATIENCE_SECONDS) as client,
        chromium() as browser,
    ):
        job = JobUnderTest(kafka_bootstrap, prefix, folder, has_topics=True)
        for kind, documents in (("streams", STREAMS), ("conditions", CONDITIONS)):
            for name, document in documents.items():
                more = {"topic": f"{prefix}-{name}"} if kind == "streams" else {}
                answer = client.put(f"/v1/{kind}/{name}", json={**document, **more})
                assert answer.status_code == 201, answer.text
        try:
            job.start()
            found = Stack(url, client, job, browser)
            # Two rounds: the lists change, and time passes for the query.
            send_round(job, 1)
            wait_until(lambda: count(found, "footsteps") >= 1)
            send_round(job, 2)
            wait_until(lambda: count(found, "footsteps") >= 2)
            wait_until(lambda: count(found, "unreported") >= 1 and count(found, "alike") >= 1)
            wait_until(lambda: len(list_of(found)) == CONDITIONS["alike"]["k"])
            yield found
        finally:
            job.process.stop(5)


def send_round(job: JobUnderTest, number: int) -> None:
    """Send a pair with a histogram, smoke with and without a report, and messages."""
    chance = random.Random(number)  # noqa: S311 - a reproducible choice, no secret
    now = time.time_ns() // 1_000 - 5 * SECOND
    middle = now - SECOND // 2
    begin = number * 100 * MINUTE
    # Wide enough for the picture in every round.
    first = middle - SECOND // (2 * min(number, 4))
    buckets = [[first, middle, 0.2], [middle, now, 0.8]]
    sent: dict[str, list[dict[str, Any]]] = {
        "acoustic": [{"id": f"mic-{number}", "histogram": buckets}],
        "seismic": [
            {"id": f"geo-{number}", "earliest": middle - SECOND // 5, "latest": now + SECOND // 2}
        ],
        "smoke": [
            {"id": f"smoke-{number}-{at}", "earliest": begin + (at - 10) * MINUTE, "latest": end}
            for at in (20, 40, 60)
            for end in [begin + at * MINUTE]
        ],
        "report": [{"id": f"report-{number}-{at}", "time": begin + at * MINUTE} for at in (19, 90)],
        "messages": [
            {
                "id": f"message-{number}-{at}",
                "time": number * MINUTE + at * SECOND,
                "words": chance.sample(WORDS, 4),
            }
            for at in range(20)
        ],
    }
    for stream, events in sent.items():
        records = [Sent(json.dumps(it).encode(), b"north") for it in events]
        records += [Sent(b"not JSON", b"north")] if stream == "acoustic" else []
        produce(job.bootstrap, f"{job.prefix}-{stream}", records)


def alarms(stack: Stack, condition: str) -> list[dict[str, Any]]:
    """Return the recent alarms of a condition."""
    answer = stack.client.get("/v1/alarms", params={"condition": condition})
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def count(stack: Stack, condition: str) -> int:
    """Return the number of recent alarms of a condition."""
    stack.job.process.check()
    return len(alarms(stack, condition))


def list_of(stack: Stack) -> list[dict[str, Any]]:
    """Return the items of the present list."""
    found: list[dict[str, Any]] = stack.client.get("/v1/conditions/alike/topk").json()["items"]
    return found


def visit(page: Page, address: str) -> None:
    """Open a view, and wait until its parts are loaded."""
    page.goto(f"/#/{address}")
    expect(page.get_by_text("Loading…")).to_have_count(0)
    expect(page.get_by_text("Asking how")).to_have_count(0)


def address_of(stack: Stack, condition: str) -> str:
    """Return the address of the newest alarm of a condition."""
    found = alarms(stack, condition)[0]
    return f"alarms/{found['topic']}/{found['partition']}/{found['offset']}"


@pytest.fixture
def page(stack: Stack) -> Iterator[Page]:
    with tab(stack.browser, stack.url) as opened:
        yield opened.page
        assert opened.faults == []


def test_overview_shows_the_job(stack: Stack, page: Page) -> None:
    visit(page, "")
    for words in ("● ready", "● running"):
        expect(page.get_by_text(words)).to_be_visible()
    expect(page.get_by_role("listitem").filter(has_text="Streams").last).to_contain_text("5")
    expect(page.get_by_role("heading", name="Newest alarms")).to_be_visible()
    query = stack.client.get("/v1/job").json()["query_id"]
    expect(page.get_by_text(query)).to_be_visible()


def test_stream_is_shown_beside_its_declaration(stack: Stack, page: Page) -> None:
    visit(page, "streams")
    row = page.get_by_role("row").filter(has_text="seismic")
    expect(row).to_contain_text("1.2 s / 2 s")
    page.get_by_role("link", name="acoustic").click()
    expect(
        page.get_by_role("img", name="Uncertainty: declared 0 s to 2 s, seen 750 ms to 1 s")
    ).to_be_visible()
    expect(page.get_by_role("img", name="Delay: declared 0 s to 1 h")).to_be_visible()
    rejected = stack.client.get("/v1/streams/acoustic/status").json()["rejected"]
    expect(page.get_by_role("table", name="Dead letters by reason")).to_contain_text(
        next(iter(rejected))
    )


def test_condition_has_its_plan_and_its_list(stack: Stack, page: Page) -> None:
    visit(page, "conditions/unreported")
    picture = page.get_by_role("img", name="Picture of the plan")
    expect(picture).to_be_visible()
    # A picture that the policy refuses, or that cannot be decoded, has no width.
    expect(picture).not_to_have_js_property("naturalWidth", 0)
    visit(page, "conditions/alike")
    rows = page.get_by_role("table", name="Items").get_by_role("row")
    expect(rows).to_have_count(1 + CONDITIONS["alike"]["k"])
    expect(rows.nth(1)).to_contain_text("messages:message-")
    expect(page.get_by_role("columnheader", name="Value")).to_be_visible()
    expect(rows.nth(1).get_by_role("cell").nth(VALUE)).to_have_text(re.compile(r"^[01](\.\d+)?$"))
    visit(page, "conditions/near")
    # Sets of four words each: the distance is even.
    expect(rows.nth(1).get_by_role("cell").nth(VALUE)).to_have_text(re.compile("^[02468]$"))
    visit(page, "alarms?condition=near")
    expect(page.locator(".alarm").first).to_contain_text(re.compile(r"distance=[02468]\b"))
    visit(page, "conditions/footsteps")
    expect(page.get_by_role("heading", name="Present list")).to_have_count(0)
    expect(page.get_by_role("definition").filter(has_text="0.6")).to_be_visible()
    ratio = stack.client.get("/v1/conditions/footsteps/status").json()["hit_ratio"]
    assert 0 <= ratio <= 1
    shown = f"{100 * ratio:.2f}".rstrip("0").rstrip(".") + " %"
    fact = page.locator("dt", has_text="Hit ratio").locator("+ dd")
    expect(fact).to_have_text(shown)
    visit(page, "conditions")
    row = page.get_by_role("row").filter(has_text="footsteps")
    expect(row.get_by_role("cell").nth(HIT_RATIO)).to_have_text(shown)


def test_alarms_of_all_kinds_are_explained(stack: Stack, page: Page) -> None:
    visit(page, address_of(stack, "footsteps"))
    # The events of the stream have histograms: these columns come from the record in Kafka.
    columns = page.get_by_role("img", name="When A and B happened").locator("rect.event.a")
    expect(columns).to_have_count(2)
    expect(page.get_by_text("● satisfied: ")).to_be_visible()
    visit(page, address_of(stack, "unreported"))
    expect(page.get_by_role("img", name="The events of the alarm")).to_be_visible()
    expect(page.get_by_role("table", name="Steps")).to_contain_text("absence")
    visit(page, address_of(stack, "alike"))
    expect(page.get_by_role("heading", name="Tokens")).to_be_visible()


def test_views_change_without_a_reload(stack: Stack, page: Page) -> None:
    with tab(stack.browser, stack.url) as other:
        visit(page, "alarms?condition=footsteps")
        visit(other.page, "conditions/alike")
        expect(page.get_by_text("● live")).to_be_visible()
        as_of = other.page.get_by_text("As of").inner_text()
        send_round(stack.job, 3)
        expect(page.locator(".alarm").first).to_contain_text("mic-3")
        expect(other.page.get_by_text("As of")).not_to_have_text(as_of)
        assert other.faults == []


def round_of(screen: str, scheme: str, view: str) -> int:
    """Return the number of the round that is sent before the picture of a view.

    The messages of the previous round have left the window then: all pairs of the list are new.
    """
    views = ("streams", "conditions", "list")
    return 20 * (1 + len(views) * LOOKS.index((screen, scheme)) + views.index(view))


@pytest.mark.parametrize(("screen", "scheme"), EACH_LOOK)
def test_views_fit_the_screen_and_are_accessible(
    stack: Stack, tmp_path: Path, screen: str, scheme: str
) -> None:
    folder = Path(os.environ.get("COINCIDE_SCREENSHOTS", tmp_path))
    options = {"viewport": SCREENS[screen], "color_scheme": scheme, "reduced_motion": "reduce"}
    # axe-core adds its own script, which the policy of the page would refuse.
    with tab(stack.browser, stack.url, bypass_csp=True, **options) as opened:
        alarms = {name: address_of(stack, condition) for name, condition in EXPLAINED.items()}
        for name, address in (VIEWS | alarms).items():
            visit(opened.page, address)
            if name in EXPLAINED:
                expect(opened.page.get_by_role("table", name="Steps")).to_be_visible()
            if name == "validate":
                fill(opened.page)
            if name in {"streams", "conditions", "list"}:
                wait_for_a_round(stack, opened.page, name, round_of(screen, scheme, name))
            expect(opened.page.get_by_text("does not answer")).to_have_count(0)
            picture = folder / f"console-{name}-{screen}-{scheme}.png"
            # The list has hundreds of alarms.
            opened.page.screenshot(path=picture, full_page=name != "alarms")
            assert opened.violations() == [], name
            assert opened.overflow() <= 0, name
        assert opened.faults == []


def wait_for_a_round(stack: Stack, page: Page, view: str, number: int) -> None:
    """Send a round while a view is open, and wait until the view shows its rates or changes."""
    match view:
        case "streams":
            before = page.get_by_role("cell", name="0/s")
            shown = page.get_by_role("cell", name=re.compile(r"[1-9][0-9]*[^ ]s$"))
        case "conditions":
            rows = page.get_by_role("row")
            # A condition without alarms, except by chance, and one with an alarm for each round.
            before = rows.filter(has_text="tremors").get_by_role("cell").nth(CHANCE)
            expect(before).to_contain_text(re.compile("[0-9]"))
            cell = rows.filter(has_text="footsteps").get_by_role("cell").nth(CHANCE - 1)
            shown = cell.filter(has_text=re.compile("[1-9]"))
        case _:
            before = page.get_by_role("table", name="Items")
            shown = page.get_by_role("cell", name="new", exact=True)
    # The page has counted before: the events of the round have a rate.
    expect(before.first).to_be_visible()
    send_round(stack.job, number)
    expect(shown.first).to_be_visible()


@pytest.mark.parametrize(("screen", "scheme"), EACH_LOOK)
def test_sign_in_views_fit_the_screen_and_are_accessible(
    stack: Stack, topic_prefix: str, tmp_path: Path, screen: str, scheme: str
) -> None:
    keys = tmp_path / "keys.json"
    entry, _ = new_key("vera", "viewer", (), time.time_ns() // 1_000)
    write_keys(keys, [entry])
    folder = Path(os.environ.get("COINCIDE_SCREENSHOTS", tmp_path))
    options = {"viewport": SCREENS[screen], "color_scheme": scheme, "reduced_motion": "reduce"}
    protected = running_service(
        stack.job.bootstrap, topic_prefix, tmp_path, COINCIDE_KEYS_FILE=str(keys)
    )
    with protected as url, tab(stack.browser, url, bypass_csp=True, **options) as opened:
        visit(opened.page, "")
        expect(opened.page.get_by_role("heading", name="Sign in")).to_be_visible()
        picture = folder / f"console-sign-in-{screen}-{scheme}.png"
        opened.page.screenshot(path=picture, full_page=True)
        assert opened.violations() == []
        assert opened.overflow() <= 0
        assert opened.faults == []


def fill(page: Page) -> None:
    """Fill the form with a valid condition."""
    page.get_by_label("kind", exact=True).select_option("mutual_deadline")
    for label, value in {
        "a": "seismic",
        "b": "seismic",
        "window": "1s",
        "threshold": "0.6",
    }.items():
        page.get_by_label(f"{label} required", exact=True).fill(value)
    page.get_by_label("rates.seismic").fill("20")
    # Events of an hour, at this rate.
    expect(page.get_by_text("seismic: 72,0")).to_be_visible()
    expect(page.get_by_text("● valid")).to_be_visible()
    page.evaluate("scrollTo(0, 0)")
