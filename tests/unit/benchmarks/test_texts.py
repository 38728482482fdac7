"""The page of the figures has the texts of the benchmarks."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]
_TEXTS = sorted(_ROOT.glob("benchmarks/*/*texts.py"))


@pytest.mark.parametrize("path", _TEXTS, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_page_of_figures_has_the_texts(path: Path) -> None:
    module = importlib.import_module(f"benchmarks.{path.parent.name}.{path.stem}")
    texts = {name: text for name, text in vars(module).items() if name.isupper()}
    page = (_ROOT / "docs/figures.md").read_text(encoding="utf-8")
    assert texts
    assert [name for name, text in texts.items() if text.strip() not in page] == []
