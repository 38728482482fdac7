"""Records given to `explain` are read like in the job, or as canonical events."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from correlation.explaining import Form, GivenRecord, Place, Steps, read_given
from correlation.parsing.event_reader import MappedEvent, compile_id_reader
from correlation.reasons import Reason
from correlation.resources.durations import describe_duration, parse_duration_us
from correlation.resources.histogram import Histogram
from correlation.resources.mapping import EventMapping
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from correlation.resources.template import Template

STAMPED = EventMapping(
    "time", id_path=("mic",), key_path=("site",), time_path=("at",), before_us=5, format="epoch_us"
)
HISTOGRAMS = EventMapping(
    "template", key_path=("key",), detected_path=("at",), template_path=("by",), format="epoch_us"
)
HALVES = Template("t", Histogram.from_buckets([[0, 4, "0.5"], [4, 9, "0.5"]]))
DETECTED = MappedEvent(None, b"k", 6, 15, HALVES.histogram.shape_bytes)
CANONICAL = {"id": "e", "key": "k", "earliest": 10, "latest": 15}
RECORD = {"mic": "m", "site": "k", "at": 15}


def _stream(mapping: EventMapping | None = None, **changes: Any) -> Stream:  # noqa: ANN401 - as Stream
    declared: dict[str, Any] = {
        "max_uncertainty_us": 20,
        "max_delay_us": 3,
        "max_skew_us": 0,
    } | changes
    if mapping is HISTOGRAMS:
        declared["templates"] = (HALVES,)
    return Stream("s", "s", mapping=mapping or EventMapping(), **declared)


@pytest.mark.parametrize(
    ("mapping", "value", "form", "expected"),
    [
        (None, CANONICAL, "record", MappedEvent(b"e", b"k", 10, 15)),
        (STAMPED, RECORD, "record", MappedEvent(b"m", b"k", 10, 15)),
        # Its times are in the fields of a canonical event, which the mapping does not name.
        (STAMPED, CANONICAL, "event", MappedEvent(b"e", b"k", 10, 15)),
        (STAMPED, {**CANONICAL, **RECORD, "at": 18}, "record", MappedEvent(b"m", b"k", 13, 18)),
        (STAMPED, {"time": 15, "before": 1, "key": "k"}, "event", MappedEvent(None, b"k", 14, 15)),
        # Neither: the reason of the record is reported.
        (STAMPED, {"mic": "m", "site": "k"}, "record", Reason.MISSING_FIELD),
        (STAMPED, {"id": "e", "earliest": 10}, "record", Reason.MISSING_FIELD),
        (STAMPED, [1], "record", Reason.NOT_AN_OBJECT),
        # Shapes: canonical ones, and those that the mapping names.
        (HISTOGRAMS, {"key": "k", "at": 15, "by": "t"}, "record", DETECTED),
        (HISTOGRAMS, {"key": "k", "detected": 15, "template": "t"}, "event", DETECTED),
        (
            HISTOGRAMS,
            {"key": "k", "detected": 15, "template": "u"},
            "event",
            Reason.UNKNOWN_TEMPLATE,
        ),
        (STAMPED, {"key": "k", "histogram": []}, "event", Reason.UNDECLARED_HISTOGRAM),
        # A mapping of names only: times are canonical, names are not.
        (EventMapping(key_path=("site",)), CANONICAL, "record", Reason.MISSING_KEY),
    ],
)
def test_record_is_told_from_canonical_event(
    mapping: EventMapping | None, value: object, form: str, expected: object
) -> None:
    read = read_given(_stream(mapping), GivenRecord(value))
    assert read.form == form
    assert (read.event or read.reason) == expected
    assert bool(read.detail) == (read.event is None)


@pytest.mark.parametrize(
    ("mapping", "value", "form", "expected"),
    [
        (STAMPED, CANONICAL, "record", Reason.MISSING_FIELD),
        (STAMPED, {**CANONICAL, **RECORD, "at": 18}, "event", MappedEvent(b"e", b"k", 10, 15)),
        (EventMapping(key_path=("site",)), CANONICAL, "event", MappedEvent(b"e", b"k", 10, 15)),
    ],
)
def test_form_that_is_named_wins(
    mapping: EventMapping, value: object, form: Form, expected: object
) -> None:
    read = read_given(_stream(mapping), GivenRecord(value, form=form))
    assert (read.form, read.event or read.reason) == (form, expected)


def test_contract_is_that_of_the_stream_whatever_the_form() -> None:
    for mapping in (None, STAMPED):
        long = GivenRecord({"id": "e", "key": "k", "earliest": 0, "latest": 21})
        assert read_given(_stream(mapping), long).reason == Reason.LONGER_THAN_DECLARED


def test_arrival_counts_where_it_is_known() -> None:
    stream = _stream()
    assert read_given(stream, GivenRecord(CANONICAL)).delay_us is None
    assert read_given(stream, GivenRecord(CANONICAL, record_timestamp_us=17)).delay_us == 2
    early = read_given(stream, GivenRecord(CANONICAL, record_timestamp_us=9))
    assert (early.reason, early.delay_us) == (Reason.FUTURE_DATED, None)
    recorded = _stream(clock="replay")
    assert read_given(recorded, GivenRecord(CANONICAL, record_timestamp_us=9)).delay_us is None


def test_record_without_an_id_is_called_by_its_place() -> None:
    anonymous = {"key": "k", "earliest": 10, "latest": 15}
    found = read_given(_stream(), GivenRecord(anonymous, place=Place("t", 3, 7))).describe()
    assert (found["id"], found["place"]) == ("t-3-7", {"topic": "t", "partition": 3, "offset": 7})
    assert read_given(_stream(), GivenRecord(anonymous)).describe()["id"] is None


def test_key_is_that_of_the_record_and_none_in_a_grid() -> None:
    anonymous = GivenRecord({"earliest": 10, "latest": 15}, record_key=b"\xff")
    assert read_given(_stream(), anonymous).describe()["key"] == "\\xff"
    grid = _stream(partitioning=Partitioning("grid"))
    assert read_given(grid, anonymous).describe()["key"] is None


def test_histogram_of_an_event_is_shown_if_its_time_is_not_uniform() -> None:
    detected = GivenRecord({"key": "k", "at": 15, "by": "t"})
    assert read_given(_stream(HISTOGRAMS), detected).describe()["histogram"] == [
        {"lo": 6, "hi": 10, "p": "0.5"},
        {"lo": 10, "hi": 15, "p": "0.5"},
    ]
    assert "histogram" not in read_given(_stream(), GivenRecord(CANONICAL)).describe()
    assert "histogram" not in read_given(_stream(), GivenRecord({"id": "e"})).describe()


def test_steps_end_at_the_first_that_fails() -> None:
    steps = Steps(("one", "two", "three"))
    steps.take(passed=True, detail="fine")
    assert steps.failed is None
    steps.take(passed=False, detail="wrong")
    steps.take(passed=False, detail="not looked at")
    assert steps.describe() == {
        "verdict": "not_satisfied",
        "failed_step": "two",
        "explanation": "wrong",
        "steps": [
            {"step": "one", "passed": True, "detail": "fine"},
            {"step": "two", "passed": False, "detail": "wrong"},
            {"step": "three", "passed": None, "detail": None},
        ],
    }


@pytest.mark.parametrize(
    ("mapping", "value", "expected"),
    [
        (EventMapping(), {"id": 7}, b"7"),
        (EventMapping(), {"id": "x", "earliest": "never"}, b"x"),
        (EventMapping(), {"id": [7]}, None),
        (EventMapping(), {"id": None}, None),
        (EventMapping(), "x", None),
        (EventMapping(id_path=("a", "b")), {"a": {"b": "x"}}, b"x"),
        (EventMapping("time", time_path=("t",)), {"id": "x", "t": 1}, None),
    ],
)
def test_id_is_read_whatever_else_is_wrong(
    mapping: EventMapping, value: object, expected: bytes | None
) -> None:
    assert compile_id_reader(mapping)(value) == expected


@pytest.mark.parametrize(
    ("duration_us", "text"),
    [
        (0, "0s"),
        (1, "1us"),
        (-1_500, "-1.5ms"),
        (340_000, "340ms"),
        (1_234_567, "1.234567s"),
        (90_000_000, "1.5min"),
        (3_598_800_000, "3598.8s"),
        (100_000_000, "100s"),
        (3_600_000_000, "1h"),
        (-86_400_000_000, "-1d"),
        (2**60, "1152921504606.846976s"),
    ],
)
def test_duration_for_a_person_is_exact(duration_us: int, text: str) -> None:
    assert describe_duration(duration_us) == text
    assert parse_duration_us(text) == duration_us


def test_times_of_a_given_record_are_exact() -> None:
    text = b'{"site": "k", "at": 17179869184123456.5000000000000000001}'
    stream = _stream(STAMPED, max_uncertainty_us=30, clock="replay")
    for given in (
        GivenRecord({"site": "k", "at": 17179869184123456.0}, text=text),
        GivenRecord({"site": "k", "at": Decimal("17179869184123456.5000000000000000001")}),
    ):
        event = read_given(stream, given).event
        assert event is not None
        assert (event.earliest, event.latest) == (17179869184123451, 17179869184123457)
