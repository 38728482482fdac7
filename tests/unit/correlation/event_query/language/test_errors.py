"""Errors of a query's text: place, problem, expected words and caret."""

from __future__ import annotations

import pytest

from correlation.event_query.language.errors import QueryError
from correlation.event_query.language.parser import parse_query
from tests.support.messages import assert_names

HEAD = "DETECT A ON event s: T not event r: U not event q: U"
OFFSET = '"+", "-"'


# ¦ is the place of the error.
@pytest.mark.parametrize(
    ("marked", "problem", "remedy"),
    [
        ("¦", "found the end of the text", "expected DETECT"),
        (" -- empty", "found the end of the text", "expected DETECT"),
        ("¦SELECT", 'found "SELECT"', "expected DETECT"),
        ("¦DETECTA", 'found "DETECTA"', "expected DETECT"),
        ("DETECT ¦{", 'found "{"', "expected an event type"),
        ("DETECT A¦ -- a", "found the end of the text", 'expected "{" or ON'),
        ("DETECT A {area ¦var X}", 'found "var"', 'expected "{"'),
        (
            "DETECT A {area {¦X}}",
            'found "X"',
            (
                'expected a variable such as "var X", a string in double quotes, a number, '
                '"true" or '
                '"false"'
            ),
        ),
        (
            "DETECT A {area {¦>= 3}}",
            'found ">="',
            (
                'expected a variable such as "var X", a string in double quotes, a number, '
                '"true" or '
                '"false"'
            ),
        ),
        ("DETECT A {area {var ¦3}}", 'found "3"', "expected the name of a variable"),
        ("DETECT A {area {var X¦, a", 'found ","', 'expected "}"'),
        ("DETECT A {a {var X},¦, b", 'found ","', "expected an attribute"),
        ("DETECT A {a {var X} ¦; b", 'found ";"', 'expected an attribute, a comma or "}"'),
        ("DETECT A ON ¦s: T", 'found "s"', 'expected "event" or "not event"'),
        ("DETECT A ON not ¦not event", 'found "not"', 'expected "event"'),
        ("DETECT A ON event ¦: T", 'found ":"', "expected an alias"),
        ("DETECT A ON event s ¦T", 'found "T"', "expected a colon"),
        ("DETECT A ON event s: ¦*", 'found "*"', "expected an event type"),
        ("DETECT A ON event s: T {a {¦!= 3}}", 'found "!="', None),
        ("DETECT A ON event s: T {a {¦'x'}}", 'found "\'"', None),
        ("DETECT A ON event s: T {a {3¦x}}", 'found "x"', 'expected "}"'),
        ("DETECT A ON event s: T {a {1¦e5}}", 'found "e5"', 'expected "}"'),
        (
            'DETECT A ON event s: T {a {¦"x}}\nEND',
            "the string is not valid",
            r"close it in the same line; write \" for a quote and \\ for a backslash",
        ),
        (r'DETECT A ON event s: T {a {¦"\x"}}', "the string is not valid", None),
        (
            "DETECT A ON event s: T¦\n",
            "found the end of the text",
            'expected "{", "event", "not event", WHERE or END',
        ),
        (
            "DETECT A ON event s: T¦, event r: U",
            'found ","',
            'expected "{", "event", "not event", WHERE or END',
        ),
        (
            f"{HEAD} WHERE ¦END",
            'found "END"',
            'expected an alias, "min", "max", "not" or "("',
        ),
        (f"{HEAD} WHERE s ¦< r", 'found "<"', "expected a dot"),
        (f"{HEAD} WHERE s.¦end < r", 'found "end"', 'expected "rt" as in s.rt.end'),
        (f"{HEAD} WHERE s.rt.¦start < r", 'found "start"', 'expected "begin" or "end"'),
        (
            f"{HEAD} WHERE s.rt.end ¦== r",
            'found "=="',
            f"expected {OFFSET} or a comparison (<, <=, >, >= or =)",
        ),
        (
            f"{HEAD} WHERE s.rt.end < r.rt.end ¦< s.rt.end",
            'found "<"',
            f'expected {OFFSET}, a comma, "and", "or" or END',
        ),
        (
            f"{HEAD} WHERE (s.rt.end < r.rt.end ¦END",
            'found "END"',
            f'expected {OFFSET}, a comma, "and", "or" or ")"',
        ),
        (
            f"{HEAD} WHERE s.rt.end < r.rt.end,\n  ¦END",
            'found "END"',
            'expected an alias, "min", "max", "not" or "("',
        ),
        (f"{HEAD} WHERE s.rt.end + ¦r.rt.end", 'found "r"', "expected a duration such as 5 min"),
        (
            f"{HEAD} WHERE s.rt.end + 5 ¦minutes < r",
            'found "minutes"',
            "expected a unit (ms, s, sec, min, h or d)",
        ),
        (
            f"{HEAD} WHERE s.rt.end + 5 ¦< r.rt.end",
            'found "<"',
            "expected a unit (ms, s, sec, min, h or d)",
        ),
        (f"{HEAD} WHERE min ¦s.rt.end", 'found "s"', 'expected "("'),
        (f"{HEAD} WHERE min(¦)", 'found ")"', 'expected an alias, "min", "max" or "("'),
        (f"{HEAD} END ¦END", 'found "END"', "expected the end of the text"),
        (f"{HEAD} ¦\x00", r'found "\u0000"', None),
        (
            f"{HEAD} WHERE s.rt.end + ¦0.0001 ms < r.rt.end END",
            "a duration must be a whole number of microseconds",
            "round it to 0.001 ms or coarser",
        ),
        (
            f"{HEAD} WHERE ¦s.rt.end + 20000 d < r.rt.end END",
            "a term must be shifted by at most 35 years",
            "use a shorter duration",
        ),
        (
            f"DETECT A ON event s: T {{a {{¦{'1' * 41}}}}} END",
            "a number must have at most 40 digits",
            "round it",
        ),
    ],
)
def test_error_of_the_grammar(marked: str, problem: str, remedy: str | None) -> None:
    marked = marked if "¦" in marked else f"¦{marked}"
    assert_error(marked, problem, remedy)


@pytest.mark.parametrize(
    ("marked", "problem", "remedy"),
    [
        (
            "DETECT A ON event s: T event ¦s: U END",
            'several events have the alias "s"',
            "rename one",
        ),
        ("DETECT A ON event ¦Min: T END", '"Min" is a keyword', "use another name"),
        (
            "DETECT A ON not event ¦s: T END",
            "a query needs at least one positive event",
            "add an event without not",
        ),
        (
            "DETECT A ON event smoke: T WHERE ¦smok.rt.end < smoke.rt.end END",
            'no event has the alias "smok"',
            "did you mean smoke?",
        ),
        (
            "DETECT A ON event s: T event b: T WHERE s.rt.end < ¦other.rt.end END",
            'no event has the alias "other"',
            "use b or s",
        ),
        (
            "DETECT A {a {3}, b {4}, ¦a {5}} ON event s: T END",
            'DETECT has several attributes "a"',
            "keep one of them",
        ),
        (
            "DETECT A {a {var ¦Room}} ON event s: T {room {var Rooms}} END",
            'variable "Room" is not in any event, and has no value in the result',
            "did you mean Rooms?",
        ),
        (
            "DETECT A ON event s: T not event r: U {a {var ¦X}} not event q: U {a {var X}} END",
            (
                'variable "X" occurs only in negated events: it has no value that they could be '
                "compared with"
            ),
            "add {var X} to a positive event, or remove it",
        ),
        (
            f"{HEAD} WHERE s.rt.end < r.rt.end, min(r.rt.end, s.rt.end) < ¦q.rt.end END",
            (
                'a relation must not mention two negated events, "r" and "q": each is '
                "looked for on "
                "its own"
            ),
            "relate each of them to positive events",
        ),
        (
            (
                f"{HEAD} WHERE s.rt.end < r.rt.end or (s.rt.end > r.rt.end and s.rt.end < "
                f"¦q.rt.end)"
                " END"
            ),
            (
                'a disjunction must not mention two negated events, "r" and "q": each is '
                "looked for "
                "on its own"
            ),
            "mention only one negated event in it",
        ),
        (
            f"{HEAD} WHERE not (s.rt.end < r.rt.end, s.rt.end < ¦q.rt.end) END",
            (
                'a disjunction must not mention two negated events, "r" and "q": each is '
                "looked for "
                "on its own"
            ),
            "mention only one negated event in it; not of a conjunction is a disjunction",
        ),
        (
            "DETECT A ON event s: T {a {¦>= true}} END",
            "true and false cannot be compared by order",
            "use {true} or {false}",
        ),
        (
            r'DETECT A ON event s: T {¦a {"\ud800"}} END',
            "the string contains half of a surrogate pair",
            "write the character itself",
        ),
        (
            f"DETECT A ON event ¦{'s' * 64}: T END",
            f'"{"s" * 40}…" is not a valid name',
            "use 1 to 63 of A-Z, a-z, 0-9 and '_'",
        ),
    ],
)
def test_error_of_the_meaning(marked: str, problem: str, remedy: str) -> None:
    assert_error(marked, problem, remedy)


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


def assert_error(marked: str, problem: str, remedy: str | None) -> None:
    before, _, after = marked.partition("¦")
    error = refused(before + after)
    lines = before.split("\n")
    assert (error.line, error.column) == (len(lines), len(lines[-1]) + 1)
    assert error.plain_problem == problem
    assert remedy in {None, error.remedy}
    assert len(error.problems) == 1
    # The caret is below the word at the place.
    shown, caret = error.excerpt.split("\n")
    assert (
        shown[caret.index("^") :][:5]
        == after.split("\n")[0].replace("\x00", "\ufffd")[: len(shown[caret.index("^") :])][:5]
    )
