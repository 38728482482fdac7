"""Keywords, units and names have ASCII letters; strings and comments have any characters."""

from __future__ import annotations

import pytest

from correlation.event_query.language.errors import QueryError
from correlation.event_query.language.parser import parse_query
from correlation.event_query.query import Comparison

# One place for every keyword, boolean, unit and side, and names with the letters i, s and k.
_PLACES = (
    ("{} Alarm ON event s: Smoke END", ("detect",)),
    ("DETECT Alarm {} event s: Smoke END", ("on",)),
    ("DETECT Alarm ON {} s: Smoke END", ("event",)),
    ("DETECT Alarm ON event s: Smoke {} event r: Report END", ("not",)),
    ("DETECT Alarm ON event s: Smoke {} s.rt.end = s.rt.end END", ("where",)),
    ("DETECT Alarm ON event s: Smoke {}", ("end",)),
    ("DETECT Alarm ON event s: Smoke {{area {{{} X}}}} END", ("var",)),
    ("DETECT Alarm ON event s: Smoke {{area {{{}}}}} END", ("true", "false")),
    (
        "DETECT Alarm ON event s: Smoke WHERE s.rt.end = s.rt.end {} s.rt.end = s.rt.end END",
        ("and", "or"),
    ),
    ("DETECT Alarm ON event s: Smoke WHERE {}(s.rt.end, s.rt.end) = s.rt.end END", ("min", "max")),
    ("DETECT Alarm ON event s: Smoke WHERE s.{}.end = s.rt.end END", ("rt",)),
    ("DETECT Alarm ON event s: Smoke WHERE s.rt.{} = s.rt.end END", ("begin", "end")),
    (
        "DETECT Alarm ON event s: Smoke WHERE s.rt.end + 5 {} = s.rt.end END",
        ("ms", "s", "sec", "min", "h", "d"),
    ),
    ("DETECT {} ON event s: Smoke END", ("Risk",)),
    ("DETECT Alarm ON event {}: Smoke END", ("risk",)),
    ("DETECT Alarm ON event s: Smoke {{{} {{1}}}} END", ("risk",)),
)
# Letters that are equal to an ASCII letter if case is ignored: dotless i, long s, Kelvin sign.
_LIKE = ("ı", "ſ", "\N{KELVIN SIGN}")  # noqa: RUF001 - meant
CASES = [
    (text, word, place) for text, words in _PLACES for word in words for place in range(len(word))
]


@pytest.mark.parametrize(("text", "word", "place"), CASES)
@pytest.mark.parametrize("letter", _LIKE)
def test_a_letter_that_is_not_ascii_is_an_error(
    text: str, word: str, place: int, letter: str
) -> None:
    parse_query(text.format(word))
    parse_query(text.format(word.upper()))
    for found in (word, word.upper()):
        with pytest.raises(QueryError):
            parse_query(text.format(found[:place] + letter + found[place + 1 :]))


def test_strings_and_comments_have_any_characters() -> None:
    text = 'DETECT Alarm -- ſmoke, mın\nON event s: Smoke {area {"Küche ſ ı \N{KELVIN SIGN}"}} END'  # noqa: RUF001 - meant
    pattern = parse_query(text).events[0].attributes[0].pattern
    assert pattern == Comparison("=", "Küche ſ ı \N{KELVIN SIGN}")  # noqa: RUF001 - meant
