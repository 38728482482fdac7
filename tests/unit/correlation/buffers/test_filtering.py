"""Chosen events of a segment: rows, sharing and lifetime."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from correlation.buffers.buffer import StreamBuffer
from correlation.buffers.columns import DictionaryColumn
from correlation.buffers.events import Events
from correlation.buffers.filtering import (
    choose_buffered,
    choose_events,
    matches_rows,
)
from correlation.buffers.segment import Segment
from correlation.resources.filters import Filter, read_filter
from tests.support.filters import DECLARED, columns

RULES = ["A", "B", None, "A"]


def wanted(rule: object) -> Filter:
    return read_filter({"rule": rule}, DECLARED)


def segment_of(rules: list[Any]) -> Segment:
    rows = [(b"k", b"%d" % i, i, i, 0, i, i) for i in range(len(rules))]
    attributes = columns([{"rule": rule} for rule in rules])
    events = replace(Events.from_rows("x", rows), columns=attributes)
    return Segment.from_events(events, np.zeros(len(rules), np.bool_))[0]


def test_chosen_events_keep_their_order_and_attributes() -> None:
    chosen = choose_events(segment_of(RULES), frozenset({wanted("A")}))
    assert chosen.rows.tolist() == [0, 3]
    assert chosen.segment is not None
    assert chosen.segment.id.to_list() == [b"0", b"3"]
    column = chosen.segment.columns["attribute.rule"]
    assert isinstance(column, DictionaryColumn)
    assert column.to_list() == [b'"A"', b'"A"']


def test_an_event_is_chosen_if_one_filter_matches() -> None:
    either = frozenset({wanted("A"), wanted("B")})
    assert choose_events(segment_of(RULES), either).rows.tolist() == [0, 1, 3]
    assert choose_events(segment_of(RULES), frozenset({wanted("C")})).segment is None


def test_a_segment_of_which_all_events_match_is_not_copied() -> None:
    segment = segment_of(["A", "A"])
    chosen = choose_events(segment, frozenset({wanted("A")}))
    assert chosen.segment is segment
    assert chosen.rows.tolist() == [0, 1]


def test_equal_filters_share_the_chosen_events() -> None:
    segment = segment_of(RULES)
    first, second = (choose_events(segment, frozenset({wanted(["A", "B"])})) for _ in range(2))
    assert first.segment is second.segment


@pytest.mark.parametrize("rule", ["A", {"not": "C"}, "C"])
def test_chosen_events_are_freed_with_their_segment(rule: object) -> None:
    for rules in (RULES, ["A", "A"]):
        segment = segment_of(rules)
        choose_events(segment, frozenset({wanted(rule)}))
        alive = weakref.ref(segment)
        del segment
        gc.collect()
        assert alive() is None


def test_rows_match_as_their_events_do() -> None:
    segment = segment_of(RULES)
    rows = np.array([3, 1, 1, 2])
    assert matches_rows(segment, rows, wanted("A")).tolist() == [True, False, False, False]
    assert matches_rows(segment, rows, None).all()


def test_buffers_keep_numbers_and_bounds() -> None:
    buffer = StreamBuffer([(4, segment_of(["C"])), (7, segment_of(RULES))], 9, 2)
    chosen = choose_buffered(buffer, frozenset({wanted("B")}))
    assert [(number, it.id.to_list()) for number, it in chosen.segments] == [(7, [b"1"])]
    assert (chosen.max_latest, chosen.forgotten_below) == (9, 2)
