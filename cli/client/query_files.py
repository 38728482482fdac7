"""Files of event queries: reading, and the checks that need no declarations of streams."""

from __future__ import annotations

import json
import sys
from codecs import BOM_UTF8
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from cli.errors import UsageError
from correlation.errors import FieldErrors, InvalidFieldError
from correlation.event_query.checking import check_order
from correlation.event_query.language.document_reader import query_from_document
from correlation.event_query.language.errors import QueryError, error_at
from correlation.event_query.language.limits import MAX_CHARACTERS
from correlation.event_query.language.parser import parse_query
from correlation.event_query.query import Query
from correlation.event_query.relevance.analysis import analyse_relevance, may_begin_before_it_ends
from correlation.event_query.relevance.closure import StreamTimes

# Maximum size of a file; the JSON form is longer than the text.
_MAX_BYTES = 2**20


def read_query_file(file: str) -> Query:
    """Read and parse a file with the text or the JSON form of a query; `-` is standard input.

    Raises
    ------
    UsageError
        The file cannot be read.
    InvalidFieldError
        The file has more than 1 MiB, or the query is not valid; a `QueryError` if the problem has a
        line and a column.
    """
    try:
        if file == "-":
            content = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with Path(file).open("rb") as opened:
                content = opened.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    is_cut = len(content) > _MAX_BYTES
    content = content[:_MAX_BYTES].removeprefix(BOM_UTF8)
    text = content.decode(errors="replace")
    is_json = text.lstrip().startswith("{")
    if is_json and is_cut:
        # A query as text may have fewer characters: `parse_query` refuses it.
        problem = f"a file may have at most {_MAX_BYTES // 2**20} MiB"
        raise QueryError(text, len(text), problem, "shorten or split the query")
    if is_json or len(text) <= MAX_CHARACTERS:
        try:
            content.decode()
        except UnicodeDecodeError as error:
            before = content[: error.start].decode()
            problem = f"byte 0x{content[error.start]:02x} is not UTF-8"
            raise QueryError(text, len(before), problem, "save the file as UTF-8") from None
    return query_from_document(_parse_json(text)) if is_json else parse_query(text)


def _parse_json(text: str) -> object:
    try:
        return json.loads(text, parse_float=Decimal)
    except json.JSONDecodeError as error:
        raise QueryError(text, error.pos, f"is not JSON: {error.msg}", "correct it") from None
    except (ValueError, ArithmeticError, RecursionError):
        problem = "is not JSON: a number is too long, or the nesting is too deep"
        raise QueryError(text, 0, problem, "correct it") from None


def refuse_unbounded_on_any_streams(query: Query) -> None:
    """Check that streams exist on which the query is bounded and its result ends after its begin.

    Instants satisfy all relations between the times of events that last, and more. A query that is
    not bounded on streams of instants is therefore bounded on no streams. Events of any length
    satisfy no relation that others do not: a result that ends before it begins for all of them does
    so on all streams.

    Raises
    ------
    InvalidFieldError
        The query is not bounded, or too large, or its result ends before it begins.
    """
    _analyse(query, _types(query, max_length_us=0))
    lasting = _types(query, max_length_us=None)
    if not may_begin_before_it_ends(query, lasting):
        check_order(query, lasting)


def find_dependence(query: Query) -> InvalidFieldError | None:
    """Return why the query is refused if its events last, without limits of their length.

    Parameters
    ----------
    query : Query
        A query that is bounded on streams of instants.
    """
    types = _types(query, max_length_us=None)
    try:
        _analyse(query, types)
        check_order(query, types)
    except InvalidFieldError as error:
        return error
    return None


def _types(query: Query, max_length_us: int | None) -> dict[str, StreamTimes]:
    return {it.type: StreamTimes(it.type.lower(), 0, max_length_us) for it in query.events}


def _analyse(query: Query, types: Mapping[str, StreamTimes]) -> None:
    try:
        analyse_relevance(query, types)
    except InvalidFieldError as error:
        errors = FieldErrors()
        for it in error.problems:
            with errors:
                raise error_at(query, it.field, it.problem, it.remedy) from None
        errors.raise_all()
