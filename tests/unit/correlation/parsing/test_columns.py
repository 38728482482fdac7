"""Columns against single records: the same events, rejections and counts, whatever the records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.columns import Int64s
from correlation.errors import RejectedEventError
from correlation.limits import TIME_LIMIT_US
from correlation.parsing.intake import Intake, Problem, parse_records, parse_values
from correlation.parsing.records import Records
from correlation.parsing.stream_reader import StreamReader
from correlation.resources.histogram import Histogram
from correlation.resources.mapping import EventMapping
from correlation.resources.partitioning import Partitioning
from correlation.resources.records import stream_from_document
from correlation.resources.streams import Stream
from correlation.resources.template import Template

MAX_BYTES = 3_000
LOADS: tuple[Callable[[bytes], object], ...] = (orjson.loads, json.loads)
GEOPHONE = Template("geophone", Histogram.from_buckets([[0, 20, "0.4"], [20, 40, "0.6"]]))
EXACT = Template("exact", Histogram.from_interval(0, 0))
ATTRIBUTES = {
    "area": "area",
    "level": {"path": "at.level", "type": "integer"},
    "heat": {"path": "heat", "type": "number"},
    "wet": {"path": "wet", "type": "boolean"},
    "offset": "$offset",
    "arrived": "$timestamp",
    "topic": "$topic",
    "partition": "$partition",
}
FIELDS: dict[str, Any] = {"id_path": ("at", "id"), "key_path": ("room",)}
RANGE: dict[str, Any] = {"earliest_path": ("earliest",), "latest_path": ("latest",)}
LASTING: dict[str, Any] = {"begin_path": ("earliest",), "end_path": ("latest",)}
TIME: dict[str, Any] = {"time_path": ("time",)}
# Fields of `Stream`, and documents of attributes, filters and tokens.
STREAMS: Mapping[str, Mapping[str, Any]] = {
    "canonical": {},
    "recorded": {"clock": "replay"},
    "exact": {"max_uncertainty_us": 0},
    "long": {"min_uncertainty_us": 10, "max_skew_us": 0},
    "grid": {"partitioning": Partitioning("grid")},
    "templates": {"templates": (GEOPHONE, EXACT)},
    "histograms": {"histograms": True},
    "all forms": {"templates": (GEOPHONE, EXACT), "histograms": True},
    "time": {"mapping": EventMapping("time", **TIME, **FIELDS, before_us=3, after_us=4)},
    "local time": {
        "mapping": EventMapping("time", time_path=("at", "time"), timezone="Asia/Tokyo")
    },
    "seconds": {"mapping": EventMapping("time", **TIME, format="epoch_s", after_us=4)},
    "milliseconds": {"mapping": EventMapping("time", **TIME, **FIELDS, format="epoch_ms")},
    "microseconds": {
        "max_uncertainty_us": 0,
        "mapping": EventMapping("time", time_path=("at", "time"), format="epoch_us"),
    },
    "nanoseconds": {"mapping": EventMapping("time", **TIME, **FIELDS, format="epoch_ns")},
    "exact nanoseconds": {
        "max_uncertainty_us": 0,
        "mapping": EventMapping("time", **TIME, format="epoch_ns"),
        "partitioning": Partitioning("grid", 2),
    },
    "range": {"mapping": EventMapping("range", **RANGE, format="epoch_us")},
    "range of strings": {"mapping": EventMapping("range", **RANGE, **FIELDS)},
    "mapped template": {
        "templates": (GEOPHONE,),
        "mapping": EventMapping(
            "template", detected_path=("time",), template_path=("template",), format="epoch_ms"
        ),
    },
    "mapped histogram": {
        "histograms": True,
        "mapping": EventMapping("histogram", histogram_path=("histogram",), format="epoch_us"),
    },
    "lasting": {
        "max_uncertainty_us": 0,
        "min_length_us": 1,
        "max_length_us": 90,
        "mapping": EventMapping("lasting", **LASTING, format="epoch_ns"),
    },
    "unlimited": {"max_uncertainty_us": 0, "mapping": EventMapping("lasting", **LASTING)},
    "attributes": {"attributes": ATTRIBUTES},
    "filter": {
        "attributes": ATTRIBUTES,
        "where": {"level": {"min": 1}, "area": {"not": "lab"}, "offset": {"min": 3}},
    },
    "filter of positions": {"attributes": ATTRIBUTES, "where": {"offset": [0, 2, 4, 6]}},
    "list": {"tokens": {"path": "words", "stop_words": ["the", "b"]}},
    "lower case": {"tokens": {"path": "words", "lower_case": True}, "attributes": {"area": "area"}},
    "words": {
        "tokens": {"path": "area", "tokenizer": "words"},
        "attributes": {"wet": {"path": "wet", "type": "boolean"}},
        "where": {"wet": True},
    },
}
# JSON of values of every type, including wrong ones; some are JSON for one of the parsers only.
WORDS = ['""', '"lab"', '"Stra\u00dfe the lab"', '"\\ud800"', '"NaN"', '"5"', f'"{"x" * 1_001}"']
NUMBERS = [
    *(
        "0",
        "1",
        "-0",
        "5",
        "-7",
        "90",
        "1.0",
        "5.5",
        "-0.0",
        "1e1",
        "1e400",
        "5.00000000000000000001",
    ),
    *("NaN", "-Infinity", "9223372036854775807", "9223372036854775808", "-9223372036854775809"),
    *(str(it) for it in (TIME_LIMIT_US, TIME_LIMIT_US + 1, -TIME_LIMIT_US, 10**30)),
    str(TIME_LIMIT_US // 1000),
    str(TIME_LIMIT_US // 1_000_000 + 1),
    *(str(2**53 + 1), f"{2**53 + 1}.0"),
    # Their products with 1,000,000 and 1,000 are multiples of 2**64.
    *(str(2**58), str(2**61)),
]
TIMES = [
    *('"1970-01-01T00:00:00Z"', '"1970-01-01T09:00:00.00005"', '"1970-01-01T00:00:00.0000501Z"'),
    *('"1970-01-01T01:00:00.00007+01:00"', '"19700101"', '"1970W01T000000.0000055"', '"soon"'),
    *('"1969-12-31T24:00:00Z"', '"9999-12-31T23:59:59.999999-23:59"', f'"{"1" * 70}"'),
]
OTHERS = [
    *("null", "true", "false", "[]", "{}", '["a", "b", "a", ""]', '["the", 1]', "[true]", "[[]]"),
    *('{"id": 1}', '"250us"', '"2 parsecs"', '"geophone"', '"exact"', '["\\u00c9", "\u00e9"]'),
    *('["\\ud800"]', f'["{"é" * 513}"]', '["the", "b"]'),
    *("[[0, 20, 0.25], [20, 40, 0.75]]", '[{"lo": 0, "hi": 5, "p": "1"}]', "[[0, 20, 0.5]]"),
]
PARTS = [
    *("0", "1", "-1", "0.250", '"0.25"', '"1/4"', "0.25000000000000000001", "0.12345678901"),
    *(
        "1.0",
        "true",
        "null",
        "NaN",
        "1e400",
        "2.5e-1",
        "[]",
        "{}",
        str(10**30),
        f'"0.25{"0" * 20}"',
    ),
    *(
        "20.0, 0.25",
        "20.5, 0.25",
        "true, 0.25",
        '"1970-01-01T00:00:00.00002Z", 0.25',
        "20, 0.25, 1",
    ),
]
NAMES = (
    *("id", "key", "room", "time", "before", "after", "earliest", "latest", "detected"),
    *("template", "histogram", "area", "heat", "wet", "words", "at"),
)
INNER = ("id", "time", "level")
HISTOGRAM = "[[0, 20, 0.25], [20, 40, 0.0], [40, 41, 0.75]]"
# Every part replaced by other values, and other lists of buckets.
HISTOGRAMS = [
    *(HISTOGRAM.replace(part, it) for part in ("20, 0.25", "0.25", "0.0", "41") for it in PARTS),
    *(HISTOGRAM.replace("[[0", f"[[{it}") for it in ("false", "0.0", f"-{10**30}")),
    *("[]", "[[0, 1, 1]]", "[[0, 0, 1]]", "[[0, 20], [20, 40]]", "[5, 6]", '["abc", "def"]'),
    *("[[0, 20, 0], [20, 40, 1]]", "[[0, 20, 1], [20, 40, 0]]", "[[0, 20, 0.5], [21, 40, 0.5]]"),
    *("[[0, 20, 0.5], [20, 20, 0.5]]", "[[0, 20, 0.5], [19, 40, 0.5]]"),
    '[{"lo": 0, "hi": 20, "p": 0.5}, [20, 40, 0.5]]',
    f"[[0, 20, 0.5], [20, {2**60 + 1}, 0.5]]",
    f"[[{-(2**60) - 1}, 20, 0.5], [20, 21, 0.5]]",
    f"[[0, 20, 0.5], [20, {2**45 + 1}, 0.5]]",
    str([[it, it + 1, 0.01] for it in range(100)]),
    str([[it, it + 1, 0.01] for it in range(101)]),
]
LEVEL = '{"id": "i", "time": 5, "level": 3}'
# Records that are events of most streams.
GOOD = (
    {"id": '"e"', "key": '"k"', "earliest": "5", "latest": "60", "area": '"x"', "wet": "true"},
    {"id": "7", "room": "12", "time": "5", "after": "9", "words": '["b", "c", "c"]'},
    {"key": '"k"', "detected": "90", "time": "0", "template": '"geophone"', "heat": "4.5"},
    {"id": "3", "key": "null", "histogram": HISTOGRAM},
    {"earliest": TIMES[0], "latest": TIMES[2], "time": TIMES[3], "histogram": OTHERS[-3]},
)


def fields() -> st.SearchStrategy[list[tuple[str, str]]]:
    """Draw changes of a record: names, and the JSON of their values."""
    values = st.sampled_from([*WORDS, *NUMBERS, *TIMES, *OTHERS]) | st.integers(-5, 95).map(str)
    inner = st.lists(st.tuples(st.sampled_from(INNER), values), max_size=3).map(as_object)
    return st.lists(st.tuples(st.sampled_from(NAMES), values | inner), max_size=3)


def as_object(members: Sequence[tuple[str, str]]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in members) + "}"


BROKEN: tuple[Callable[[bytes], bytes | None], ...] = (
    lambda _: None,
    lambda _: b"",
    lambda _: b"[1, 2]",
    lambda _: b"17",
    lambda text: text[:-1],
    lambda text: text + text,
    lambda text: b"\xef\xbb\xbf" + text,
    lambda text: text.replace(b"e", b"\xe9"),
    lambda text: text + b" " * MAX_BYTES,
)


@st.composite
def values_of_records(draw: st.DrawFn) -> list[bytes | None]:
    """Draw the values of records, most of which have the same fields."""
    good = draw(st.sampled_from(GOOD))
    found: list[bytes | None] = []
    for _ in range(draw(st.integers(0, 12))):
        members = [*good.items(), ("at", LEVEL)]
        kind = draw(st.integers(0, 9))
        if kind in {8, 9}:
            members += draw(fields())  # the last of several members of a name counts
        if kind == 7:
            members = draw(fields())
        text = as_object(members).encode(errors="surrogatepass")
        found.append(draw(st.sampled_from(BROKEN))(text) if kind == 6 else text)
    return found


class Outcome(NamedTuple):
    """Packed events, rejected rows with their problems, and the number of filtered records."""

    events: bytes | None
    rejected: list[tuple[int, Problem]]
    filtered: int


def outcome(intake: Intake, rejected: list[tuple[int, Problem]], times_us: Int64s) -> Outcome:
    def positions(rows: Sequence[int]) -> tuple[Int64s, Int64s]:
        places = np.array(rows, np.int64)
        return places, times_us[places]

    rejected += intake.settle(positions)
    events = intake.to_events(*positions(intake.rows)).to_bytes() if intake.rows else None
    return Outcome(events, rejected, intake.filtered)


def stream_of(name: str) -> Stream:
    declared = dict(STREAMS[name])
    documents = {it: declared.pop(it, None) for it in ("attributes", "where", "tokens")}
    document = {"topic": "t", "max_uncertainty_us": 100, "max_delay_us": 0, **documents}
    return replace(stream_from_document("s", document), **declared)


def collector(found: list[tuple[int, Problem]]) -> Callable[[int, Problem], None]:
    return lambda row, problem: found.append((row, problem))


def read_rows(records: Records, stream: Stream, loads: Callable[[bytes], object]) -> Outcome:
    rejected: list[tuple[int, Problem]] = []
    intake = StreamReader(stream).begin(3)
    rows = range(len(records.texts))
    for row, value in parse_values(rows, records.texts, MAX_BYTES, loads, collector(rejected)):
        _, _, text, key, time_us = records.at(row)
        try:
            intake.add(row, value, text, key, time_us)
        except RejectedEventError as error:
            rejected.append((row, Problem(error.reason, error.detail)))
    return outcome(intake, rejected, records.timestamps_us)


def read_columns(
    records: Records, stream: Stream, loads: Callable[[bytes], object], size: int
) -> Outcome:
    rejected: list[tuple[int, Problem]] = []
    intake = StreamReader(stream).begin(3)
    for begin in range(0, len(records.texts), size):
        part = Records(
            records.rows[begin : begin + size],
            records.texts[begin : begin + size],
            records.texts[begin : begin + size],
            records.keys[begin : begin + size],
            records.timestamps_us[begin : begin + size],
        )
        found: list[tuple[int, Problem]] = []
        parsed = parse_records(part, MAX_BYTES, loads, collector(found))
        rejected += sorted(found + intake.add_columns(parsed))
    return outcome(intake, rejected, records.timestamps_us)


def records_of(
    values: Sequence[bytes | None], keys: Sequence[bytes | None], times_us: Sequence[int]
) -> Records:
    rows = np.arange(len(values), dtype=np.int64)
    return Records(rows, values, values, keys, np.array(times_us, np.int64))


@pytest.mark.parametrize("name", STREAMS)
@given(data=st.data())
def test_columns_and_single_records_have_the_same_outcome(name: str, data: st.DataObject) -> None:
    values = data.draw(values_of_records())
    count = len(values)
    keys = data.draw(
        st.lists(st.sampled_from([None, b"", b"k", b"\xff"]), min_size=count, max_size=count)
        | st.just([b"k"] * count)
    )
    times_us = data.draw(
        st.lists(st.sampled_from([0, 50, 2**62]), min_size=count, max_size=count)
        | st.just([50] * count)
    )
    records, stream = records_of(values, keys, times_us), stream_of(name)
    size = data.draw(st.sampled_from([4, 100]))
    for loads in LOADS:
        assert read_columns(records, stream, loads, size) == read_rows(records, stream, loads)


@pytest.mark.parametrize("name", STREAMS)
def test_a_single_different_record_has_the_same_outcome(name: str) -> None:
    stream = stream_of(name)
    for good in GOOD:
        members = [*good.items(), ("at", LEVEL)]
        base = as_object(members).encode()
        if read_rows(records_of([base], [b"k"], [100]), stream, json.loads).events is None:
            continue  # not an event of the stream
        changes = [
            *((field, value) for field in NAMES for value in (*WORDS, *NUMBERS, *TIMES, *OTHERS)),
            *(("at", as_object([(field, value)])) for field in INNER for value in NUMBERS + OTHERS),
            *(("histogram", value) for value in HISTOGRAMS),
        ]
        for change in changes:
            changed = as_object([*members, change]).encode()
            records = records_of([base, base, base, changed], [b"k"] * 4, [100] * 4)
            # This parser also reads what the other one refuses.
            expected = read_rows(records, stream, json.loads)
            assert read_columns(records, stream, json.loads, 4) == expected, change
        if stream.attributes:
            break  # other forms of times: the other streams
