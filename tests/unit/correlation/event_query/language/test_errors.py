"""Errors of a query's text: place, problem, expected words and caret."""

from __future__ import annotations

import pytest

from correlation.event_query.language.errors import END_OF_TEXT, QueryError
from correlation.event_query.language.grammar import readable
from correlation.event_query.language.parser import parse_query
from tests.support.messages import assert_names

HEAD = "DETECT A ON event s: T not event r: U not event q: U"
VALUE = "_VAR STRING NUMBER BOOLEAN"
AFTER_TYPE = "_LBRACE _EVENT NOT _WHERE _END"
AFTER_TERM = "SIGN _COMMA _AND _OR"
FORMULA = "ALIAS EXTREME NOT LPAR"


# ¦ is the place of the error. The terminals are those that the grammar allows there.
@pytest.mark.parametrize(
    ("marked", "found", "terminals"),
    [
        ("¦", END_OF_TEXT, "_DETECT"),
        (" -- empty", END_OF_TEXT, "_DETECT"),
        ("¦SELECT", "SELECT", "_DETECT"),
        ("¦DETECTA", "DETECTA", "_DETECT"),
        ("DETECT ¦{", "{", "TYPE"),
        ("DETECT A¦ -- a", END_OF_TEXT, "_LBRACE _ON"),
        ("DETECT A {area ¦var X}", "var", "_LBRACE"),
        ("DETECT A {area {¦X}}", "X", VALUE),
        ("DETECT A {area {¦>= 3}}", ">=", VALUE),
        ("DETECT A {area {var ¦3}}", "3", "VARIABLE"),
        ("DETECT A {area {var X¦, a", ",", "_RBRACE"),
        ("DETECT A {a {var X},¦, b", ",", "ATTRIBUTE"),
        ("DETECT A {a {var X} ¦; b", ";", "ATTRIBUTE _COMMA _RBRACE"),
        ("DETECT A ON ¦s: T", "s", "_EVENT NOT"),
        ("DETECT A ON not ¦not event", "not", "_EVENT"),
        ("DETECT A ON event ¦: T", ":", "ALIAS"),
        ("DETECT A ON event s ¦T", "T", "_COLON"),
        ("DETECT A ON event s: ¦*", "*", "TYPE"),
        ("DETECT A ON event s: T {a {¦!= 3}}", "!=", None),
        ("DETECT A ON event s: T {a {¦'x'}}", "'", None),
        ("DETECT A ON event s: T {a {3¦x}}", "x", "_RBRACE"),
        ("DETECT A ON event s: T {a {1¦e5}}", "e5", "_RBRACE"),
        ("DETECT A ON event s: T¦\n", END_OF_TEXT, AFTER_TYPE),
        ("DETECT A ON event s: T¦, event r: U", ",", AFTER_TYPE),
        (f"{HEAD} WHERE ¦END", "END", FORMULA),
        (f"{HEAD} WHERE s ¦< r", "<", "_DOT"),
        (f"{HEAD} WHERE s.¦end < r", "end", "_RT"),
        (f"{HEAD} WHERE s.rt.¦start < r", "start", "SIDE"),
        (f"{HEAD} WHERE s.rt.end ¦== r", "==", "SIGN OPERATOR"),
        (f"{HEAD} WHERE s.rt.end < r.rt.end ¦< s.rt.end", "<", f"{AFTER_TERM} _END"),
        (f"{HEAD} WHERE (s.rt.end < r.rt.end ¦END", "END", f"{AFTER_TERM} _RPAR"),
        (f"{HEAD} WHERE s.rt.end < r.rt.end,\n  ¦END", "END", FORMULA),
        (f"{HEAD} WHERE s.rt.end + ¦r.rt.end", "r", "DURATION"),
        (f"{HEAD} WHERE s.rt.end + 5 ¦minutes < r", "minutes", "UNIT"),
        (f"{HEAD} WHERE s.rt.end + 5 ¦< r.rt.end", "<", "UNIT"),
        (f"{HEAD} WHERE min ¦s.rt.end", "s", "LPAR"),
        (f"{HEAD} WHERE min(¦)", ")", "ALIAS EXTREME LPAR"),
        (f"{HEAD} END ¦END", "END", "$END"),
        (f"{HEAD} ¦\x00", r"\u0000", None),
    ],
)
def test_word_that_the_grammar_does_not_allow(
    marked: str, found: str, terminals: str | None
) -> None:
    error = refused_at(marked if "¦" in marked else f"¦{marked}")
    shown = found if found == END_OF_TEXT else f'"{found}"'
    assert error.plain_problem == f"found {shown}"
    assert terminals is None or error.expected == readable({*terminals.split()})
    assert_names(error.remedy, "expected", *error.expected)


@pytest.mark.parametrize(
    ("marked", "problem", "remedy"),
    [
        ('DETECT A ON event s: T {a {¦"x}}\nEND', ["string", "not valid"], [r"\"", r"\\"]),
        (r'DETECT A ON event s: T {a {¦"\x"}}', ["string", "not valid"], []),
        (
            f"{HEAD} WHERE s.rt.end + ¦0.0001 ms < r.rt.end END",
            ["duration", "whole number", "microseconds"],
            ["0.001 ms"],
        ),
        (
            f"{HEAD} WHERE ¦s.rt.end + 20000 d < r.rt.end END",
            ["term", "at most 35 years"],
            ["shorter duration"],
        ),
        (
            f"DETECT A ON event s: T {{a {{¦{'1' * 41}}}}} END",
            ["number", "at most 40 digits"],
            ["round"],
        ),
        ("DETECT A ON event s: T event ¦s: U END", ["several", 'alias "s"'], ["rename one"]),
        ("DETECT A ON event ¦Min: T END", ['"Min"', "keyword"], ["another name"]),
        ("DETECT A ON not event ¦s: T END", ["one positive event"], ["without not"]),
        (
            "DETECT A ON event smoke: T WHERE ¦smok.rt.end < smoke.rt.end END",
            ["no event", 'alias "smok"'],
            ["did you mean smoke?"],
        ),
        (
            "DETECT A ON event s: T event b: T WHERE s.rt.end < ¦other.rt.end END",
            ["no event", 'alias "other"'],
            ["b or s"],
        ),
        (
            "DETECT A {a {3}, b {4}, ¦a {5}} ON event s: T END",
            ["DETECT", "several", 'attributes "a"'],
            ["keep one"],
        ),
        (
            "DETECT A {a {var ¦Room}} ON event s: T {room {var Rooms}} END",
            ['variable "Room"', "not in any event", "result"],
            ["did you mean Rooms?"],
        ),
        (
            "DETECT A ON event s: T not event r: U {a {var ¦X}} not event q: U {a {var X}} END",
            ['variable "X"', "only in negated events", "compared"],
            ["{var X}", "positive event", "remove"],
        ),
        (
            f"{HEAD} WHERE s.rt.end < r.rt.end, min(r.rt.end, s.rt.end) < ¦q.rt.end END",
            ["relation", "two negated events", '"r" and "q"'],
            ["positive events"],
        ),
        (
            f"{HEAD} WHERE s.rt.end < r.rt.end or (s.rt.end > r.rt.end, s.rt.end < ¦q.rt.end) END",
            ["disjunction", "two negated events", '"r" and "q"'],
            ["only one negated event"],
        ),
        (
            f"{HEAD} WHERE not (s.rt.end < r.rt.end, s.rt.end < ¦q.rt.end) END",
            ["disjunction", "two negated events", '"r" and "q"'],
            ["only one negated event", "not of a conjunction"],
        ),
        (
            "DETECT A ON event s: T {a {¦>= true}} END",
            ["true and false", "compared by order"],
            ["{true} or {false}"],
        ),
        (r'DETECT A ON event s: T {¦a {"\ud800"}} END', ["string", "surrogate"], ["character"]),
        (
            f"DETECT A ON event ¦{'s' * 64}: T END",
            [f'"{"s" * 40}…"', "not a valid name"],
            ["1 to 63", "A-Z, a-z, 0-9", "'_'"],
        ),
    ],
)
def test_text_that_is_not_valid(marked: str, problem: list[str], remedy: list[str]) -> None:
    error = refused_at(marked)
    assert error.expected == ()
    assert_names(error.plain_problem, *problem)
    assert_names(error.remedy, *remedy)


def test_variable_of_detect_in_negated_events_is_refused() -> None:
    error = refused("DETECT A {a {var X}} ON event s: T not event r: U {a {var X}} END")
    result, compared = (it.problem for it in error.problems)
    assert result.startswith('line 1, column 18: variable "X" ')
    assert compared.startswith('line 1, column 59: variable "X" ')
    assert_names(result, "only in negated events", "result")
    assert_names(compared, "only in negated events", "compared")


def test_all_problems_are_reported_in_the_order_of_the_text() -> None:
    error = refused("DETECT A {a {var X}}\nON event s: T\nWHERE y.rt.end < s.rt.end END")
    assert [(it.line, it.column) for it in error.problems if isinstance(it, QueryError)] == [
        (1, 18),
        (3, 7),
    ]
    assert str(error) == "\n".join(map(str, error.problems))
    assert str(error).startswith("query: line 1, column 18: variable")


@pytest.mark.parametrize(
    ("inner", "column"),
    [
        ("(" * 100 + "s.rt.end < s.rt.begin" + ")" * 100, 33),
        ("(" * 100 + "s.rt.end" + ")" * 100 + "< s.rt.begin", 33),
        ("not " * 100 + "s.rt.end < s.rt.begin", 129),
        ("min(" * 100 + "s.rt.end" + ")" * 100 + "< s.rt.begin", 129),
    ],
)
def test_deep_nesting_is_refused(inner: str, column: int) -> None:
    error = refused(f"DETECT A ON event s: T WHERE\n{inner} END")
    assert (error.line, error.column) == (2, column)
    assert_names(error.plain_problem, "nested", "at most 32")


@pytest.mark.parametrize("opening", ["(", "not ", "min(", "s.rt.end + 1 s ", "{"])
def test_deepest_text_is_refused(opening: str) -> None:
    text = f"DETECT A ON event s: T WHERE {opening * 65_000}"[:65_536]
    assert refused(text).excerpt.endswith("^")


def test_long_text_is_refused() -> None:
    error = refused("DETECT A\n" + "x" * 1_000_000)
    assert (error.line, error.column) == (2, 65_528)
    assert error.plain_problem.startswith("must have at most 65,536 characters")
    assert len(error.excerpt) < 200


def test_text_that_is_long_in_canonical_form_is_refused() -> None:
    relation = ",a.rt.end<a.rt.end"
    text = f"DETECT A ON event a: T WHERE {relation[1:]}{relation * 3_600} END"
    assert len(text) < 65_536
    assert refused(text).plain_problem.startswith("must have at most 65,536 characters")


def test_many_events_are_refused() -> None:
    events = " ".join(f"event a{i}: T" for i in range(17))
    assert_names(refused(f"DETECT A ON {events} END").plain_problem, "at most 16 events")


def test_number_of_problems_is_limited() -> None:
    relations = ", ".join(f"x{i}.rt.end < y.rt.end" for i in range(1000))
    assert len(refused(f"DETECT A ON event s: T WHERE {relations} END").problems) == 20


@pytest.mark.parametrize(
    ("text", "excerpt"),
    [
        ("DETECT A\r\nON evnt s: T\r\n", "ON evnt s: T\n   ^"),
        ("DETECT A ON\tevnt", "DETECT A ON evnt\n            ^"),
        ('DETECT A {a {"火事"} b}', 'DETECT A {a {"火事"} b}\n' + " " * 22 + "^"),
        ("DETECT " + "A" * 60 + " OFF" + " " * 90, None),
    ],
)
def test_caret_is_below_the_place(text: str, excerpt: str | None) -> None:
    if excerpt is None:
        shown, caret = refused(text).excerpt.split("\n")
        assert shown.startswith("…AAA")
        assert shown[caret.index("^") :].startswith("OFF")
    else:
        assert refused(text).excerpt == excerpt


def test_expected_words_are_listed() -> None:
    error = refused("DETECT A ON event s: T {a {var X} } stop")
    assert error.found == '"stop"'
    assert error.expected == ('"event"', '"not event"', "WHERE", "END")


def refused(text: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        parse_query(text)
    return caught.value


def refused_at(marked: str) -> QueryError:
    """Return the only error of the query, which is at ¦."""
    before, _, after = marked.partition("¦")
    error = refused(before + after)
    lines = before.split("\n")
    assert (error.line, error.column) == (len(lines), len(lines[-1]) + 1)
    assert len(error.problems) == 1
    # The caret is below the word at the place.
    shown, caret = error.excerpt.split("\n")
    assert (
        shown[caret.index("^") :][:5]
        == after.split("\n")[0].replace("\x00", "\ufffd")[: len(shown[caret.index("^") :])][:5]
    )
    return error
