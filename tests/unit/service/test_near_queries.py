"""Texts and JSON forms near the grammar: every answer names a place, and none is a server error."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import httpx
from hypothesis import given
from hypothesis import strategies as st

from correlation.event_query.language.documents import query_to_document
from correlation.event_query.language.writer import write_query
from service.app import create_app
from service.settings import Settings
from tests.unit.correlation.event_query.strategies import queries

# The lifespan does not begin: nothing is registered, so valid queries name unknown streams.
APP = create_app(Settings(bootstrap="127.0.0.1:1"))
WORDS = st.sampled_from(
    ["not", "(", ")", "{", "}", '"', "--", "or", "END", "min(", "1 h", "=", "<", ",", "é", "\x00"]
)
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=3),
    st.just([]),
    st.just({}),
    st.just({"and": [{"or": []}]}),
)


@st.composite
def near_texts(draw: st.DrawFn) -> str:
    """Return the text of a query with a part that is removed, repeated or replaced."""
    text = write_query(draw(queries()))
    for _ in range(draw(st.integers(0, 3))):
        first = draw(st.integers(0, len(text)))
        last = draw(st.integers(first, min(len(text), first + 12)))
        part = draw(st.just("") | st.just(text[first:last] * 2) | WORDS)
        text = text[:first] + part + text[last:]
    return text


@st.composite
def near_documents(draw: st.DrawFn) -> dict[str, Any]:
    """Return the JSON form of a query with a value that is removed or replaced."""
    document: dict[str, Any] = copy.deepcopy(query_to_document(draw(queries())))
    for _ in range(draw(st.integers(0, 2))):
        places = list(_places(document))
        holder, key = draw(st.sampled_from(places)) if places else (document, "where")
        if draw(st.booleans()):
            holder[key] = draw(VALUES)
        elif not isinstance(holder, dict) or key in holder:
            del holder[key]
    return document


def _places(value: Any) -> list[tuple[Any, Any]]:  # noqa: ANN401 - of JSON
    """Return all containers and keys of a document."""
    if not isinstance(value, dict | list):
        return []
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    return [(value, key) for key in keys] + [it for key in keys for it in _places(value[key])]


def problems_of(query: object) -> list[dict[str, Any]]:
    """Return the problems of a query in the answers of PUT and validate, which are equal.

    Another field is not valid: a valid document would be written to Kafka.
    """
    document = {"kind": "event_query", "query": query, "threshold": 7}

    async def asked() -> tuple[httpx.Response, httpx.Response]:
        transport = httpx.ASGITransport(APP, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (
                await client.put("/v1/conditions/near", json=document),
                await client.post("/v1/conditions:validate", json={"condition": document}),
            )

    put, validated = asyncio.run(asked())
    assert (put.status_code, validated.status_code) == (422, 200), (put.text, validated.text)
    listed: list[dict[str, Any]] = put.json()["errors"]
    assert validated.json()["errors"] == listed
    found = [it for it in listed if it["field"] != "threshold"]
    assert len(found) == len(listed) - 1 > 0
    assert all(it["problem"] and it["remedy"] for it in found)
    return found


@given(near_texts())
def test_a_text_near_the_grammar_is_refused_with_a_place(text: str) -> None:
    for it in problems_of(text):
        assert it["field"].startswith("types.") or it["place"]["excerpt"].endswith("^"), it


@given(near_documents())
def test_a_document_near_the_json_form_is_refused_with_a_path(document: dict[str, Any]) -> None:
    for it in problems_of(document):
        assert it["field"].startswith(("types.", "query.")), it
