"""Event queries as documents: from the values of a document to an `EventQueryCondition`.

The stored document contains the query as the user wrote it: text unchanged, the JSON form in its
canonical form. Text is thus the only source of its condition, is returned by `GET` as it was `PUT`,
and an unchanged document is recognised by comparing strings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from correlation.condition_kind import NamedStream
from correlation.errors import FieldErrors, InvalidFieldError
from correlation.event_query.condition import EventQueryCondition
from correlation.event_query.language.document_reader import query_from_document
from correlation.event_query.language.documents import query_to_document
from correlation.event_query.language.errors import error_at
from correlation.event_query.language.parser import parse_query
from correlation.event_query.language.streams import stream_of, streams_of
from correlation.event_query.query import Query
from correlation.resources.checks import check_name, check_topic
from correlation.resources.records import require
from correlation.resources.thresholds import read_threshold

# Parsed texts that are kept: conditions are read from their records many times.
_CACHED = 256


def stored_query(value: object) -> object:
    """Return the stored form of a query: its text, or its canonical JSON form.

    Parameters
    ----------
    value : object
        Text, or JSON form with numbers of any type.

    Raises
    ------
    InvalidFieldError
        The query is not valid. The field is `query` or a path inside the JSON form.
    """
    query = read_query(value)
    return value if isinstance(value, str) else query_to_document(query)


def read_query(value: object) -> Query:
    """Return the query of its text or of its JSON form.

    Raises
    ------
    InvalidFieldError
        The query is not valid.
    """
    return _parse_text(value) if isinstance(value, str) else query_from_document(value)


def build_condition(name: str, version: int, values: Mapping[str, Any]) -> EventQueryCondition:
    """Build a condition from the values of its document.

    Parameters
    ----------
    name, version
        Identify the condition.
    values : mapping
        The normalised document. A missing field is an error; the other fields are still checked.

    Raises
    ------
    InvalidFieldError
        A field is missing or not valid; the error names every such field and its remedy.
    """
    types: Mapping[str, str] = values.get("types") or {}
    threshold, output_topic = values.get("threshold"), values.get("output_topic")
    errors = FieldErrors()
    with errors:
        check_name(name)
    with errors:
        query = read_query(require(values, "query"))
        streams_of(query, types)
    with errors:
        if threshold is not None:
            threshold = read_threshold(threshold)
    with errors:
        if output_topic is not None:
            check_topic(output_topic, "output_topic")
    errors.raise_all()
    return EventQueryCondition(name, version, query, dict(types), threshold, output_topic)


def named_streams(values: Mapping[str, Any]) -> Iterator[NamedStream]:
    """Yield the stream of each event type, with the field that names it, as far as it is valid."""
    given = values.get("types")
    types = given if isinstance(given, Mapping) else {}
    types = {name: stream for name, stream in types.items() if isinstance(stream, str)}
    try:
        query = read_query(values.get("query"))
    except InvalidFieldError:
        return
    seen: set[str] = set()
    for number, event in enumerate(query.events):
        if event.type in seen:
            continue
        seen.add(event.type)
        with suppress(InvalidFieldError):
            stream = stream_of(event.type, types)
            if event.type in types:
                yield NamedStream(f"types.{event.type}", stream)
            else:
                at = error_at(query, f"events[{number}]", f"event {event.alias}", "")
                yield NamedStream(at.field, stream, at.problem, at.place)


@lru_cache(maxsize=_CACHED)
def _parse_text(text: str) -> Query:
    return parse_query(text)
