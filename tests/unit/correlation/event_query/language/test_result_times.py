"""Equalities that state the time of the result; other times are refused with the reason."""

from __future__ import annotations

import pytest

from correlation.errors import InvalidFieldError
from correlation.event_query.language.document_reader import query_from_document
from correlation.event_query.language.parser import parse_query

ONE = "DETECT Alarm ON event s: Smoke not event r: Report"
TWO = "DETECT Alarm ON event s: Smoke event t: Smoke"


@pytest.mark.parametrize(
    ("events", "equality"),
    [
        (ONE, "Alarm.rt.end = s.rt.end"),
        (ONE, "s.rt.end = Alarm.rt.end, Alarm.rt.begin = s.rt.begin"),
        (ONE, "Alarm.rt.end = max(s.rt.end)"),
        (TWO, "Alarm.rt.end = max(s.rt.end, t.rt.end)"),
        (
            TWO,
            "min(t.rt.begin, s.rt.begin) = Alarm.rt.begin, Alarm.rt.end = max(t.rt.end, s.rt.end)",
        ),
    ],
)
def test_equality_with_the_time_of_the_result_changes_nothing(events: str, equality: str) -> None:
    relation = "s.rt.end <= s.rt.begin + 1 h"
    expected = parse_query(f"{events} WHERE {relation} END")
    assert parse_query(f"{events} WHERE {relation}, {equality} END") == expected
    assert parse_query(f"{events} WHERE {equality}, {relation} END") == expected
    assert parse_query(f"{events} WHERE {equality} END") == parse_query(f"{events} END")


@pytest.mark.parametrize(
    ("events", "relation", "remedy"),
    [
        (ONE, "Alarm.rt.end = r.rt.end", "write `Alarm.rt.end = s.rt.end`, or leave it out"),
        (ONE, "Alarm.rt.end = s.rt.end + 1 s", "write `Alarm.rt.end = s.rt.end`"),
        (ONE, "Alarm.rt.end = s.rt.begin", "write `Alarm.rt.end = s.rt.end`"),
        (ONE, "Alarm.rt.end <= s.rt.end", "write `Alarm.rt.end = s.rt.end`"),
        (ONE, "not Alarm.rt.end = s.rt.end", "write `Alarm.rt.end = s.rt.end`"),
        (TWO, "Alarm.rt.end = s.rt.end", "write `Alarm.rt.end = max(s.rt.end, t.rt.end)`"),
        (TWO, "Alarm.rt.end = min(s.rt.end, t.rt.end)", "write `Alarm.rt.end = max("),
    ],
)
def test_other_times_are_refused_with_the_reason(events: str, relation: str, remedy: str) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        parse_query(f"{events}\nWHERE {relation} END")
    (error,) = refused.value.problems
    assert "the time of the result Alarm cannot be set: its end is the maximum" in error.problem
    assert error.remedy.startswith(remedy)
    assert error.place is not None
    assert error.place.line == 2


def test_an_event_may_have_the_name_of_the_result() -> None:
    query = parse_query("DETECT s ON event s: Smoke WHERE s.rt.end = s.rt.end END")
    assert query.where != parse_query("DETECT s ON event s: Smoke END").where


def test_json_form_states_and_sets_times_alike() -> None:
    def form(alias: str) -> dict[str, object]:
        relation = {
            "left": {"alias": "Alarm", "side": "end"},
            "operator": "=",
            "right": {"alias": alias, "side": "end"},
        }
        events = [
            {"alias": "s", "type": "Smoke"},
            {"alias": "r", "type": "Report", "negated": True},
        ]
        return {"detect": {"type": "Alarm"}, "events": events, "where": relation}

    assert query_from_document(form("s")) == parse_query(f"{ONE} END")
    with pytest.raises(InvalidFieldError, match=r"where\.left\.alias: the time of the result"):
        query_from_document(form("r"))
