"""Records of streams with attributes, a filter, or events that last, read for an explanation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from correlation.explaining import GivenRecord, Place, describe_delay, read_given
from correlation.parsing.event_reader import MappedEvent
from correlation.resources.records import stream_from_document
from tests.support.messages import assert_names

DOORS = stream_from_document(
    "doors",
    {
        "topic": "t",
        "max_delay_us": 0,
        "clock": "replay",
        "mapping": {"id": "n", "key": "room", "begin": "from", "end": "to", "format": "epoch_us"},
        "attributes": {
            "rule": "alert.rule",
            "level": {"path": "level", "type": "integer"},
            "at": "$offset",
        },
        "where": {"rule": "a", "level": {"min": 2}},
    },
)
RECORD = {"n": 1, "room": "k", "from": 3, "to": 9, "alert": {"rule": "a"}, "level": 2}
# As alarms contain the event.
EVENT = {
    "id": "1",
    "key": "k",
    "begin": 3,
    "end": 9,
    "attributes": {"rule": "a", "level": 2, "at": 17},
}
PLACE = Place("t", 0, 17)


@pytest.mark.parametrize(
    ("value", "place", "form"), [(RECORD, PLACE, "record"), (EVENT, None, "event")]
)
def test_a_record_and_the_event_of_an_alarm_are_read_alike(
    value: dict[str, Any], place: Place | None, form: str
) -> None:
    found = read_given(DOORS, GivenRecord(value, place=place))
    assert (found.event, found.form, found.breach) == (MappedEvent(b"1", b"k", 3, 9), form, "")
    assert found.describe()["attributes"] == {"rule": "a", "level": 2, "at": 17}


def test_an_event_that_lasts_has_begin_and_end_and_can_be_sent_back() -> None:
    described = read_given(DOORS, GivenRecord(RECORD, place=PLACE)).describe()
    assert (described["begin"], described["end"], described["length_us"]) == (3, 9, 6)
    assert not {"earliest", "latest"} & set(described)
    assert read_given(DOORS, GivenRecord(described)).event == MappedEvent(b"1", b"k", 3, 9)
    rejected = read_given(DOORS, GivenRecord(RECORD | {"to": 1})).describe()
    assert (rejected["begin"], rejected["end"], rejected["length_us"]) == (None, None, None)


def test_delay_of_an_event_that_lasts_counts_from_its_end() -> None:
    live = replace(DOORS, clock="live", max_delay_us=5)
    read = read_given(live, GivenRecord(RECORD, record_timestamp_us=15))
    (note,) = describe_delay("v", read)
    assert_names(note, "v", "6us after its end", "max_delay is 5us")
    assert describe_delay("v", read_given(live, GivenRecord(RECORD, record_timestamp_us=14))) == []


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"level": 1}, ["not an event", "where.level"]),
        ({"alert": None, "from": None}, ["not an event", "where.rule"]),
        ({"level": "high", "alert": {"rule": "b"}}, ["not an event", "where.rule"]),
        ({"level": "high"}, ["bad_attribute", "level", "integer of 64 bits", "a string"]),
        ({"to": 1}, ["begin_after_end", "2 us after end"]),
    ],
)
def test_a_record_that_is_no_event_is_explained(changes: dict[str, Any], names: list[str]) -> None:
    found = read_given(DOORS, GivenRecord(RECORD | changes, place=PLACE))
    assert found.event is None
    assert_names(found.breach, "doors", *names)
