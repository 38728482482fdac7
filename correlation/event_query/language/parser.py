"""Parse the text of an event query.

Lark matches the grammar without recursion and in linear time; `builder` converts the tree.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import islice
from operator import itemgetter

from lark import Lark, UnexpectedInput, UnexpectedToken

from correlation.event_query.language.builder import QueryBuilder
from correlation.event_query.language.checks import find_problems
from correlation.event_query.language.errors import END_OF_TEXT, QueryError, all_of
from correlation.event_query.language.grammar import GRAMMAR, KEYWORDS, readable
from correlation.event_query.language.limits import MAX_CHARACTERS, MAX_PROBLEMS
from correlation.event_query.language.places import Places
from correlation.event_query.language.result_times import find_time_places, with_result_times
from correlation.event_query.language.writer import write_query
from correlation.event_query.query import TRUE, Query, SourceText

_STRING_REMEDY = r"close it in the same line; write \" for a quote and \\ for a backslash"


def parse_query(text: str) -> Query:
    """Parse and check the text of an event query.

    Parameters
    ----------
    text : str
        Text in the language of `grammar`.

    Returns
    -------
    Query
        The query in the form of `normal`, with its `source`.

    Raises
    ------
    QueryError
        The text is not valid; `problems` contains one error per problem.
    """
    if len(text) > MAX_CHARACTERS:
        raise _too_long(text)
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise _unexpected(text, error) from None
    builder = QueryBuilder(text)
    written = builder.build(tree)
    query = with_result_times(written)
    if written.where != TRUE:
        builder.places.put(query.where, builder.places.of(written.where))
    builder.places.put(query, builder.places.of(written))
    problems = [
        (builder.places.of(it.part), it.problem, it.remedy)
        for it in islice(find_problems(query), MAX_PROBLEMS)
    ]
    if problems:
        raise all_of(text, sorted(problems, key=itemgetter(0)))
    if len(write_query(query)) > MAX_CHARACTERS:
        raise _too_long(text)
    offsets = _offsets_of(query, builder.places)
    if written.where != TRUE:
        offsets["where"] = builder.places.of(written.where)
    for side, relation in find_time_places(written).items():
        offsets[f"result.{side}"] = builder.places.of(relation)
    return replace(query, source=SourceText(text, offsets))


def _offsets_of(query: Query, places: Places[int]) -> dict[str, int]:
    """Return the offsets of events and attributes by their paths in the JSON form."""
    offsets: dict[str, int] = {}
    for number, event in enumerate(query.events):
        path = f"events[{number}]"
        offsets[path] = places.of(event)
        for place, attribute in enumerate(event.attributes):
            offsets[f"{path}.attributes[{place}]"] = places.of(attribute)
    return offsets


@cache
def _parser() -> Lark:
    # Otherwise \u0131 and \u017f match the i and the s of terminals that ignore case.
    return Lark(GRAMMAR, parser="lalr", lexer="contextual", g_regex_flags=re.ASCII)


def _too_long(text: str) -> QueryError:
    return QueryError(
        text,
        min(len(text), MAX_CHARACTERS),
        f"must have at most {MAX_CHARACTERS:,} characters, including its canonical form",
        "shorten or split the query",
    )


def _unexpected(text: str, error: UnexpectedInput) -> QueryError:
    """Convert an error of the lexer or the parser."""
    at_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    offset = len(text) if at_end else error.pos_in_stream or 0
    allowed, last_end = _allowed_at(text, offset)
    if at_end:
        # Blanks and comments may follow the last token.
        return QueryError(text, last_end, f"found {END_OF_TEXT}", expected=readable(allowed))
    if "STRING" in allowed and text.startswith('"', offset):
        return QueryError(text, offset, "the string is not valid", _STRING_REMEDY)
    refusal = QueryError(text, offset, expected=readable(allowed))
    if allowed == {"ALIAS"} and refusal.found.strip('"').lower() in KEYWORDS:
        return QueryError(text, offset, f"{refusal.found} is a keyword", "use another name")
    return refusal


def _allowed_at(text: str, offset: int) -> tuple[set[str], int]:
    """Return the terminals that may follow the tokens before a place, and the end of the last one.

    The parser that found the error has already reduced rules, which excludes some of them.
    """
    parser = _parser().parse_interactive(text)
    last_end = 0
    with suppress(UnexpectedInput):
        tokens = parser.lexer_thread.lex(parser.parser_state)  # type: ignore[no-untyped-call] # no type in lark
        for token in tokens:
            if (token.start_pos or 0) >= offset:
                break
            parser.feed_token(token)
            last_end = token.end_pos or 0
    allowed: set[str] = parser.accepts()  # type: ignore[no-untyped-call] # as above
    return allowed, last_end
