"""The fold of the config topic that the service, the job and the command line share."""

from __future__ import annotations

import json

import pytest

from correlation.config_records import MAX_LISTED, Unreadable, list_unreadable
from correlation.errors import UnknownRecordVersionError
from correlation.newest_records import NewestRecords, deletion_headers
from correlation.resources.records import Resource
from tests.support.messages import assert_names, naming

STREAM = {"topic": "t", "max_uncertainty_us": 200_000, "max_delay_us": 1_000_000}
RESOURCE = Resource("stream", "x", 37, 0, STREAM)
RECORD = json.dumps(RESOURCE.to_record()).encode()
NEWER = naming("offset 7", "stream/x", "version 2")


def test_take_returns_what_is_in_force_or_why_nothing_is() -> None:
    newest = NewestRecords(json.loads)
    assert newest.take(0, b"stream/x", RECORD) == RESOURCE
    found = newest.take(1, b"stream/x", b"[]")
    assert isinstance(found, Unreadable)
    assert (found.key, found.offset) == (b"stream/x", 1)
    assert_names(found.problem, "not a JSON object")
    assert newest.unreadable() == [found]
    assert newest.take(2, b"stream/x", None) is None
    assert newest.unreadable() == []


def test_record_of_a_newer_version_stops_with_its_offset_and_key() -> None:
    newest = NewestRecords(json.loads)
    newest.take(7, b"stream/x", b'{"v":2}')
    assert [it.offset for it in newest.newer()] == [7]
    with pytest.raises(UnknownRecordVersionError, match=NEWER):
        newest.follow()
    newest.take(8, b"stream/x", None)
    newest.follow()
    with pytest.raises(UnknownRecordVersionError, match=NEWER):
        newest.take(7, b"stream/x", b'{"v":2}')


def test_tombstone_of_a_repair_remembers_versions_above_the_offsets() -> None:
    """Also once compaction has left nothing but the tombstone."""
    newest = NewestRecords(json.loads)
    newest.take(3, b"stream/x", RECORD)
    newest.take(9, b"stream/x", b"[]")
    headers = deletion_headers(newest.version(b"stream/x"))
    compacted = NewestRecords(json.loads)
    compacted.take(10, b"stream/x", None, headers)
    assert compacted.version(b"stream/x") == 37


def test_list_of_unreadable_records_is_bounded() -> None:
    records = [Unreadable(b"k" * 10**6, offset, "p" * 10**6) for offset in range(MAX_LISTED + 5)]
    found = list_unreadable(records)
    assert [it["offset"] for it in found] == list(range(MAX_LISTED))
    assert len(json.dumps(found)) < 20_000
