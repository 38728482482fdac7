"""Equalities that state the time of the result; other relations with it are refused."""

from __future__ import annotations

import pytest

from correlation.errors import InvalidFieldError
from correlation.event_query.language.document_reader import query_from_document
from correlation.event_query.language.documents import query_to_document
from correlation.event_query.language.parser import parse_query
from correlation.event_query.language.writer import write_query
from correlation.event_query.query import Extreme, Point, Shifted, Term
from tests.support.messages import assert_names

ONE = "DETECT Alarm ON event s: Smoke not event r: Report"
TWO = "DETECT Alarm ON event s: Smoke event t: Smoke"
S_END, T_END, S_BEGIN = Point("s", "end"), Point("t", "end"), Point("s", "begin")


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
def test_equality_with_the_usual_time_of_the_result_changes_nothing(
    events: str, equality: str
) -> None:
    relation = "s.rt.end <= s.rt.begin + 1 h"
    expected = parse_query(f"{events} WHERE {relation} END")
    assert parse_query(f"{events} WHERE {relation}, {equality} END") == expected
    assert parse_query(f"{events} WHERE {equality}, {relation} END") == expected
    assert parse_query(f"{events} WHERE {equality} END") == parse_query(f"{events} END")


@pytest.mark.parametrize(
    ("events", "equality", "begin", "end"),
    [
        (ONE, "Alarm.rt.end = s.rt.end + 1 s", None, Shifted(S_END, 1_000_000)),
        (ONE, "s.rt.begin - 1 ms = Alarm.rt.begin", Shifted(S_BEGIN, -1000), None),
        (ONE, "Alarm.rt.end = s.rt.begin", None, S_BEGIN),
        (TWO, "Alarm.rt.end = s.rt.end", None, S_END),
        (TWO, "(Alarm.rt.begin = s.rt.end and Alarm.rt.end = t.rt.end)", S_END, T_END),
        (TWO, "Alarm.rt.end = min(s.rt.end, t.rt.end)", None, Extreme("min", (S_END, T_END))),
        (TWO, "Alarm.rt.begin = max(s.rt.end)", Extreme("max", (S_END,)), None),
    ],
)
def test_equality_states_the_time_of_the_result_in_text_and_json(
    events: str, equality: str, begin: Term | None, end: Term | None
) -> None:
    relation = "s.rt.end <= s.rt.begin + 1 h or s.rt.end < s.rt.begin"
    plain = parse_query(f"{events} WHERE {relation} END")
    for where in (f"{relation}, {equality}", f"{equality}, {relation}"):
        query = parse_query(f"{events} WHERE {where} END")
        assert (query.result_begin, query.result_end) == (begin, end)
        assert (query.where, query.events) == (plain.where, plain.events)
        assert query != plain
        assert parse_query(write_query(query)) == query
        assert query_from_document(query_to_document(query)) == query
    alone = parse_query(f"{events} WHERE {equality} END")
    assert (alone.result_begin, alone.result_end) == (begin, end)
    assert parse_query(write_query(alone)) == alone


def test_canonical_text_has_the_time_at_its_end() -> None:
    text = f"{ONE} WHERE Alarm.rt.end = s.rt.end + 5 min, s.rt.end <= r.rt.end END"
    assert write_query(parse_query(text)).splitlines()[-3:] == [
        "WHERE s.rt.end <= r.rt.end,",
        "      Alarm.rt.end = s.rt.end + 5 min",
        "END",
    ]


# The equality is a part of another formula.
TOP = ["time", "result Alarm", "not an equality"]


@pytest.mark.parametrize(
    ("events", "relation", "column", "problem", "remedy"),
    [
        (ONE, "Alarm.rt.end = r.rt.end", 22, ["depends", '"r"', "negated"], "use times of"),
        (ONE, "Alarm.rt.end = q.rt.end", 22, ["no event", 'alias "q"'], "use r or s"),
        (ONE, "Alarm.rt.begin = Alarm.rt.end", 24, ["depends on itself"], "use times of positive"),
        (ONE, "Alarm.rt.end <= s.rt.end", 7, TOP, "write `Alarm.rt.end = s.rt.end` or another"),
        (ONE, "not Alarm.rt.end = s.rt.end", 11, TOP, "write `Alarm.rt.end = s.rt.end`"),
        (ONE, "Alarm.rt.end - 1 s = s.rt.end", 7, TOP, "write `Alarm.rt.end = s.rt.end`"),
        (
            TWO,
            "s.rt.end = t.rt.end or Alarm.rt.begin = s.rt.end",
            30,
            TOP,
            "write `Alarm.rt.begin = min(s.rt.begin, t.rt.begin)`",
        ),
        (
            TWO,
            "Alarm.rt.end = s.rt.end, t.rt.end = Alarm.rt.end",
            43,
            ["the end", "result Alarm", "twice"],
            "keep one",
        ),
    ],
)
def test_other_relations_with_the_result_are_refused(
    events: str, relation: str, column: int, problem: list[str], remedy: str
) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        parse_query(f"{events}\nWHERE {relation} END")
    (error,) = refused.value.problems
    assert_names(error.problem, *problem)
    assert error.remedy.startswith(remedy)
    assert error.place is not None
    assert (error.place.line, error.place.column) == (2, column)


def test_an_event_may_have_the_name_of_the_result() -> None:
    query = parse_query("DETECT s ON event s: Smoke WHERE s.rt.end = s.rt.end END")
    assert query.where != parse_query("DETECT s ON event s: Smoke END").where


def form(alias: str, type_: str = "Alarm") -> dict[str, object]:
    """Return a query in its JSON form that states the end of its result."""
    relation = {
        "left": {"alias": type_, "side": "end"},
        "operator": "=",
        "right": {"term": {"alias": alias, "side": "end"}, "offset_us": 5},
    }
    events = [
        {"alias": "s", "type": "Smoke"},
        {"alias": "r", "type": "Report", "negated": True},
    ]
    return {"detect": {"type": type_}, "events": events, "where": relation}


def test_json_form_states_and_refuses_times_alike() -> None:
    stated = parse_query(f"{ONE} WHERE Alarm.rt.end = s.rt.end + 0.005 ms END")
    assert query_from_document(form("s")) == stated
    with pytest.raises(InvalidFieldError, match=r"where\.right\.term\.alias: the time "):
        query_from_document(form("r"))


@pytest.mark.parametrize("type_", ["smoke-alarm", "Alarm.v2", "Where"])
def test_json_form_of_a_result_that_text_cannot_name_is_refused(type_: str) -> None:
    with pytest.raises(InvalidFieldError, match="WHERE cannot name it"):
        query_from_document(form("s", type_))


def test_offset_of_a_time_is_limited() -> None:
    with pytest.raises(InvalidFieldError, match="shifted by at most"):
        parse_query(f"{ONE} WHERE Alarm.rt.end = s.rt.end + 20000 d END")
