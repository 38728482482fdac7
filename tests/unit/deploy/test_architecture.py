"""All files named on the pages of the architecture and of the kinds exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
KINDS = (ROOT / "docs" / "kinds.md").read_text(encoding="utf-8")


def test_every_path_of_the_pages_exists() -> None:
    paths = re.findall(r"`([\w/]+(?:\.py|\.toml|/))`", PAGE + KINDS)
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_folder_of_the_packages_is_on_the_page() -> None:
    packages = ("correlation", "coincide", "spark_jobs", "service", "cli")
    folders = [it.parent.name for name in packages for it in (ROOT / name).glob("*/**/__init__.py")]
    assert len(folders) > 15
    floors = PAGE[PAGE.index("## Floors") : PAGE.index("## Processing of a record")]
    assert [name for name in folders if f"{name}/" not in floors] == []
