"""The glossary is sorted, and the names in it exist in the software."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from service.definitions import DEFINITIONS

ROOT = Path(__file__).parents[3]
PACKAGES = ("correlation", "coincide", "kafka_client", "service", "spark_jobs", "cli")
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \|([^|]*)\| (`[^|]+`) \|$", re.MULTILINE)
PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
CODE = "\n".join(
    path.read_text(encoding="utf-8")
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
)


def _rows() -> list[tuple[str, str, str]]:
    return [(term, meaning, names) for term, meaning, _, names in ROW.findall(PAGE)]


def test_terms_are_sorted_and_explained_once() -> None:
    terms = [re.sub(r"[_-]", " ", term).lower() for term, _, _ in _rows()]
    assert len(terms) == PAGE.count("\n| ") - 1
    assert len(terms) > 50
    assert terms == sorted(set(terms))
    assert [meaning for _, meaning, _ in _rows() if not meaning.endswith(".")] == []


@pytest.mark.parametrize("name", sorted({it for row in _rows() for it in row[2].split(", ")}))
def test_name_exists(name: str) -> None:
    plain = name.strip("`")
    if plain.endswith(".py"):
        assert (ROOT / plain).is_file()
    elif plain.startswith("coincide_"):
        assert plain.removeprefix("coincide_") in DEFINITIONS
    elif plain.startswith("COINCIDE_"):
        # Settings take their names from the variables, without the prefix.
        assert re.search(rf"^    {plain.removeprefix('COINCIDE_').lower()}\b", CODE, re.MULTILINE)
    else:
        assert re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", CODE)
