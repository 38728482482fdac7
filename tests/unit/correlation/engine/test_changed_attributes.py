"""Attributes of buffered events when the declaration of their stream changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.columns import Column, DictionaryColumn
from correlation.buffers.events import Events
from correlation.buffers.segment import Segment
from correlation.engine.widening import fit_attributes
from correlation.resources.attributes import (
    ATTRIBUTE_TYPES,
    Attribute,
    AttributeType,
    column_name,
    encode_value,
)
from correlation.resources.streams import Stream

STREAM = Stream("s", "s", 0, 0)
Row = tuple[str, str | None]


def events(rows: list[Row], *, declared: bool, first: int = 0) -> Events:
    """Return events with a rule, which is buffered if it is declared."""
    made = Events.from_rows(
        "s",
        [
            (key.encode(), f"{first + place}".encode(), place % 3, place % 3, 0, first + place, 0)
            for place, (key, _) in enumerate(rows)
        ],
    )
    if not declared:
        return made
    rules = [None if rule is None else encode_value(rule) for _, rule in rows]
    return replace(made, columns={column_name("rule"): DictionaryColumn.from_list(rules)})


def rules_by_id(parts: Events | Segment) -> dict[bytes, bytes | None]:
    column = parts.columns.get(column_name("rule"))
    rules: list[bytes | None] = [None] * len(parts)
    if isinstance(column, DictionaryColumn):
        rules = column.to_list()
    return dict(zip(parts.id.to_list(), rules, strict=True))


ROWS = st.lists(
    st.tuples(st.sampled_from("kl"), st.sampled_from(["a", "b", "", None])), min_size=1, max_size=6
)


@given(parts=st.lists(st.tuples(ROWS, st.booleans()), min_size=1, max_size=4))
def test_parts_with_and_without_a_column_are_joined(parts: list[tuple[list[Row], bool]]) -> None:
    made = []
    expected: dict[bytes, bytes | None] = {}
    for number, (rows, declared) in enumerate(parts):
        made.append(events(rows, declared=declared, first=100 * number))
        for place, (_, rule) in enumerate(rows):
            stored = None if rule is None or not declared else encode_value(rule)
            expected[f"{100 * number + place}".encode()] = stored
    joined = Events.from_bytes(Events.concat(made).to_bytes())
    assert rules_by_id(joined) == expected
    whole, _ = Segment.from_events(joined, np.zeros(len(joined), np.bool_))
    assert rules_by_id(Segment.from_bytes(whole.to_bytes())) == expected
    segments = [Segment.from_events(it, np.zeros(len(it), np.bool_))[0] for it in made]
    assert rules_by_id(Segment.join(segments)[0]) == expected
    merged = Segment.merge(segments, 1)
    kept = {
        name
        for part in segments
        for name, latest in zip(part.id.to_list(), part.latest.tolist(), strict=True)
        if latest >= 1
    }
    found = {} if merged is None else rules_by_id(Segment.from_bytes(merged.to_bytes()))
    assert found == {name: rule for name, rule in expected.items() if name in kept}


@pytest.mark.parametrize(
    ("stored", "kind", "now"),
    [
        ([b'"a"', None, b'"3"'], "string", [b'"a"', None, b'"3"']),
        ([b'"a"', None, b'"3"'], "integer", [None] * 3),
        ([b"3", b"3.5", None, b"1e+16"], "integer", [b"3", None, None, b"10000000000000000"]),
        ([b"3", b"9007199254740993"], "number", [b"3", b"9007199254740992"]),
        ([b"true", b"false"], "number", [None, None]),
        ([b"1", b"0"], "boolean", [None, None]),
    ],
)
def test_buffered_values_that_do_not_fit_a_new_type_are_missing(
    stored: list[bytes | None], kind: AttributeType, now: list[bytes | None]
) -> None:
    made = events([("k", None)] * len(stored), declared=False)
    other = np.arange(len(stored))
    columns: dict[str, Column] = {column_name("x"): DictionaryColumn.from_list(stored)}
    columns |= {"other": other, column_name("gone"): DictionaryColumn.from_list(stored)}
    segment, order = Segment.from_events(
        replace(made, columns=columns), np.zeros(len(stored), np.bool_)
    )
    stream = replace(STREAM, attributes=(Attribute("x", ("x",), kind), Attribute("y", ("y",))))
    fitted = fit_attributes(stream, segment)
    column = fitted.columns[column_name("x")]
    assert isinstance(column, DictionaryColumn)
    assert column.to_list() == [now[it] for it in order]
    # Segments lose attributes that are no longer declared, and keep all other columns.
    assert set(fitted.columns) == {column_name("x"), "other"}
    assert fitted.id.to_list() == segment.id.to_list()


@pytest.mark.parametrize("kind", ATTRIBUTE_TYPES)
def test_a_segment_without_attributes_is_not_copied(kind: AttributeType) -> None:
    segment, _ = Segment.from_events(events([("k", None)], declared=False), np.zeros(1, np.bool_))
    stream = replace(STREAM, attributes=(Attribute("x", ("x",), kind),))
    assert fit_attributes(stream, segment) is segment
