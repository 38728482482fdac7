"""Errors of a query against its streams have the place in the text, or the path in the JSON."""

from __future__ import annotations

import pytest

from correlation.errors import InvalidFieldError
from correlation.event_query.building import build_condition, stored_query
from correlation.event_query.checking import check_streams
from correlation.event_query.language.documents import query_to_document
from correlation.event_query.language.parser import parse_query
from correlation.resources.attributes import Attribute
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from service.checks import checked_condition
from service.errors import FieldProblem, InvalidDocumentError, Place

AREA = (Attribute("area", ("area",)), Attribute("level", ("level",), "integer"))
STREAMS = {
    "smoke": Stream("smoke", "smoke", 0, 1, attributes=AREA),
    "report": Stream("report", "report", 0, 1, attributes=AREA),
    "leak": Stream("leak", "leak", 60_000_000, 1, attributes=AREA),
    "grid": Stream("grid", "grid", 0, 1, partitioning=Partitioning("grid", 2)),
}
WITHIN = "r.rt.end >= s.rt.end, r.rt.end <= s.rt.end + 5 min"
MANY = " or ".join(f"r.rt.end = s.rt.end + {n} s" for n in range(300))


@pytest.mark.parametrize(
    ("head", "where", "place", "path", "problem"),
    [
        (
            "event s: Smoke {area {var X}}\nnot event r: Report {aera {var X}}",
            WITHIN,
            (3, 22),
            "events[1].attributes[0]",
            "the attribute aera",
        ),
        (
            'event s: Smoke {level {"3"}}\nnot event r: Report',
            WITHIN,
            (2, 17),
            "events[0].attributes[0]",
            "with a string",
        ),
        (
            "event s: Smoke {area {var X}}\nnot event r: Report {level {var X}}",
            WITHIN,
            (3, 22),
            "events[1].attributes[0]",
            "the type string",
        ),
        (
            "event s: Smoke\nnot event r: Report",
            "r.rt.end >= s.rt.end",
            (3, 11),
            "events[1]",
            "after the result",
        ),
        ("event s: Leak\nevent t: Leak", "s.rt.end = t.rt.end", (3, 7), "events[1]", "s and t"),
        ("event s: Smoke\nnot event r: Report", MANY, (4, 7), "where", "alternatives"),
        ("event s: Smoke\nnot event r: Grid", WITHIN, (3, 11), "events[1]", "do not meet"),
    ],
)
def test_error_has_its_place_in_the_text_and_its_path_in_the_json_form(
    head: str, where: str, place: tuple[int, int], path: str, problem: str
) -> None:
    text = f"DETECT A ON\n{head}\nWHERE {where} END"
    for query in (text, stored_query(query_to_document(parse_query(text)))):
        values = {"kind": "event_query", "query": query, "threshold": "0.5"}
        condition = build_condition("c", 1, values)
        with pytest.raises(InvalidFieldError) as refused:
            check_streams(condition, STREAMS)
        (error,) = [it for it in refused.value.problems if problem in it.problem]
        if query is text:
            assert error.field == "query"
            assert error.place is not None
            assert (error.place.line, error.place.column) == place
            line = text.splitlines()[place[0] - 1]
            assert error.place.excerpt.endswith("\n" + " " * (place[1] - 1) + "^")
            assert error.place.excerpt.startswith(line[:70])
        else:
            assert (error.field, error.place) == (f"query.{path}", None)


def test_uncertain_negated_event_may_be_related_to_further_exact_events() -> None:
    text = f"""DETECT A ON event s: Leak event t: Smoke not event r: Leak
    WHERE {WITHIN}, r.rt.end <= t.rt.end, t.rt.end = s.rt.end END"""
    values = {"kind": "event_query", "query": text, "threshold": "0.5"}
    check_streams(build_condition("c", 1, values), STREAMS)


def test_unknown_stream_names_its_event_and_place() -> None:
    text = f"DETECT A ON event s: Smoke\nnot event r: Repart WHERE {WITHIN} END"
    found: list[FieldProblem] = []
    for query in (text, query_to_document(parse_query(text))):
        with pytest.raises(InvalidDocumentError) as refused:
            checked_condition("c", 1, {"kind": "event_query", "query": query}, STREAMS)
        found += refused.value.problems
    assert [it.field for it in found] == ["query", "query.events[1]"]
    assert found[0].problem == "line 2, column 11: event r: stream 'repart' does not exist"
    assert found[1].problem == "event r: stream 'repart' does not exist"
    assert found[0].remedy.startswith("did you mean report?")
    excerpt = f"not event r: Repart WHERE {WITHIN} END\n          ^"
    assert found[0].place == Place(2, 11, '"r"', (), excerpt)
    assert found[1].place is None
