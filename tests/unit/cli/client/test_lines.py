"""Lines for a person: numbers with singular and plural nouns."""

from __future__ import annotations

import pytest

from cli.client.lines import counted


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (12_345, "12,345 rows")],
)
def test_counted_takes_the_plural_unless_it_is_one(number: int, said: str) -> None:
    assert counted(number, "row") == said
