"""Pages of tables that benchmarks write."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from benchmarks.__main__ import Page, write_page

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.report import Report


def check_page(reports: Sequence[Report], folder: Path) -> list[str]:
    """Write tables to a page and check that it is complete; return the names of its pictures."""
    page = Page(folder / "figures.md", (), "# Figures\n\n{machine}\n\n")
    write_page(page, list(reports))
    text = page.path.read_text()
    for report in reports:
        assert report.text.strip()
        assert {len(row) for row in report.rows} == {len(report.columns)}
        assert f"## {report.title}\n" in text
    pictures = re.findall(r"\(figures/(.+\.svg)\)", text)
    assert sorted(pictures) == sorted(path.name for path in (folder / "figures").iterdir())
    return pictures
