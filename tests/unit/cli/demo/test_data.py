"""Flights of the demo: streams that share a topic, and flights that are observed for a day."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np
import orjson
import pytest
from pydantic import TypeAdapter

from cli.demo.data import load_events
from cli.demo.events import DemoEvent
from cli.demo.resources import STREAMS
from correlation.parsing.stream_reader import StreamReader
from correlation.resources.records import stream_from_document
from correlation.resources.streams import Stream
from service.documents.models import StreamDocument

DAYS = 3
END = datetime(2013, 1, 1 + DAYS, tzinfo=UTC)


@pytest.fixture(scope="module")
def events() -> list[DemoEvent]:
    return load_events(DAYS)


def _stream(name: str) -> Stream:
    document = TypeAdapter(StreamDocument).validate_python(STREAMS[name])
    return stream_from_document(name, document.normalised())


def _records(events: list[DemoEvent], topic: str) -> list[dict[str, object]]:
    return [orjson.loads(event.value) for event in events if event.topic == topic]


def test_every_record_is_sent_once_and_in_order(events: list[DemoEvent]) -> None:
    topics = {it["topic"] for it in STREAMS.values()}
    assert {event.topic for event in events} == topics - {"messages"}
    assert set(Counter((event.topic, event.id) for event in events).values()) == {1}
    assert [it.latest_us for it in events] == sorted(it.latest_us for it in events)


def test_both_streams_of_departures_read_their_part_of_the_topic(events: list[DemoEvent]) -> None:
    records = _records(events, "departures")
    delayed = [it for it in records if int(str(it["delay_minutes"])) > 0]
    assert 0 < len(delayed) < len(records)
    for name, expected in (("departures", delayed), ("all-departures", records)):
        intake = StreamReader(_stream(name)).begin(0)
        for row, record in enumerate(records):
            intake.add(row, record, None, None, 0)
        assert not list(intake.settle(lambda rows: (np.array(rows), np.array(rows))))
        assert [records[row] for row in intake.rows] == expected


def test_cancelled_flights_are_observed_for_a_day(events: list[DemoEvent]) -> None:
    scheduled = [
        datetime.fromisoformat(str(it["scheduled"])) for it in _records(events, "cancellations")
    ]
    assert scheduled
    assert max(scheduled) < END - timedelta(days=1)
    assert all(it["tail"] for it in _records(events, "cancellations"))
    departed = [
        datetime.fromisoformat(str(it["departed"])) for it in _records(events, "departures")
    ]
    assert any(END - timedelta(hours=1) < it < END for it in departed)
