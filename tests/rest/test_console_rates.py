"""Rates of counters and chance alarms in the console, in a real Chromium, at set times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest
from playwright.sync_api import Page, expect

from correlation.engine.contract import ContractFacts, declaration
from correlation.resources.streams import Stream
from tests.rest.test_console import PAIR, browser, opened, register, visit
from tests.support.kafka import Sent, produce
from tests.support.patience import wait_until

if TYPE_CHECKING:
    from tests.rest.running import Service
    from tests.support.browser import Tab

__all__ = ["browser", "opened"]
pytestmark = [pytest.mark.kafka, pytest.mark.slow]
# Far in the future, so that the job counts as alive for the whole run.
AT_US = 4_000_000_000_000_000
# Adds values to one object, each at its own time.
ADD = """async ([address, values]) => {
  const { Rates } = await import(address);
  const rates = new Rates();
  return values.map(([name, value, now]) => rates.add(name, value, now));
}"""
# A number that the page does not know.
UNKNOWN = "\N{EN DASH}"
# The views are refreshed at this interval.
REFRESH_MS = 5_000
# Index of the cell of a row, whose name is a header and not a cell.
EVENTS_PER_SECOND, ALARMS_PER_HOUR, CHANCE_PER_HOUR = 1, 3, 4


@pytest.mark.parametrize(
    ("values", "rates"),
    [
        # Values of less than four seconds have no rate.
        ([(0, 100), (3_999, 200), (4_000, 300), (10_000, 600)], [None, None, 50, 50]),
        ([(1_000, 7), (5_000, 7)], [None, 0]),
        # Values older than a minute do not count.
        ([(0, 0), (10_000, 500), (60_000, 600), (70_000, 800)], [None, 50, 10, 5]),
        ([(0, 0), (60_001, 600), (66_001, 900)], [None, None, 50]),
        # A counter that falls begins again.
        (
            [(0, 1_000), (5_000, 2_000), (6_000, 10), (9_000, 20), (11_000, 60)],
            [None, 200, None, None, 10],
        ),
    ],
)
def test_rate_is_that_of_the_last_minute(
    service: Service, opened: Tab, values: list[tuple[int, int]], rates: list[float | None]
) -> None:
    page = opened.page
    visit(page, "")
    address = str(service.client.base_url.join("/console/rates.js"))
    # Another counter, at the same times, does not change the rates.
    both = [(name, value, at) for at, value in values for name in ("one", "other")]
    sent = [(name, value if name == "one" else 5, at) for name, value, at in both]
    found = page.evaluate(ADD, [address, sent])
    assert found[::2] == rates
    assert set(found[1::2]) <= {None, 0}


def report(service: Service, events: dict[str, int], alarms: int) -> None:
    """Write the totals of the job's slot, and wait until the service has read them."""
    contracts = {}
    for name, count in events.items():
        stream = Stream(name, name, max_uncertainty_us=2_000_000, max_delay_us=1_000_000)
        contracts[name] = ContractFacts(declaration(stream), events=count).to_record()
    record = {
        "v": 1,
        "slot": 0,
        "slots": 1,
        "at": AT_US,
        "counters": [["alarms_total", {"condition": "footsteps"}, alarms]],
        "contracts": contracts,
    }
    sent = Sent(orjson.dumps(record), b"slot/0")
    produce(service.settings.bootstrap, service.settings.topics.metrics, [sent])

    def is_read() -> bool:
        found = {it: service.client.get(f"/v1/streams/{it}/status").json() for it in events}
        status = service.client.get("/v1/conditions/footsteps/status").json()
        seen = {it: answer["seen"]["events"] for it, answer in found.items()}
        return seen == events and status["alarms"] == alarms

    wait_until(is_read)


def shown_rate(page: Page, stream: str) -> float:
    """Return the events per second that the view of the streams shows."""
    row = page.get_by_role("row").filter(has_text=stream)
    text = row.get_by_role("cell").nth(EVENTS_PER_SECOND).inner_text()
    number, unit = text.replace(",", "").split("/")
    assert unit == "s"
    return float(number)


def as_number(text: str) -> float:
    return float(text.replace(",", ""))


def test_chance_is_that_of_the_rates_shown(service: Service, opened: Tab) -> None:
    register(service)
    report(service, {"mic": 1_000, "geo": 50}, alarms=7)
    page = opened.page
    page.clock.install(time=0)
    page.clock.pause_at(1_000)
    visit(page, "conditions")
    cells = page.get_by_role("row").filter(has_text="footsteps").get_by_role("cell")
    # The first values of the counters have no rates.
    for place in (ALARMS_PER_HOUR, CHANCE_PER_HOUR):
        expect(cells.nth(place)).to_have_text(UNKNOWN)
    report(service, {"mic": 1_600, "geo": 62}, alarms=9)
    page.clock.run_for(REFRESH_MS)
    expect(cells.nth(ALARMS_PER_HOUR)).to_have_text("1,440")
    chance = as_number(cells.nth(CHANCE_PER_HOUR).inner_text())
    page.get_by_role("link", name="Streams").click()
    expect(page.get_by_role("link", name="mic")).to_be_visible()
    rates = {it: shown_rate(page, it) for it in ("mic", "geo")}
    assert rates == {"mic": 120, "geo": 2.4}
    body: dict[str, Any] = {"condition": PAIR, "rates": rates}
    answer = service.client.post("/v1/conditions:validate", json=body).json()
    # Shown with two decimal places.
    assert chance == pytest.approx(answer["derived"]["chance_alarms_per_hour"], abs=0.005)
    assert chance > 1
    # The page of the condition shows the same numbers.
    page.get_by_role("link", name="Conditions").click()
    page.get_by_role("link", name="footsteps").click()
    facts = page.locator("dl.facts").first
    for name, value in {"Alarms per hour": 1_440, "by chance": chance}.items():
        fact = facts.locator("dt", has_text=name).locator("+ dd")
        expect(fact).not_to_have_text(UNKNOWN)
        assert as_number(fact.inner_text()) == value
