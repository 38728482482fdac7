"""The language by example; the limits keep parsing linear and shallow."""

from __future__ import annotations

from decimal import Decimal

import pytest

from correlation.event_query.language import grammar
from correlation.event_query.language.parser import parse_query
from correlation.event_query.language.writer import write_query
from correlation.event_query.query import (
    TRUE,
    And,
    AttributePattern,
    Comparison,
    EventPattern,
    Extreme,
    Formula,
    Not,
    Or,
    OutputAttribute,
    Point,
    Query,
    Relation,
    Shifted,
    Term,
    Variable,
)

EXAMPLE = """\
DETECT Alarm {area {var X}}
ON event s: Smoke {area {var X}}
   not event r: Report {area {var X}}
WHERE s.rt.end <= r.rt.begin,
      r.rt.begin <= s.rt.end + 5 min
END"""
A, B, C = Point("a", "end"), Point("b", "begin"), Point("c", "end")
LESS, MORE, SAME = Relation(A, "<", B), Relation(A, ">", C), Relation(B, "=", C)


def test_running_example_is_parsed() -> None:
    area = (AttributePattern("area", Variable("X")),)
    end, begin = Point("s", "end"), Point("r", "begin")
    assert parse_query(EXAMPLE) == Query(
        "Alarm",
        (OutputAttribute("area", Variable("X")),),
        (EventPattern("s", "Smoke", area), EventPattern("r", "Report", area, negated=True)),
        And((Relation(end, "<=", begin), Relation(begin, "<=", Shifted(end, 300_000_000)))),
    )


def test_running_example_is_canonical() -> None:
    assert write_query(parse_query(EXAMPLE)) == EXAMPLE
    # The example in the documentation of the grammar.
    assert EXAMPLE.replace("\n", "\n    ") in (grammar.__doc__ or "")


@pytest.mark.parametrize(
    "text",
    [
        # The layout of the source.
        EXAMPLE.replace("DETECT ", "DETECT\n\n").replace("ON ", "\nON\n\n"),
        EXAMPLE.lower()
        .replace("alarm", "Alarm")
        .replace("smoke", "Smoke")
        .replace("report", "Report")
        .replace(" x}", " X}"),
        EXAMPLE.replace("event", "EVENT").replace(".rt.end", " . RT . End").replace("min", "MIN"),
        EXAMPLE.replace("5 min", "5min").replace(",", "\tand\r\n"),
        EXAMPLE.replace("5 min", "300 sec"),
        EXAMPLE.replace("5 min", "0.1 h - 60s"),
        EXAMPLE.replace("\n", " -- a comment, with END and (\n") + "\n-- more",
        EXAMPLE.replace("{var X}}", "{\nvar\nX } , }").replace(" , }", " }"),
        EXAMPLE.replace("s.rt.end <= r.rt.begin", "((s.rt.end) <= (r.rt.begin))"),
        EXAMPLE.replace("s.rt.end +", "(s.rt.end+1s)-1 s +"),
    ],
)
def test_running_example_is_parsed_in_other_forms(text: str) -> None:
    assert write_query(parse_query(text)).replace(" x}", " X}") == EXAMPLE


@pytest.mark.parametrize(
    ("where", "formula"),
    [
        ("a.rt.end < b.rt.begin", LESS),
        ("a.rt.end < b.rt.begin, a.rt.end > c.rt.end", And((LESS, MORE))),
        ("a.rt.end < b.rt.begin and a.rt.end > c.rt.end", And((LESS, MORE))),
        (
            "a.rt.end < b.rt.begin or a.rt.end > c.rt.end and b.rt.begin = c.rt.end",
            Or((LESS, And((MORE, SAME)))),
        ),
        (
            "a.rt.end < b.rt.begin or a.rt.end > c.rt.end, b.rt.begin = c.rt.end",
            And((Or((LESS, MORE)), SAME)),
        ),
        (
            "a.rt.end < b.rt.begin and (a.rt.end > c.rt.end or b.rt.begin = c.rt.end)",
            And((LESS, Or((MORE, SAME)))),
        ),
        (
            "(a.rt.end < b.rt.begin, (a.rt.end > c.rt.end, b.rt.begin = c.rt.end))",
            And((LESS, MORE, SAME)),
        ),
        ("not a.rt.end < b.rt.begin and a.rt.end > c.rt.end", And((Not(LESS), MORE))),
        ("not (a.rt.end < b.rt.begin and a.rt.end > c.rt.end)", Not(And((LESS, MORE)))),
        ("NOT not a.rt.end < b.rt.begin", Not(Not(LESS))),
    ],
)
def test_formulas(where: str, formula: Formula) -> None:
    assert _where(where) == formula


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("a.rt.end", A),
        ("a.rt.end + 1 ms", Shifted(A, 1_000)),
        ("a.rt.end - 1 s", Shifted(A, -1_000_000)),
        ("a.rt.end + 1.5 sec", Shifted(A, 1_500_000)),
        ("a.rt.end + 0.001 ms", Shifted(A, 1)),
        (
            "a.rt.end + 1 min - 2 h + 3 d",
            Shifted(A, 60_000_000 - 7_200_000_000 + 3 * 86_400 * 10**6),
        ),
        ("a.rt.end + 1 s - 1000 ms", A),
        ("(a.rt.end + 1 s) + 1 s", Shifted(A, 2_000_000)),
        ("min(a.rt.end)", Extreme("min", (A,))),
        ("max(a.rt.end, b.rt.begin + 1 s)", Extreme("max", (A, Shifted(B, 1_000_000)))),
        (
            "MIN(a.rt.end, Max(b.rt.begin, c.rt.end)) - 1 s",
            Shifted(Extreme("min", (A, Extreme("max", (B, C)))), -1_000_000),
        ),
    ],
)
def test_terms(text: str, term: Term) -> None:
    assert _where(f"{text} < c.rt.end") == Relation(term, "<", C)
    assert _where(f"c.rt.end >= {text}") == Relation(C, ">=", term)


@pytest.mark.parametrize(
    ("text", "constant"),
    [
        ('"hall 3"', "hall 3"),
        (r'"a\"b\\c\n\u00e9 -- é"', 'a"b\\c\né -- é'),
        ('""', ""),
        ("3", 3),
        ("-3", -3),
        ("0.50", Decimal("0.5")),
        ("3.0", 3),
        ("TRUE", True),
        ("false", False),
        ("1" * 40, int("1" * 40)),
    ],
)
def test_constants(text: str, constant: object) -> None:
    query = parse_query(f"DETECT A {{n {{{text}}}}} ON event s: T {{n {{{text}}}}} END")
    assert repr(query.attributes[0].value) == repr(constant)
    assert repr(query.events[0].attributes[0].pattern) == repr(Comparison("=", constant))  # type: ignore[arg-type]


def test_attributes_are_separated_by_blanks_or_commas() -> None:
    query = parse_query(
        "DETECT A {} ON event s: T-1.b {end {>= 3}, not {< 5.5} var{= true}, a-b {<=1},c {>-2}} END"
    )
    assert query.where == TRUE
    assert query.events[0].type == "T-1.b"
    assert query.events[0].attributes == (
        AttributePattern("end", Comparison(">=", 3)),
        AttributePattern("not", Comparison("<", Decimal("5.5"))),
        AttributePattern("var", Comparison("=", constant=True)),
        AttributePattern("a-b", Comparison("<=", 1)),
        AttributePattern("c", Comparison(">", -2)),
    )


def test_disjunction_may_mention_one_negated_event() -> None:
    text = EXAMPLE.replace("begin,\n", "begin or not r.rt.end < s.rt.begin,\n")
    assert isinstance(parse_query(text).where, And)


def test_not_of_a_disjunction_may_mention_several_negated_events() -> None:
    assert parse_query(
        "DETECT A ON event a: T not event b: U not event c: V "
        "WHERE not (b.rt.end < a.rt.end or c.rt.end < a.rt.end) END"
    ).where


def test_limits_are_allowed() -> None:
    nested = "(" * 32 + "a.rt.end < b.rt.begin" + ")" * 32
    assert _where(nested) == LESS
    events = " ".join(f"event a{i}: T" for i in range(16))
    assert len(parse_query(f"DETECT A ON {events} END").events) == 16


def _where(text: str) -> Formula:
    return parse_query(f"DETECT R ON event a: T event b: T event c: T WHERE {text} END").where
