"""The tests that docs/proofs.md and docs/reliability.md name exist, and so do the sections."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "proofs.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^### (P-[A-Z-]+): ", re.MULTILINE)


def sources(*folders: str) -> str:
    """Return the text of the Python files in folders."""
    paths = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


@pytest.mark.parametrize(("page", "least"), [("proofs.md", 100), ("reliability.md", 30)])
def test_every_test_of_the_page_exists(page: str, least: int) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", text))
    defined = set(re.findall(r"def (test_\w+)\(", sources("tests")))
    assert len(named) > least
    assert named - defined == set()


def test_every_section_names_its_tests() -> None:
    parts = SECTION.split(PAGE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert len(sections) > 40
    assert [name for name, text in sections.items() if "`test_" not in text] == []


def test_every_proof_that_the_code_names_exists() -> None:
    cited = set(re.findall(r"\bP-[A-Z]+(?:-[A-Z]+)*\b", sources("correlation", "spark_jobs")))
    assert len(cited) > 30
    assert cited - set(SECTION.findall(PAGE)) == set()
