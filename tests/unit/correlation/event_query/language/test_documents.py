"""JSON form of queries: errors name the path of the field."""

from __future__ import annotations

import math
from copy import deepcopy
from decimal import Decimal
from typing import Any

import pytest

from correlation.errors import InvalidFieldError
from correlation.event_query.language.document_reader import query_from_document
from correlation.event_query.language.documents import query_to_document
from correlation.event_query.language.limits import MAX_PROBLEMS
from correlation.event_query.language.parser import parse_query
from correlation.event_query.query import Comparison
from tests.support.messages import assert_names, naming

EXAMPLE = """\
DETECT Alarm {area {var X}}
ON event s: Smoke {area {var X}, level {>= 2.5}}
   not event r: Report {area {var X}}
WHERE s.rt.end <= r.rt.begin,
      r.rt.begin <= min(s.rt.end + 5 min, s.rt.end) or not r.rt.begin < s.rt.end
END"""
END, BEGIN = {"alias": "s", "side": "end"}, {"alias": "r", "side": "begin"}
DOCUMENT: dict[str, Any] = {
    "detect": {"type": "Alarm", "attributes": [{"name": "area", "variable": "X"}]},
    "events": [
        {
            "alias": "s",
            "type": "Smoke",
            "negated": False,
            "attributes": [
                {"name": "area", "variable": "X"},
                {"name": "level", "operator": ">=", "constant": {"number": "2.5"}},
            ],
        },
        {
            "alias": "r",
            "type": "Report",
            "negated": True,
            "attributes": [{"name": "area", "variable": "X"}],
        },
    ],
    "where": {
        "and": [
            {"left": END, "operator": "<=", "right": BEGIN},
            {
                "or": [
                    {
                        "left": BEGIN,
                        "operator": "<=",
                        "right": {"min": [{"term": END, "offset_us": 300_000_000}, END]},
                    },
                    {"not": {"left": BEGIN, "operator": "<", "right": END}},
                ]
            },
        ]
    },
}
MISSING = object()
# Paths of parts of the document.
RESULT: list[str | int] = ["detect", "attributes", 0]
LEVEL: list[str | int] = ["events", 0, "attributes", 1]
FIRST: list[str | int] = ["where", "and", 0]
MINIMUM: list[str | int] = ["where", "and", 1, "or", 0, "right", "min"]
MINIMUM_FIELD = "where.and[1].or[0].right.min"


def test_document_of_a_query() -> None:
    assert query_to_document(parse_query(EXAMPLE)) == DOCUMENT
    assert query_from_document(DOCUMENT) == parse_query(EXAMPLE)


def test_defaults_can_be_left_out() -> None:
    document = {"detect": {"type": "A"}, "events": [{"alias": "s", "type": "T"}]}
    assert query_from_document(document) == parse_query("DETECT A ON event s: T END")


@pytest.mark.parametrize(
    ("written", "constant"),
    [
        (2.5, Decimal("2.5")),
        (Decimal("2.50"), Decimal("2.5")),
        (3.0, 3),
        (2**63, 2**63),
        ({"number": "1e3"}, 1000),
        (True, True),
        ("3", "3"),
    ],
)
def test_constants_are_read(written: object, constant: object) -> None:
    query = query_from_document(
        changed(["events", 0, "attributes", 1], {"name": "level", "constant": written})
    )
    assert repr(query.events[0].attributes[1].pattern) == repr(Comparison("=", constant))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "value", "field", "names"),
    [
        ([], [], "query", ["object", "detect", "events", "where"]),
        (["detect"], "Alarm", "detect", ["object", "type"]),
        (["where"], "s.rt.end < r.rt.end", "where", ["object", "and, or, not", "operator"]),
        (["detect"], MISSING, "detect", ["missing"]),
        (["detect", "type"], 3, "detect.type", ["string"]),
        (["detect", "type"], "a b", "detect.type", ['"a b"', "not a valid name"]),
        (["detect", "atributes"], [], "detect.atributes", ["unknown field", "mean attributes"]),
        ([*RESULT, "name"], MISSING, "detect.attributes[0].name", ["missing"]),
        (
            [*RESULT, "variable"],
            "Y",
            "detect.attributes[0].variable",
            ['variable "Y"', "not in any event"],
        ),
        (
            ["detect", "attributes"],
            [{"name": "a", "constant": 1}] * 2,
            "detect.attributes[1].name",
            ["DETECT", 'attributes "a"', "keep one"],
        ),
        ([*RESULT, "constant"], 1, "detect.attributes[0]", ["variable or constant"]),
        (["events"], {}, "events", ["list"]),
        (["events"], [], "events", ["one positive event"]),
        (["events", 0, "negated"], 1, "events[0].negated", ["true or false"]),
        (["events", 0, "negated"], True, "events[0]", ["one positive event"]),
        (["events", 1, "alias"], "s", "events[1].alias", ["several", 'alias "s"']),
        (["events", 1, "alias"], "Where", "events[1].alias", ['"Where"', "keyword"]),
        (["events", 1, "alias"], "a-b", "events[1].alias", ['"a-b"', "not a valid name"]),
        (
            ["events", 1, "attributes", 0, "variable"],
            "x y",
            "events[1].attributes[0].variable",
            ['"x y"', "not a valid name"],
        ),
        (
            [*LEVEL, "operator"],
            "!=",
            "events[0].attributes[1].operator",
            ["not a comparison", "<, <=, >, >=, ="],
        ),
        (
            ["events", 0, "attributes", 0, "operator"],
            "=",
            "events[0].attributes[0].operator",
            ["combined with variable"],
        ),
        ([*LEVEL, "constant"], None, "events[0].attributes[1].constant", ["not a constant"]),
        ([*LEVEL, "constant"], math.nan, "events[0].attributes[1].constant", ["not a constant"]),
        (
            [*LEVEL, "constant"],
            Decimal("1e999999"),
            "events[0].attributes[1].constant",
            ["at most 40 digits"],
        ),
        ([*LEVEL, "constant"], 10**4000, "events[0].attributes[1].constant", ["at most 40 digits"]),
        (
            [*LEVEL, "constant", "number"],
            "1_0",
            "events[0].attributes[1].constant.number",
            ["not a constant"],
        ),
        (
            [*LEVEL, "constant"],
            True,
            "events[0].attributes[1].operator",
            ["true and false", "compared by order"],
        ),
        (["where"], {}, "where", ["not a formula"]),
        (["where"], None, "where", ["object"]),
        (["where", "or"], [], "where", ["not a formula"]),
        (["where", "and"], [], "where.and", ["empty", "add a formula"]),
        ([*FIRST, "left", "alias"], "q", "where.and[0].left.alias", ["no event", 'alias "q"']),
        ([*FIRST, "left", "side"], ["end"], "where.and[0].left.side", ["not valid"]),
        ([*FIRST, "left"], {"alias": "s"}, "where.and[0].left", ["not a term"]),
        ([*FIRST, "operator"], [], "where.and[0].operator", ["not a comparison"]),
        ([*MINIMUM, 0, "offset_us"], 1.5, f"{MINIMUM_FIELD}[0].offset_us", ["whole number"]),
        ([*MINIMUM, 0, "offset_us"], 2**51, f"{MINIMUM_FIELD}[0].offset_us", ["at most 35 years"]),
        (MINIMUM, [], MINIMUM_FIELD, ["empty", "add a term"]),
    ],
)
def test_error_names_the_path(
    path: list[str | int], value: object, field: str, names: list[str]
) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        query_from_document(changed(path, value))
    assert caught.value.field == field
    problem = caught.value.problems[0]
    assert_names(f"{problem.problem}; {problem.remedy}", *names)


def test_deep_documents_are_refused() -> None:
    where: dict[str, Any] = {"left": END, "operator": "<", "right": BEGIN}
    for _ in range(10_000):
        where = {"not": where}
    with pytest.raises(InvalidFieldError, match=naming("at most 32")) as caught:
        query_from_document({**DOCUMENT, "where": where})
    assert caught.value.field == "where" + 33 * ".not"


def test_several_errors_are_reported() -> None:
    document = changed(["where", "and", 0, "left", "alias"], "q")
    document["events"][1]["alias"] = "on"
    with pytest.raises(InvalidFieldError) as caught:
        query_from_document(document)
    assert [it.field for it in caught.value.problems][:2] == [
        "events[1].alias",
        "where.and[0].left.alias",
    ]


def test_errors_of_all_parts_are_reported() -> None:
    document = changed(["detect", "attributes", 0], {"variable": 1, "constant": 2})
    document["events"] = [{"type": 1, "negated": 0}, {"alias": "s", "attributes": [{}, 3]}]
    document["where"] = {
        "and": [
            {"lft": 1},
            {"left": 2},
            {
                "or": [
                    {"left": {"min": [1, END, {"alias": 2, "side": 3}]}, "operator": 4, "right": 5}
                ]
            },
        ]
    }
    with pytest.raises(InvalidFieldError) as caught:
        query_from_document(document)
    assert [it.field for it in caught.value.problems] == [
        "detect.attributes[0].name",
        "detect.attributes[0]",
        "detect.attributes[0].variable",
        "events[0].alias",
        "events[0].type",
        "events[0].negated",
        "events[1].type",
        "events[1].attributes[0].name",
        "events[1].attributes[0]",
        "events[1].attributes[1]",
        "where.and[0].lft",
        "where.and[1]",
        "where.and[2].or[0].left.min[0]",
        "where.and[2].or[0].left.min[2].alias",
        "where.and[2].or[0].left.min[2].side",
        "where.and[2].or[0].operator",
        "where.and[2].or[0].right",
    ]


def test_errors_of_a_long_list_are_limited() -> None:
    with pytest.raises(InvalidFieldError) as caught:
        query_from_document({**DOCUMENT, "events": [3] * 10_000})
    assert len(caught.value.problems) == MAX_PROBLEMS + 1


def changed(path: list[str | int], value: object) -> Any:  # noqa: ANN401 - a JSON document
    """Return the document with another value at a path."""
    document = deepcopy(DOCUMENT)
    if not path:
        return value
    node: Any = document
    for key in path[:-1]:
        node = node[key]
    if value is MISSING:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return document
