"""The search of the documentation site, in a real Chromium, over a plain web server."""

from __future__ import annotations

import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from deploy.site.build import build
from tests.support.browser import chromium, tab

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder and logs nothing."""

    def log_message(self, *_arguments: object) -> None:
        """Log nothing."""


@pytest.fixture
def site_url(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "site"
    assert build(folder) == 0
    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_search_finds_the_page_of_a_term(site_url: str) -> None:
    with chromium() as browser, tab(browser, site_url) as opened:
        page = opened.page
        page.goto("/search.html?q=satisfaction")
        hits = page.locator("#search-results a[href*='glossary.html']")
        expect(hits.first).to_be_visible()
        hits.first.click()
        expect(page).to_have_url(re.compile("/glossary.html"))
        expect(page.get_by_role("heading", level=1)).to_contain_text("Glossary")
        assert opened.faults == []
