"""Error of a query's text: its place, what was found and what was expected."""

from __future__ import annotations

import re
from collections.abc import Sequence
from unicodedata import combining, east_asian_width

from correlation.errors import InvalidFieldError, TextPlace
from correlation.event_query.query import Query

# Widths in characters of the part of a line that is shown, and of its part before the place.
_SHOWN, _BEFORE = 80, 50
_SHOWN_FOUND = 40
END_OF_TEXT = "the end of the text"
_WORD = re.compile(r'\w+|--|[<>=!]+|"|.', re.DOTALL)


class QueryError(InvalidFieldError):
    """The text of an event query is not valid.

    Parameters
    ----------
    text : str
        Text of the query.
    offset : int
        Place of the error in the text.
    problem : str or None
        What is wrong; by default the word at the place.
    remedy : str or None
        How to correct it; by default the expected words.
    expected : sequence of str
        What the grammar allows at the place.

    Attributes
    ----------
    line, column : int
        Place of the error, from 1; the column counts characters.
    found : str
        Word at the place.
    expected : tuple of str
        What the grammar allows at the place; empty if the text has another error.
    excerpt : str
        Line of the place, and a line with a caret below the place.
    plain_problem : str
        What is wrong, without the place.
    """

    def __init__(
        self,
        text: str,
        offset: int,
        problem: str | None = None,
        remedy: str | None = None,
        expected: Sequence[str] = (),
    ) -> None:
        begin = text.rfind("\n", 0, offset) + 1
        self.line = text.count("\n", 0, offset) + 1
        self.column = offset - begin + 1
        self.found = _found_at(text, offset)
        self.expected = tuple(expected)
        self.excerpt = _excerpt(text, begin, offset)
        self.plain_problem = problem or f"found {self.found}"
        remedy = remedy or f"expected {_alternatives(self.expected)}"
        place = f"line {self.line}, column {self.column}"
        super().__init__("query", f"{place}: {self.plain_problem}", remedy)
        self.place = TextPlace(self.line, self.column, self.found, self.expected, self.excerpt)


def error_at(query: Query, path: str, problem: str, remedy: str) -> InvalidFieldError:
    """Return an error of a part of a parsed query.

    Parameters
    ----------
    query : Query
        The query. If it was parsed from text, the error has the place of the part in the text;
        otherwise its field is the path in the JSON form.
    path : str
        Path of the part in the JSON form, such as ``events[0]``.
    problem, remedy : str
        What is wrong, and how to correct it.
    """
    if query.source is None:
        return InvalidFieldError(f"query.{path}", problem, remedy)
    return QueryError(query.source.text, query.source.offsets.get(path, 0), problem, remedy)


def error_at_time(query: Query, problem: str, remedy: str) -> InvalidFieldError:
    """Return an error of the equalities that state the time of the result.

    Parameters
    ----------
    query : Query
        A query that states it; see `error_at`.
    problem, remedy : str
        What is wrong, and how to correct it.
    """
    stated = "end" if query.result_end is not None else "begin"
    path = "where" if query.source is None else f"result.{stated}"
    return error_at(query, path, problem, remedy)


def all_of(text: str, problems: Sequence[tuple[int, str, str]]) -> QueryError:
    """Return an error at the first of several places, with one error per place in `problems`.

    Parameters
    ----------
    text : str
        Text of the query.
    problems : sequence of (int, str, str)
        Place, problem and remedy of each error.
    """
    combined = QueryError(text, *problems[0])
    combined.problems = tuple(QueryError(text, *it) for it in problems)
    combined.args = ("\n".join(map(str, combined.problems)),)
    return combined


def _found_at(text: str, offset: int) -> str:
    match = _WORD.match(text, offset)
    if match is None:
        return END_OF_TEXT
    return "a double quote" if match[0] == '"' else quoted(match[0])


def quoted(word: str) -> str:
    """Return a word in double quotes, shortened, with unprintable characters escaped."""
    shown = word if len(word) <= _SHOWN_FOUND else word[:_SHOWN_FOUND] + "…"
    printable = (it if it.isprintable() else f"\\u{ord(it):04x}" for it in shown)
    return f'"{"".join(printable)}"'


def _alternatives(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def _excerpt(text: str, begin: int, offset: int) -> str:
    """Return the shown part of a line, each character as one, and the caret below it."""
    start = max(begin, offset - _BEFORE)
    end = text.find("\n", offset, start + _SHOWN)
    line = text[start : start + _SHOWN if end < 0 else end].rstrip("\r\n")
    shown = "".join(it if it.isprintable() else " " if it.isspace() else "\ufffd" for it in line)
    before = shown[: offset - start].ljust(offset - start)
    lead = "…" if start > begin else ""
    return f"{lead}{shown}\n{' ' * (len(lead) + _width(before))}^"


def _width(shown: str) -> int:
    """Return the number of columns of a terminal."""
    return sum(
        0 if combining(it) else 2 if east_asian_width(it) in {"W", "F"} else 1 for it in shown
    )
