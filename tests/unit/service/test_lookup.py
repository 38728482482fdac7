"""The number of concurrent look-ups is limited; tests/rest covers look-ups on a real Kafka."""

from __future__ import annotations

import pytest

from correlation.explaining import GivenRecord
from correlation.resources.mapping import EventMapping
from service.errors import NotReadyError
from service.lookup import Finding, RecordFinder, Span, wanted_by_id
from service.settings import Settings


def test_lookup_waits_no_longer_than_its_limit_for_others() -> None:
    finder = RecordFinder(Settings(explain_seconds=0.01))
    running = finder._running  # noqa: SLF001 - as if two lookups were running
    assert running.acquire(blocking=False)
    assert running.acquire(blocking=False)
    wanted = {"a": wanted_by_id("events", EventMapping(), b"x")}
    with pytest.raises(NotReadyError) as told:
        finder.find(wanted, Span())
    assert told.value.problems[0].remedy == "send the event itself"
    assert not running.acquire(blocking=False)


def test_few_lookups_wait_so_that_other_requests_have_threads() -> None:
    finder = RecordFinder(Settings(explain_seconds=300))
    places = finder._places  # noqa: SLF001 - as if lookups were running and waiting
    assert sum(places.acquire(blocking=False) for _ in range(100)) == 8
    with pytest.raises(NotReadyError):
        finder.find({"a": wanted_by_id("events", EventMapping(), b"x")}, Span())


def test_the_newest_records_are_kept_newest_first() -> None:
    finding = Finding(most=3)
    for number, timestamp_us in enumerate([5, 9, 1, 9, 7]):
        finding.add(GivenRecord(number, record_timestamp_us=timestamp_us))
    assert [it.value for it in finding.records] == [3, 1, 4]
    assert finding.record is finding.records[0]
    assert finding.matches == 5
