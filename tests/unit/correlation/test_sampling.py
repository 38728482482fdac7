"""Samples of streams: rates, rejected and filtered records."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from correlation.parsing.intake import Problem
from correlation.reasons import Reason
from correlation.resources.attributes import Attribute
from correlation.resources.filters import read_filter
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from correlation.resources.tokens import Tokens
from correlation.sampling import SampleRecord, StreamSample, read_sample, shorten
from tests.support.messages import assert_names

S = 1_000_000
STREAM = Stream(
    "tags",
    "topic",
    0,
    0,
    partitioning=Partitioning("grid"),
    attributes=(Attribute("level", ("level",), "integer"),),
    tokens=Tokens(("tags",)),
)


def record(second: float, tags: object = ("a",), **more: object) -> SampleRecord:
    listed = [*tags] if isinstance(tags, tuple) else tags
    return SampleRecord({"id": "x", "time": int(second * S), "tags": listed, **more})


def read(*records: SampleRecord, stream: Stream = STREAM) -> StreamSample:
    return read_sample(stream, records)


def test_rate_is_that_of_event_times() -> None:
    # Five events within 8 s, in any order.
    found = read(*map(record, (3, 0, 8, 1, 1)))
    assert (found.rate, found.arrival_rate) == (0.5, None)
    assert found.describe() == {
        "records": 5,
        "events": 5,
        "filtered": 0,
        "rejected": {},
        "problems": [],
        "first_time": 0,
        "last_time": 8 * S,
        "events_per_second": 0.5,
        "arrivals_per_second": None,
    }
    assert list(found.warnings()) == []


def test_rate_of_arrivals_is_that_of_known_timestamps() -> None:
    stamps = (100 * S, None, 101 * S, 102 * S)
    records = [
        record(at)._replace(record_timestamp_us=stamp, offset=at) for at, stamp in enumerate(stamps)
    ]
    found = read(*records)
    assert (found.rate, found.arrival_rate) == (1.0, 1.0)
    assert list(found.warnings()) == []
    fast = [it._replace(record_timestamp_us=100 * S + it.offset * 1000) for it in records]
    (warning,) = read(*fast).warnings()
    assert warning.startswith("tags: ")
    assert_names(warning, "1 events per second", "1000 by Kafka's timestamps")
    assert_names(warning, "event time is used", "rates")


@pytest.mark.parametrize("seconds", [(5,), (5, 5, 5)])
def test_rate_of_less_than_two_times_is_not_known(seconds: tuple[int, ...]) -> None:
    found = read(*map(record, seconds))
    assert found.rate is None
    assert found.describe()["events_per_second"] is None
    (warning,) = found.warnings()
    assert_names(warning, "tags", "rate is not known")


# Nineteen events in 18 s, and one with another time.
STEADY = [*range(19)]


@pytest.mark.parametrize(
    ("seconds", "rate", "outliers"),
    [
        # The inner range is from 1 s to 18 s; times up to 17 s from it count.
        ([*STEADY, 35], 19 / 35, 0),
        ([*STEADY, 36], 1.0, 1),
        ([*STEADY, 4_000_000_000], 1.0, 1),
        ([-17, *STEADY], 19 / 35, 0),
        ([-4_000_000, *STEADY], 1.0, 1),
        # One event in twenty at each end.
        ([-4_000_000, *range(40), 4_000_000], 1.0, 2),
        # Of less than ten events all count, and all if the others have the same time.
        ([*range(8), 4_000], 8 / 4_000, 0),
        ([5] * 19 + [4_000], 19 / 3_995, 0),
    ],
)
def test_times_far_from_the_others_are_left_out_of_the_rate(
    seconds: list[int], rate: float, outliers: int
) -> None:
    found = read(*map(record, seconds))
    assert found.rate == pytest.approx(rate, rel=1e-12)
    warnings = list(found.warnings())
    assert len(warnings) == min(outliers, 1)
    for warning in warnings:
        assert_names(warning, "tags", f"{outliers} of {len(seconds)} events", "left out")


def test_rate_of_a_cut_sample_is_the_sum_of_the_partitions() -> None:
    """Partition 0 has ten events per second, of which 11 were read; partition 1 has one in 10 s."""
    busy = [
        record(99 + at / 10)._replace(offset=at, record_timestamp_us=(at + 2_000) * S)
        for at in range(11)
    ]
    quiet = [
        record(10 * at)._replace(partition=1, offset=at, record_timestamp_us=(at + 2_000) * S)
        for at in range(11)
    ]
    single = record(50)._replace(partition=2, record_timestamp_us=2_000 * S)
    records = [*busy, *quiet, single]
    assert read(*records).rate == pytest.approx(22 / 100)
    cut = read_sample(STREAM, records, is_cut=True)
    assert cut.rate == pytest.approx(10 + 1 / 10)
    assert cut.arrival_rate == pytest.approx(2)
    # The times of each partition are judged alone.
    wrong = record(1_000)._replace(partition=1, offset=11, record_timestamp_us=2_011 * S)
    cut = read_sample(STREAM, [*records, wrong], is_cut=True)
    assert cut.rate == pytest.approx(10 + 1 / 10)
    assert any("1 of 24 events" in it and "left out" in it for it in cut.warnings())
    # Without two times in a partition, the partitions count together.
    ones = [record(at)._replace(partition=at) for at in range(5)]
    assert read_sample(STREAM, ones, is_cut=True).rate == 1.0


def test_rejected_records_are_counted_by_reason() -> None:
    unread = SampleRecord(None, b"{", problem=Problem(Reason.MALFORMED_JSON, "a brace"), offset=3)
    found = read(
        record(0),
        record(1, 7),
        record(2, 8),
        unread,
        record(4, level="high"),
        SampleRecord([]),
        record(9),
    )
    assert (found.records, len(found.events), found.filtered) == (7, 2, 0)
    assert found.rejected == {
        Reason.BAD_TOKENS: 2,
        Reason.MALFORMED_JSON: 1,
        Reason.BAD_ATTRIBUTE: 1,
        Reason.NOT_AN_OBJECT: 1,
    }
    assert_names(found.problems[0], "record 2", "bad_tokens", "field 'tags'", "got a number")
    assert [it.partition(":")[0] for it in found.problems] == [
        f"record {it}" for it in (2, 4, 5, 6)
    ]
    warning = next(found.warnings())
    assert_names(warning, "tags", "5 of 7 records")
    assert_names(
        warning, "(bad_tokens 2, malformed_json 1, bad_attribute 1, not_an_object 1)", "producer"
    )


def test_all_records_may_be_rejected() -> None:
    found = read(SampleRecord({}), SampleRecord(None))
    assert (len(found.events), found.rate) == (0, None)
    assert found.describe()["first_time"] is None


def test_records_that_the_stream_excludes_are_not_events() -> None:
    where = read_filter({"level": {"min": 3}}, STREAM.attributes)
    stream = replace(STREAM, where=where)
    found = read(
        record(0, level=3),
        record(1, level=2),
        record(2, 7, level=1),
        record(3, 7, level=5),
        record(4, level=4),
        stream=stream,
    )
    assert (len(found.events), found.filtered, found.rejected) == (2, 2, {Reason.BAD_TOKENS: 1})
    assert found.rate == 0.25


def test_ids_of_events_without_an_id_are_their_places() -> None:
    value = {"time": 0, "tags": ["a"]}
    found = read(SampleRecord(value, partition=3, offset=7), SampleRecord(value, offset=9))
    assert found.events.id.to_list() == [b"topic-0-9", b"topic-3-7"]
    assert found.events.partition.tolist() == [0, 3]


def test_a_timestamp_that_is_not_known_makes_no_event_future_dated() -> None:
    live = replace(STREAM, clock="live")
    far = record(4_000_000_000)
    assert len(read(far, stream=live).events) == 1
    late = far._replace(record_timestamp_us=S)
    assert read(late, stream=live).rejected == {Reason.FUTURE_DATED: 1}


def test_decimals_of_a_request_are_exact() -> None:
    value = {"time": 5, "tags": ["a"], "level": Decimal("1.5")}
    assert read(SampleRecord(value)).rejected == {Reason.BAD_ATTRIBUTE: 1}


@pytest.mark.parametrize(
    ("number", "short"), [(1 / 3, 0.3333), (123_456.0, 123_500.0), (0.00001234567, 1.235e-5)]
)
def test_estimates_have_four_digits(number: float, short: float) -> None:
    assert shorten(number) == short
