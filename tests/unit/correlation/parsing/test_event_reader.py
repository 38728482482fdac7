"""Conversion of records to events: accepted records, intervals, and reasons of rejection."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from correlation.errors import InvalidFieldError, RejectedEventError
from correlation.parsing.event_reader import compile_mapping
from correlation.reasons import Reason
from correlation.resources.mapping import EventMapping
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from tests.support.messages import assert_names

HOUR = 3_600_000_000
DAY_2013 = 1_356_998_400_000_000  # 2013-01-01T00:00:00Z


def _stream(mapping: EventMapping | None = None, **changes: Any) -> Stream:  # noqa: ANN401 - as Stream
    declared: dict[str, Any] = {
        "max_uncertainty_us": HOUR,
        "max_delay_us": 0,
        "clock": "replay",
    } | changes
    return Stream("s", "s", mapping=mapping or EventMapping(), **declared)


def _time(format: str, *, exact: bool = False, **changes: Any) -> Stream:  # noqa: A002, ANN401 - as EventMapping
    mapping = EventMapping("time", time_path=("t",), format=format, **changes)  # type: ignore[arg-type]
    return _stream(mapping, max_uncertainty_us=0 if exact else HOUR)


@pytest.mark.parametrize(
    ("stream", "text", "interval"),
    [
        (_stream(), '{"earliest": 1, "latest": 5}', (1, 5)),
        (_stream(), '{"earliest": -5, "latest": -5}', (-5, -5)),
        (_stream(), '{"time": 10}', (10, 10)),
        (_stream(), '{"time": 10, "before": 3, "after": "1ms"}', (7, 1010)),
        (
            _stream(),
            '{"earliest": "2013-01-01T00:00:00Z", "latest": "2013-01-01T01:30:00+01:00"}',
            (DAY_2013, DAY_2013 + HOUR // 2),
        ),
        (_time("epoch_s"), '{"t": 17}', (17_000_000, 17_000_000)),
        (_time("epoch_s"), '{"t": 0.1}', (100_000, 100_000)),
        (_time("epoch_s"), '{"t": 0.0000015}', (1, 2)),
        (_time("epoch_ms"), '{"t": 17}', (17_000, 17_000)),
        (_time("epoch_us"), '{"t": 17}', (17, 17)),
        (_time("epoch_ns"), '{"t": 17500}', (17, 18)),
        (_time("epoch_ns"), '{"t": -17500}', (-18, -17)),
        # Exact instants are rounded down, so that equal times stay equal.
        (_time("epoch_ns", exact=True), '{"t": 17500}', (17, 17)),
        (_time("epoch_ns", exact=True), '{"t": -17500}', (-18, -18)),
        (_time("epoch_s", exact=True), '{"t": 0.0000015}', (1, 1)),
        (
            _time("iso8601", exact=True),
            '{"t": "2013-01-01T00:00:00.123456789Z"}',
            (DAY_2013 + 123_456, DAY_2013 + 123_456),
        ),
        (
            _stream(max_uncertainty_us=0),
            '{"time": "2013-01-01T00:00:00.123456789Z"}',
            (DAY_2013 + 123_456, DAY_2013 + 123_456),
        ),
        (
            _stream(max_uncertainty_us=0, histograms=True),
            '{"time": "2013-01-01T00:00:00.123456789Z"}',
            (DAY_2013 + 123_456, DAY_2013 + 123_456),
        ),
        (_stream(max_uncertainty_us=0), '{"earliest": 2.5, "latest": 2.5}', (2, 2)),
        (
            _stream(
                EventMapping("range", earliest_path=("f",), latest_path=("u",), format="epoch_ns"),
                max_uncertainty_us=0,
            ),
            '{"f": 2500, "u": 2500}',
            (2, 2),
        ),
        # A machine that stamps to the minute and rounds down.
        (
            _time("iso8601", after_us=59_999_999),
            '{"t": "2013-01-01T00:05"}',
            (DAY_2013 + 300_000_000, DAY_2013 + 359_999_999),
        ),
        (
            _time("iso8601", timezone="America/New_York"),
            '{"t": "2013-01-01T00:00:00"}',
            (DAY_2013 + 5 * HOUR, DAY_2013 + 5 * HOUR),
        ),
        (
            _time("iso8601"),
            '{"t": "2013-01-01T00:00:00.1234567Z"}',
            (DAY_2013 + 123_456, DAY_2013 + 123_457),
        ),
        (
            _stream(
                EventMapping(
                    "range", earliest_path=("w", "from"), latest_path=("w.to",), format="epoch_s"
                )
            ),
            '{"w": {"from": 1}, "w.to": 2}',
            (1_000_000, 2_000_000),
        ),
    ],
)
def test_a_record_becomes_an_interval(stream: Stream, text: str, interval: tuple[int, int]) -> None:
    event = compile_mapping(stream)(orjson.loads(text), text.encode(), b"k", 0)
    assert (event.earliest, event.latest) == interval


@pytest.mark.parametrize(
    ("mapping", "text", "record_key", "expected"),
    [
        (EventMapping(), '{"id": "e", "key": "f", "time": 0}', b"k", (b"e", b"f")),
        (EventMapping(), '{"id": 12, "key": 7, "time": 0}', None, (b"12", b"7")),
        (EventMapping(), '{"time": 0}', b"k", (None, b"k")),
        (EventMapping(), '{"time": 0, "key": null, "id": null}', b"k", (None, b"k")),
        (
            EventMapping(id_path=("m", "no"), key_path=("m", "at")),
            '{"m": {"no": "n", "at": "ä"}, "time": 0}',
            b"k",
            (b"n", "ä".encode()),
        ),
    ],
)
def test_id_and_key_are_found(
    mapping: EventMapping, text: str, record_key: bytes | None, expected: tuple[object, object]
) -> None:
    event = compile_mapping(_stream(mapping))(orjson.loads(text), text.encode(), record_key, 0)
    assert (event.id, event.key) == expected


def test_a_grid_needs_no_key() -> None:
    stream = _stream(partitioning=Partitioning("grid"))
    assert compile_mapping(stream)({"time": 0}, None, None, 0).key == b""


@pytest.mark.parametrize(
    ("stream", "text", "reason"),
    [
        (_stream(), "[]", Reason.NOT_AN_OBJECT),
        (_stream(), "null", Reason.NOT_AN_OBJECT),
        (_stream(), "{}", Reason.MISSING_FIELD),
        (_stream(), '{"earliest": 1}', Reason.MISSING_FIELD),
        (_stream(), '{"earliest": 1, "latest": null}', Reason.WRONG_TYPE),
        (_stream(), '{"earliest": true, "latest": 2}', Reason.WRONG_TYPE),
        (_stream(), '{"earliest": [], "latest": 2}', Reason.WRONG_TYPE),
        (_stream(), '{"earliest": "soon", "latest": 2}', Reason.NOT_A_TIME),
        (_stream(), '{"earliest": 6, "latest": 5}', Reason.EARLIEST_AFTER_LATEST),
        (_stream(), '{"time": 0, "before": -1}', Reason.WRONG_TYPE),
        (_stream(), '{"time": 0, "before": "soon"}', Reason.WRONG_TYPE),
        (_stream(), '{"time": 0, "before": 3600000001}', Reason.LONGER_THAN_DECLARED),
        (_stream(min_uncertainty_us=2), '{"time": 0, "before": 1}', Reason.SHORTER_THAN_DECLARED),
        (_stream(max_uncertainty_us=0), '{"time": 0.5, "after": 1}', Reason.LONGER_THAN_DECLARED),
        (_stream(), '{"time": 12345678901234567890}', Reason.TIME_OUT_OF_RANGE),
        (_stream(), '{"time": 123456789012345678901234567890}', Reason.TIME_OUT_OF_RANGE),
        (_stream(), '{"time": -1e300}', Reason.TIME_OUT_OF_RANGE),
        (_stream(), '{"time": "9999-99-99"}', Reason.NOT_A_TIME),
        (_stream(), '{"time": 0, "id": {}}', Reason.WRONG_TYPE),
        (_stream(), '{"time": 0, "key": false}', Reason.WRONG_TYPE),
        (_stream(EventMapping(key_path=("a",))), '{"time": 0}', Reason.MISSING_KEY),
        (_time("iso8601"), '{"t": 5}', Reason.WRONG_TYPE),
        (_time("iso8601"), '{"t": "' + "1" * 100_000 + '"}', Reason.NOT_A_TIME),
        (_time("epoch_s"), '{"t": "5"}', Reason.NOT_A_TIME),
        (_time("epoch_s"), '{"u": 5}', Reason.MISSING_FIELD),
        (_stream(clock="live"), '{"time": 1000011}', Reason.FUTURE_DATED),
    ],
)
def test_what_is_no_event_is_rejected_with_its_reason(
    stream: Stream, text: str, reason: Reason
) -> None:
    with pytest.raises(RejectedEventError) as rejected:
        compile_mapping(stream)(orjson.loads(text), text.encode(), b"k", 10)
    assert rejected.value.reason is reason
    assert rejected.value.detail


@pytest.mark.parametrize(
    ("time", "names"),
    [
        ("1795495477000000", ["unit in the mapping"]),
        ("1e300", ["unit in the mapping"]),
        ('"1795495477"', ["'1795495477'", "seconds since 1970"]),
        ('"soon"', ["'soon'", "seconds since 1970"]),
    ],
)
def test_a_time_of_a_wrong_unit_or_type_is_rejected_with_a_remedy(
    time: str, names: list[str]
) -> None:
    stream = _stream(mapping=EventMapping(form="time", time_path=("at",), format="epoch_s"))
    text = f'{{"at": {time}}}'
    with pytest.raises(RejectedEventError) as rejected:
        compile_mapping(stream)(orjson.loads(text), text.encode(), b"k", 10)
    assert_names(rejected.value.detail, *names)
    assert ("quotes" in rejected.value.detail) == (time == '"1795495477"')


@pytest.mark.parametrize(
    ("stream", "text", "field"),
    [
        (_stream(), '{"earliest": 1, "latest": "soon"}', "latest"),
        (_stream(), '{"time": null}', "time"),
        (
            _stream(EventMapping("time", time_path=("heard", "at"), format="epoch_s")),
            '{"heard": {"at": "soon"}}',
            "heard.at",
        ),
        (
            _stream(
                EventMapping("lasting", begin_path=("from",), end_path=("to",)),
                max_uncertainty_us=0,
            ),
            '{"from": "2013-01-01T00:00:00Z", "to": []}',
            "to",
        ),
        (_stream(histograms=True), '{"histogram": [["soon", 1, "1"]]}', "histogram[0].lo"),
        (
            _stream(histograms=True),
            f'{{"histogram": [[0, 1, "1"], [1, {10**40}, "0"]]}}',
            "histogram[1].hi",
        ),
    ],
)
def test_a_value_that_is_no_time_is_rejected_with_its_field(
    stream: Stream, text: str, field: str
) -> None:
    with pytest.raises(RejectedEventError) as rejected:
        compile_mapping(stream)(orjson.loads(text), text.encode(), b"k", 10)
    assert rejected.value.detail.startswith(f"field '{field}': ")


def test_a_record_without_any_key_is_rejected() -> None:
    with pytest.raises(RejectedEventError) as rejected:
        compile_mapping(_stream())({"time": 0}, None, None, 0)
    assert rejected.value.reason is Reason.MISSING_KEY


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"format": "stardate"}, "mapping.format"),
        ({"timezone": "Mars/Olympus"}, "mapping.timezone"),
        ({"timezone": "../../etc/passwd"}, "mapping.timezone"),
        ({"before_us": -1}, "mapping.before"),
        ({"after_us": 2**60}, "mapping.after"),
        ({"time_path": ("a",)}, "mapping.time"),
        ({"form": "time"}, "mapping.time"),
        ({"form": "range", "earliest_path": ("a",)}, "mapping.latest"),
        ({"id_path": ("a", "")}, "mapping.id"),
    ],
)
def test_a_wrong_mapping_names_its_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidFieldError) as invalid:
        EventMapping(**changes)
    assert invalid.value.field == field
    assert invalid.value.remedy


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "Bad Name"}, "name"),
        ({"topic": "no/slash"}, "topic"),
        ({"topic": ".."}, "topic"),
        ({"max_uncertainty_us": -1}, "max_uncertainty"),
        ({"max_uncertainty_us": 2**46}, "max_uncertainty"),
        ({"min_uncertainty_us": 11}, "min_uncertainty"),
        ({"max_delay_us": 2**51}, "max_delay"),
        ({"max_skew_us": -1}, "max_skew"),
        ({"clock": "sundial"}, "clock"),
        ({"mapping": EventMapping("time", time_path=("t",), after_us=11)}, "max_uncertainty"),
    ],
)
def test_a_wrong_stream_names_its_field(changes: dict[str, Any], field: str) -> None:
    declared: dict[str, Any] = {
        "name": "s",
        "topic": "s",
        "max_uncertainty_us": 10,
        "max_delay_us": 0,
    }
    with pytest.raises(InvalidFieldError) as invalid:
        Stream(**(declared | changes))
    assert invalid.value.field == field
