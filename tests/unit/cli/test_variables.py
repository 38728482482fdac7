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
        ("COINCIDE_BOOTSTRAPS", "did you mean COINCIDE_BOOTSTRAP?"),
        ("coincide_slot", "did you mean COINCIDE_SLOTS?"),
        ("COINCIDE_CREATE_TOPICS", "did you mean COINCIDE_CREATE_EVENT_TOPICS?"),
        ("COINCIDE_QQQQQQQQQQQQQQQ", "see docs/configuration.md"),
    ],
)
def test_a_misspelt_variable_is_told_with_the_nearest_one(name: str, meant: str) -> None:
    environment = {name: "x", "PATH": "", "coincide_prefix": "p", "COINCIDER": ""}
    (said,) = warn_of_unknown(environment)
    assert said.startswith(f"{name}: ")
    assert said.endswith(f"; {meant}")
