"""Facts about the job in the overview of the console, in a real Chromium."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import orjson
import pytest
from playwright.sync_api import expect

from tests.rest.test_console import PAYLOADS
from tests.support.browser import chromium, tab
from tests.support.kafka import Sent, produce
from tests.support.patience import wait_until

if TYPE_CHECKING:
    from tests.rest.running import Service

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
HOUR_US = 3_600_000_000
STARTING = "The job is starting."
DOWN = "Start it again"
STALLED = "completes no batch"


def report(service: Service, state: str, at: int, exception: str | None = None) -> None:
    """Write the job's record, and wait until the service has read it."""
    record = {
        "v": 1,
        "query_id": "q",
        "batch": None,
        "state": state,
        "input_rate": 0.0,
        "lag": {},
        "last_batch_at": at,
        "lost": {},
        "missing_topics": [],
        "recreated_topics": {},
        "durations": {},
        "exception": exception,
        "at": at,
        "applied_config_offset": None,
    }
    sent = Sent(orjson.dumps(record), b"job")
    produce(service.settings.bootstrap, service.settings.topics.metrics, [sent])
    wait_until(lambda: service.client.get("/v1/job").json()["at"] == at)


def test_starting_job_is_not_reported_as_down(service: Service) -> None:
    stream = {"topic": "events-of-overview", "max_uncertainty": "2s", "max_delay": "1s"}
    assert service.client.put("/v1/streams/mic", json=stream).is_success
    with chromium() as browser, tab(browser, str(service.client.base_url)) as opened:
        page = opened.page
        # The console compares the time of the record with the clock: the record is of the future,
        # or an hour old, so that the answer does not depend on the speed of the test.
        for state, age_us, words in (
            ("starting", -HOUR_US, STARTING),
            ("failed", -HOUR_US, DOWN),
            ("restarting", -HOUR_US, STARTING),
            ("stalled", -HOUR_US, STALLED),
            ("stalled", HOUR_US, DOWN),
            ("starting", HOUR_US, DOWN),
        ):
            report(service, state, time.time_ns() // 1_000 - age_us)
            page.goto("/")
            expect(page.get_by_text(words)).to_be_visible()
            for other in {STARTING, DOWN, STALLED} - {words}:
                expect(page.get_by_text(other)).to_have_count(0)
        assert opened.faults == []


def test_exception_of_the_job_is_shown_as_text(service: Service) -> None:
    with chromium() as browser, tab(browser, str(service.client.base_url)) as opened:
        page = opened.page
        for number, payload in enumerate(PAYLOADS):
            report(service, "failed", time.time_ns() // 1_000 - HOUR_US + number, payload)
            page.goto("/")
            # The details are open: the job is down. U+202E, which reverses text, is escaped.
            shown = page.locator("details[open] pre")
            expect(shown).to_contain_text(payload.strip("\u202e\0\u2028"))
            expect(shown).not_to_contain_text("\u202e")
            assert page.locator("img[src=x], svg[onload], [onerror], main script").count() == 0
        assert opened.faults == []
