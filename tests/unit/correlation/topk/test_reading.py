"""Changes and lists of top-k conditions as lines and cells."""

from __future__ import annotations

from typing import Any

import pytest

from correlation.topk.reading import COLUMNS, ChangeReader, list_cells

CHANGE: dict[str, Any] = {
    "v": 1,
    "kind": "topk_similarity",
    "condition": "c",
    "version": 1,
    "change": "entered",
    "rank": 2,
    "similarity": 2 / 3,
    "overlap": 2,
    "sizes": [3, 2],
    "older": {"stream": "left", "id": "x", "time": 0},
    "newer": {"stream": "right", "id": "y", "time": 1_500_000},
    "reason": "set",
    "time": 1_500_000,
    "detected_at": 7,
}
SETS = "left:x [1970-01-01T00:00:00Z]  ↔  right:y [1970-01-01T00:00:01.500000Z]"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({}, f"+ #2  similarity=0.6667  {SETS}"),
        ({"change": "left", "similarity": 1.0}, f"- #2  similarity=1  {SETS}"),
        ({"change": "moved", "key": "k"}, f"~ #2  similarity=0.6667  @k  {SETS}"),
        ({"distance": 12_345}, f"+ #2  distance=12345  {SETS}"),
    ],
)
def test_a_change_is_a_line(given: dict[str, Any], line: str) -> None:
    reader, record = ChangeReader(), CHANGE | given
    assert reader.claims(record)
    (found,) = reader.read(record)
    assert found == record
    assert reader.describe(found) == line


@pytest.mark.parametrize(
    "record", [{}, {"kind": "within", "change": "entered"}, {"kind": "topk_similarity"}]
)
def test_other_records_are_not_claimed(record: dict[str, Any]) -> None:
    assert not ChangeReader().claims(record)


@pytest.mark.parametrize(
    "given",
    [
        {"rank": "2"},
        {"older": {"stream": "left", "id": "x"}},
        {"newer": {"stream": "left", "id": 1, "time": 0}},
        {"newer": None},
        {"detected_at": None},
    ],
)
def test_fields_of_other_types_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a change"):
        ChangeReader().read(CHANGE | given)


def test_an_item_of_a_list_has_a_cell_for_every_column() -> None:
    cells = list_cells(CHANGE)
    assert dict(zip(COLUMNS[:3], cells[:3], strict=True)) == {
        "rank": "2",
        "value": "0.6667",
        "older": "left:x",
    }
    assert cells[3:] == ("1970-01-01T00:00:00Z", "right:y", "1970-01-01T00:00:01.500000Z")
    assert len(cells) == len(COLUMNS)
