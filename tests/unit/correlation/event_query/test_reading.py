"""Results of event queries as they are read and shown."""

from __future__ import annotations

from typing import Any

import pytest

from correlation.event_query.reading import QueryResultReader

RESULT: dict[str, Any] = {
    "v": 1,
    "kind": "event_query",
    "condition": "q",
    "version": 1,
    "type": "Alarm",
    "attributes": {"area": "lab", "level": 3, "open": None},
    "begin": 0,
    "end": 2_000_000,
    "events": {
        "s": {
            "id": "s1",
            "stream": "smoke",
            "key": "k",
            "earliest": 0,
            "latest": 0,
            "attributes": {"area": "lab", "level": 3, "wet": None},
        },
        "v": {"id": "v1", "stream": "visit", "key": None, "begin": 0, "end": 2_000_000},
    },
    "late": False,
    "detected_at": 5,
}


def test_result_is_one_line() -> None:
    reader = QueryResultReader()
    assert reader.claims(RESULT)
    (found,) = reader.read(RESULT)
    span = "[1970-01-01T00:00:00Z … 1970-01-01T00:00:02Z]"
    assert reader.describe(found) == (
        f'Alarm  area="lab"  level=3  open=null  {span}  '
        f's=smoke:s1 @k [1970-01-01T00:00:00Z] area="lab" level=3  v=visit:v1 {span}'
    )
    uncertain = {**found, "probability": 0.91, "late": True}
    shown = reader.describe(uncertain)
    assert "  p=0.910  s=smoke:s1" in shown
    assert shown.endswith("  late")


@pytest.mark.parametrize(
    "change",
    [
        {"events": []},
        {"events": {"s": {"id": "s1"}}},
        {"events": {"s": {"id": 1, "stream": "s", "begin": 0, "end": 0}}},
        {"events": {"s": {"id": "s", "stream": "s", "begin": 0, "end": 0, "attributes": []}}},
        {"begin": "now"},
        {"probability": []},
        {"probability": {}},
        {"probability": "0.5"},
        {"type": None},
        {"detected_at": None},
    ],
)
def test_other_records_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a result"):
        QueryResultReader().read({**RESULT, **change})


def test_records_of_other_kinds_are_not_claimed() -> None:
    assert not QueryResultReader().claims({**RESULT, "kind": "mutual_deadline"})
