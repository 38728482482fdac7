"""A real Chromium, the faults that its pages report, and the rules of axe-core."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Dialog, Page, expect, sync_playwright

from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

# Without Debian's Chromium, Playwright takes its own; `playwright install chromium` fetches it.
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_MILLISECONDS = PATIENCE_SECONDS * 1000
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Chromium without a window until the block ends."""
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    expect.set_options(timeout=_MILLISECONDS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A tab of its own, and the faults of its pages: errors of scripts, refused contents, dialogs.

    Attributes
    ----------
    page : Page
        The page.
    faults : list of str
        The faults, in their order. Answers of 400 and above are not faults of a page.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.faults: list[str] = []
        page.set_default_timeout(_MILLISECONDS)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("dialog", self._close)

    def _close(self, dialog: Dialog) -> None:
        self.faults.append(dialog.message)
        dialog.dismiss()

    def _note(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"} and not text.startswith("Failed to load resource"):
            self.faults.append(text)

    def violations(self) -> list[str]:
        """Return the serious faults of accessibility that axe-core finds."""
        found: list[dict[str, Any]] = Axe().run(self.page).response["violations"]
        return [
            f"{it['id']}: {[node['html'] for node in it['nodes']]}"
            for it in found
            if it["impact"] in {"serious", "critical"}
        ]

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than the window."""
        wide: int = self.page.evaluate(
            "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return wide


@contextmanager
def tab(browser: Browser, url: str, **options: Any) -> Iterator[Tab]:  # noqa: ANN401  of Playwright
    """Open a tab with its own storage; addresses are relative to the URL of the service."""
    context = browser.new_context(base_url=url, **{"viewport": DESKTOP, **options})
    try:
        yield Tab(context.new_page())
    finally:
        context.close()
