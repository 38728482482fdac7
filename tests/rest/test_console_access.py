"""Readers sign in to the console, in a real Chromium."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, expect

from service.access.keys import new_key, write_keys
from tests.rest.running import fresh_settings, running
from tests.rest.test_console import alarm, browser, send, visit
from tests.support.browser import PHONE, tab
from tests.support.issuer import AUDIENCE, running_issuer
from tests.support.results import NOON_US

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["browser"]
pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def test_reader_signs_in_where_access_control_is_on(
    kafka_bootstrap: str, browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "keys.json"
    entry, key = new_key("vera", "viewer", (), NOON_US)
    write_keys(path, [entry])
    settings = fresh_settings(kafka_bootstrap, keys_file=path)
    with (
        running(settings) as service,
        tab(browser, str(service.client.base_url), viewport=PHONE) as opened,
    ):
        page = opened.page
        sign_in = page.get_by_role("heading", name="Sign in")
        field = page.get_by_label("API key or token")
        leave = page.get_by_role("button", name="Sign out")
        visit(page, "streams")
        expect(sign_in).to_be_visible()
        expect(leave).to_be_hidden()
        for wrong, words in {
            "two words": "only ASCII characters",
            "“quoted”": "only ASCII characters",
            f"{key}x": "mistyped, expired or revoked",
        }.items():
            field.fill(wrong)
            page.keyboard.press("Enter")
            expect(page.get_by_role("alert")).to_contain_text(words)
            expect(field).to_be_focused()
        field.fill(key)
        page.keyboard.press("Enter")
        # The view that was asked for first.
        expect(page.get_by_role("heading", name="Streams")).to_be_focused()
        expect(page.get_by_text("No stream is registered.")).to_be_visible()
        send(service, alarm(1, "mic-1", "geo-1"))
        visit(page, "alarms")
        expect(page.get_by_text("● live")).to_be_visible()
        expect(page.locator(".alarm")).to_have_count(1)
        page.reload()
        expect(page.get_by_text("● live")).to_be_visible()
        # Another tab has to sign in for itself.
        url = str(service.client.base_url)
        with tab(browser, url, viewport=PHONE, bypass_csp=True) as other:
            visit(other.page, "")
            expect(other.page.get_by_role("heading", name="Sign in")).to_be_visible()
            assert other.violations() == []
            assert other.overflow() <= 0
        kept = "[document.cookie, localStorage.length, ...Object.values(sessionStorage)]"
        assert page.evaluate(kept) == ["", 0, key]
        leave.click()
        expect(sign_in).to_be_focused()
        assert page.evaluate("sessionStorage.length") == 0
        expect(page.locator("#problem-key")).to_be_empty()
        field.fill(key)
        page.keyboard.press("Enter")
        expect(leave).to_be_visible()
        write_keys(path, [])
        visit(page, "streams")
        expect(page.get_by_role("alert")).to_contain_text("mistyped, expired or revoked")
        assert opened.faults == []


def test_reader_signs_in_with_a_token_of_the_issuer(kafka_bootstrap: str, browser: Browser) -> None:
    with running_issuer() as issuer:
        settings = fresh_settings(kafka_bootstrap, oidc_issuer=issuer.url, oidc_audience=AUDIENCE)
        with (
            running(settings) as service,
            tab(browser, str(service.client.base_url)) as opened,
        ):
            page = opened.page
            visit(page, "alarms")
            field = page.get_by_label("API key or token")
            field.fill(issuer.token(exp=1_700_000_000))
            page.keyboard.press("Enter")
            expect(page.get_by_role("alert")).to_contain_text("mistyped, expired or revoked")
            field.fill(issuer.token())
            page.keyboard.press("Enter")
            expect(page.get_by_text("● live")).to_be_visible()
            send(service, alarm(1, "mic-1", "geo-1"))
            expect(page.locator(".alarm")).to_have_count(1)
            assert opened.faults == []
