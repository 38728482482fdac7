"""The tests and sections of docs/proofs.md exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "proofs.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^### (P-[A-Z-]+): ", re.MULTILINE)


def sources(*folders: str) -> str:
    """Return the text of the Python files in folders."""
    paths = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def test_every_test_of_the_page_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    defined = set(re.findall(r"def (test_\w+)\(", sources("tests")))
    assert len(named) > 100
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
