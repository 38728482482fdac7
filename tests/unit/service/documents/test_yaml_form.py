"""Documents written as YAML are read back unchanged by the loader of files and by plain YAML."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from cli.client.yaml_loader import Loader
from service.documents.yaml_form import write_yaml

# Characters that a record of the config topic may contain.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
VALUES = st.recursive(
    TEXTS | st.booleans() | st.none() | st.integers(-(2**50), 2**50),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


def read(text: str) -> list[Any]:
    """Read all documents with the loader of resource files."""
    return list(yaml.load_all(text, Loader=Loader))


@given(st.lists(st.dictionaries(TEXTS, VALUES, max_size=4), max_size=3))
@example([{"threshold": "0.6", "query": "DETECT A\nON event a: B\n", "no": "on", "t": "12:30:00"}])
@example([{"a": "1e3", "b": "08", "c": "0o17", "d": ".5", "e": "1_000", "f": "2026-01-01"}])
@example([{"a": " b\n c ", "d": "\x85\u2028", "e": "|\n", "f": "\n", "g": "\t\n x"}])
def test_written_documents_are_read_unchanged(documents: list[dict[str, Any]]) -> None:
    text = write_yaml(documents)
    assert read(text) == documents
    assert list(yaml.safe_load_all(text)) == documents


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (
            {"kind": "stream", "name": "x", "max_delay_us": 5, "templates": ["t"], "where": {}},
            "---\nkind: stream\nname: x\nmax_delay_us: 5\ntemplates:\n  - t\nwhere: {}\n",
        ),
        ({"threshold": "0.6", "paused": False}, "---\nthreshold: '0.6'\npaused: false\n"),
        ({"query": "DETECT A\nEND"}, "---\nquery: |-\n  DETECT A\n  END\n"),
    ],
)
def test_form_is_that_of_hand_written_files(document: dict[str, Any], text: str) -> None:
    assert write_yaml([document]) == text
    assert read(text) == [document]


def test_loader_keeps_decimals() -> None:
    assert read("a: 0.60") == [{"a": Decimal("0.60")}]
