"""Text and JSON preserve every query, with the types of its constants."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.errors import InvalidFieldError
from correlation.event_query.language.document_reader import query_from_document
from correlation.event_query.language.documents import query_to_document
from correlation.event_query.language.errors import QueryError
from correlation.event_query.language.normal import normal_query
from correlation.event_query.language.parser import parse_query
from correlation.event_query.language.writer import write_query
from correlation.event_query.query import Query
from tests.unit.correlation.event_query.strategies import (
    JSON,
    WORDS,
    changed_documents,
    changed_texts,
    queries,
)


@given(queries())
def test_text_is_read_back(query: Query) -> None:
    # repr: True and 1 are equal.
    text = write_query(query)
    assert repr(parse_query(text)) == repr(query)
    assert write_query(parse_query(text)) == text


@given(queries())
def test_document_is_read_back_through_json(query: Query) -> None:
    document = query_to_document(query)
    assert repr(query_from_document(json.loads(json.dumps(document)))) == repr(query)


@given(queries())
def test_normal_form_is_kept(query: Query) -> None:
    assert repr(normal_query(query)) == repr(query)


@given(st.lists(WORDS).map(" ".join) | st.lists(WORDS).map("".join) | st.text())
def test_any_text_is_a_query_or_a_query_error(text: str) -> None:
    _parse_or_refuse(text)


@given(changed_texts())
def test_any_change_of_a_query_is_a_query_or_a_query_error(text: str) -> None:
    _parse_or_refuse(text)


@given(JSON)
def test_any_document_is_a_query_or_an_invalid_field(document: object) -> None:
    with pytest.raises(InvalidFieldError):
        query_from_document(document)


@given(changed_documents())
def test_any_change_of_a_document_is_a_query_or_an_invalid_field(document: object) -> None:
    with suppress(InvalidFieldError):
        query_from_document(document)


def _parse_or_refuse(text: str) -> None:
    """Check that an input is a query, or that its errors have places."""
    try:
        query = parse_query(text)
    except QueryError as error:
        for problem in error.problems:
            assert isinstance(problem, QueryError)
            lines = text.split("\n")
            assert 1 <= problem.line <= len(lines)
            assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1
            assert problem.excerpt.endswith("^")
            assert problem.excerpt.count("\n") == 1
            str(problem).encode()
    else:
        assert parse_query(write_query(query)) == query
