"""Constraint graphs of event queries, as data and as SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.dom.minidom import Document, Element, Text, parseString

import pytest
from hypothesis import given, reject

from correlation.errors import InvalidFieldError
from correlation.event_query.building import build_condition
from correlation.event_query.checking import relevance_of
from correlation.event_query.condition import EventQueryCondition
from correlation.event_query.constraint_graph import GRAPH_LIMIT, ConstraintGraph, draw_graphs
from correlation.event_query.picture import draw_constraints
from correlation.event_query.query import Point
from correlation.resources.attributes import Attribute
from correlation.resources.mapping import EventMapping
from correlation.resources.streams import Stream
from tests.support.event_queries import SMALL_STREAMS, queries
from tests.support.messages import assert_names

if TYPE_CHECKING:
    from correlation.event_query.query import Query

_MAPPING = EventMapping("lasting", begin_path=("begin",), end_path=("end",))
STREAMS = {
    "smoke": Stream("smoke", "smoke", 0, 1, attributes=(Attribute("area", ("area",)),)),
    "report": Stream("report", "report", 0, 1, attributes=(Attribute("area", ("area",)),)),
    "visit": Stream("visit", "visit", 0, 1, mapping=_MAPPING, max_length_us=7_200_000_000),
}
ALARM = """DETECT Alarm {area {var X}}
ON event s: Smoke {area {var X}} not event r: Report {area {var X}}
WHERE s.rt.end <= r.rt.begin, r.rt.begin <= s.rt.end + 5 min END"""


def condition(text: str) -> EventQueryCondition:
    return build_condition("q", 1, {"query": text})


def graphs(text: str) -> list[ConstraintGraph]:
    return draw_graphs(relevance_of(condition(text), STREAMS))[0]


def labels(graph: ConstraintGraph) -> dict[tuple[str, str], str]:
    return {
        (f"{it.earlier.alias}.{it.earlier.side}", f"{it.later.alias}.{it.later.side}"): it.label
        for it in graph.edges
    }


def document(text: str) -> Document:
    return parseString(draw_constraints(condition(text), STREAMS))  # noqa: S318 - our own text


def texts(found: Document, name: str = "text") -> list[str]:
    return [
        "".join(it.data for it in element.childNodes if isinstance(it, Text))
        for element in found.getElementsByTagName(name)
    ]


def of_class(found: Document, name: str, kind: str) -> list[Element]:
    return [it for it in found.getElementsByTagName(name) if kind in it.getAttribute("class")]


def test_running_example_has_one_graph_with_one_edge() -> None:
    (graph,) = graphs(ALARM)
    assert (graph.negated, graph.alternatives) == ("r", 1)
    assert graph.ranks == {Point("s", "end"): 0, Point("r", "end"): 1}
    assert labels(graph) == {("s.end", "r.end"): "0 … 5 min"}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("s.rt.end < t.rt.end, t.rt.end < s.rt.end + 90 s", "> 0, < 90 s"),
        ("s.rt.end < t.rt.end, t.rt.end <= s.rt.end + 90 s", "> 0, ≤ 90 s"),
        ("t.rt.end = s.rt.end + 1500 ms", "= 1500 ms"),
        ("t.rt.end <= s.rt.end + 5 min, t.rt.end >= s.rt.end - 1 h", "−1 h … 5 min"),
        ("t.rt.end >= s.rt.end + 1 d, t.rt.end <= s.rt.end + 2 d", "1 d … 2 d"),
    ],
)
def test_bounds_are_written_in_units_of_the_language(where: str, expected: str) -> None:
    (graph,) = graphs(f"DETECT A ON event s: Smoke event t: Report WHERE {where} END")
    assert list(labels(graph).values()) == [expected]


def test_events_that_last_have_two_nodes_and_implied_bounds_are_left_out() -> None:
    text = """DETECT A ON event s: Smoke not event v: Visit
    WHERE v.rt.begin <= s.rt.end, s.rt.end <= v.rt.end, s.rt.end <= v.rt.begin + 1 d END"""
    (graph,) = graphs(text)
    assert labels(graph) == {
        ("v.begin", "v.end"): "0 … 2 h",
        ("v.begin", "s.end"): "≥ 0",
        ("s.end", "v.end"): "≥ 0",
    }
    assert [graph.ranks[Point("v", "begin")], graph.ranks[Point("v", "end")]] == [0, 2]


def test_alternatives_have_a_graph_each() -> None:
    text = """DETECT A ON event s: Smoke event t: Report
    WHERE t.rt.end = s.rt.end + 1 s or t.rt.end = s.rt.end + 2 s END"""
    assert [(it.alternative, it.alternatives) for it in graphs(text)] == [(1, 2), (2, 2)]
    shown = document(text)
    assert "Relations among positive events (alternative 2 of 2)" in texts(shown)


def test_picture_is_a_document_with_title_description_and_colours_of_both_schemes() -> None:
    shown = document(ALARM)
    (root,) = shown.getElementsByTagName("svg")
    assert root.getAttribute("role") == "img"
    (title,) = texts(shown, "title")
    assert_names(title, "query q")
    (described,) = texts(shown, "desc")
    assert described.startswith("r.rt.end minus s.rt.end: 0 … 5 min. ")
    assert (
        len(of_class(shown, "circle", "positive")) == len(of_class(shown, "circle", "negated")) == 1
    )
    assert "prefers-color-scheme: dark" in texts(shown, "style")[0]
    assert {"event s: Smoke", "not event r: Report", "0 … 5 min"} <= set(texts(shown))
    assert not shown.getElementsByTagName("script")


def test_texts_are_escaped() -> None:
    hostile = "</text><script>alert(1)</script>&"
    shown = document(f'DETECT A ON event s: Smoke {{area {{"{hostile}"}}}} END')
    assert any("<script>" in it for it in texts(shown))
    assert not shown.getElementsByTagName("script")


def test_long_pictures_say_what_they_leave_out() -> None:
    choices = " or ".join(f"t.rt.end = s.rt.end + {it} s" for it in range(GRAPH_LIMIT + 3))
    shown = document(f"DETECT A ON event s: Smoke event t: Report WHERE {choices} END")
    assert len(of_class(shown, "text", "title")) == GRAPH_LIMIT
    assert [it for it in texts(shown) if it.startswith("3 further alternatives ")]
    # The description has the relation of each drawn graph, and no other.
    assert "".join(texts(shown, "desc")).count("t.rt.end minus s.rt.end") == GRAPH_LIMIT


def test_further_alternatives_of_negated_events_are_counted() -> None:
    choices = " or ".join(f"r.rt.end = s.rt.end + {it} s" for it in range(GRAPH_LIMIT + 3))
    shown = document(f"DETECT A ON event s: Smoke not event r: Report WHERE {choices} END")
    assert len(of_class(shown, "text", "title")) == GRAPH_LIMIT
    assert [it for it in texts(shown) if it.startswith("3 further alternatives ")]


def test_bounds_of_a_graph_do_not_cover_each_other_or_nodes() -> None:
    text = """DETECT A ON event s: Smoke event t: Report event u: Smoke not event r: Report
    WHERE s.rt.end <= t.rt.end, t.rt.end <= u.rt.end, u.rt.end <= s.rt.end + 1 min,
    s.rt.end <= r.rt.end, t.rt.end <= r.rt.end, r.rt.end <= u.rt.end + 5 min END"""
    shown = document(text)
    for panel in shown.getElementsByTagName("g"):
        boxes = [
            tuple(float(it.getAttribute(name)) for name in ("x", "y", "width", "height"))
            for it in panel.getElementsByTagName("rect")
        ]
        assert boxes
        for one in boxes:
            for other in boxes:
                apart = (
                    abs(one[0] + one[2] / 2 - other[0] - other[2] / 2)
                    >= (one[2] + other[2]) / 2 - 0.2
                    or abs(one[1] + one[3] / 2 - other[1] - other[3] / 2)
                    >= (one[3] + other[3]) / 2 - 0.2
                )
                assert one is other or apart


_SMALL = {
    "a": Stream("a", "a", 0, 0),
    "b": Stream("b", "b", 0, 0, mapping=_MAPPING, max_length_us=2),
    "c": Stream("c", "c", 0, 0, mapping=_MAPPING),
}


@given(queries())
def test_every_query_has_a_picture(query: Query) -> None:
    types = {it.type: SMALL_STREAMS[it.type].stream for it in query.events}
    found = EventQueryCondition("q", 1, query, types)
    try:
        relevance = relevance_of(found, _SMALL)
    except InvalidFieldError:
        reject()
    for graph in draw_graphs(relevance)[0]:
        for edge in graph.edges:
            assert edge.lower_us <= edge.upper_us
            assert graph.ranks[edge.earlier] <= graph.ranks[edge.later]
    parseString(draw_constraints(found, _SMALL))  # noqa: S318 - our own text
