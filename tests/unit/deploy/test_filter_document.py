"""The table of filters in docs/conditions.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from correlation.resources.attributes import Attribute
from correlation.resources.filters import read_filter

PAGE = (Path(__file__).parents[3] / "docs/conditions.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\{.*?\})` \| `(\{.*?\})` \| `(\{.*?\})` \|$", PAGE, re.MULTILINE)
ATTRIBUTES = (
    Attribute("rule", ("rule",)),
    Attribute("host", ("host",)),
    Attribute("severity", ("severity",), "integer"),
    Attribute("open", ("open",), "boolean"),
)


@pytest.mark.parametrize(("document", "matching", "other"), ROWS)
def test_filters_of_the_page_match_as_it_says(document: str, matching: str, other: str) -> None:
    found = read_filter(json.loads(document), ATTRIBUTES)
    attributes: dict[str, Any] = json.loads(matching)
    assert found.mismatch(attributes) is None
    assert found.mismatch(json.loads(other)) is not None
    assert json.loads(json.dumps(found.to_document())) == json.loads(document)


def test_the_page_has_a_row_for_each_form_of_a_filter() -> None:
    assert len(ROWS) == 7
