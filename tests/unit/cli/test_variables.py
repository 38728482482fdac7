"""Environment variables that look like Coincide's but are unknown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.variables import known_variables, warn_of_unknown

_DOCUMENT = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_every_variable_of_the_document_is_known() -> None:
    documented = set(re.findall(r"COINCIDE_\w+", _DOCUMENT.read_text(encoding="utf-8")))
    assert documented <= known_variables()
    assert not list(warn_of_unknown(dict.fromkeys(documented, "")))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("COINCIDE_BOOTSTRAPS", "; is COINCIDE_BOOTSTRAP meant?"),
        ("coincide_slot", "; is COINCIDE_SLOTS meant?"),
        ("COINCIDE_CREATE_TOPICS", "; is COINCIDE_CREATE_EVENT_TOPICS meant?"),
        ("COINCIDE_QQQQQQQQQQQQQQQ", "; see docs/configuration.md"),
    ],
)
def test_a_misspelt_variable_is_told_with_the_nearest_one(name: str, meant: str) -> None:
    environment = {name: "x", "PATH": "", "coincide_prefix": "p", "COINCIDER": ""}
    said = [f"{name} is no variable of Coincide and does nothing{meant}"]
    assert list(warn_of_unknown(environment)) == said
