"""Packing of Kafka records: events, dead letters, and the slot of each row."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import orjson
import pytest

from correlation.buffers.events import Events
from correlation.buffers.grid import home_copies
from correlation.reasons import Reason
from correlation.resources.histogram import Histogram
from correlation.resources.mapping import EventMapping
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from correlation.resources.template import Template
from correlation.resources.topics import Topics
from spark_jobs.worker.envelope import Record, unpack_records
from spark_jobs.worker.pack import pack_records
from spark_jobs.worker.packing import Packing
from spark_jobs.worker.rejects import rejected_counts
from tests.support.messages import assert_names
from tests.support.workload import SourceRecord, runs_of

TOPICS = Topics("p")
SLOT_KEYS = (11, 12, 13)
STREAM = Stream("s", "events", max_uncertainty_us=1_000, max_delay_us=0, min_uncertainty_us=10)
Row = tuple[int, str, int, bytes]


def pack(
    records: Sequence[SourceRecord], streams: Sequence[Stream] = (STREAM,), cut: int = 1_000
) -> list[Row]:
    """Pack records in Arrow batches of `cut` rows."""
    batches = (runs_of(records[low : low + cut]) for low in range(0, len(records), cut))
    packing = Packing(TOPICS, tuple(streams), SLOT_KEYS, max_record_bytes=1_000_000)
    return [
        tuple(row.values()) for batch in pack_records(packing, batches) for row in batch.to_pylist()
    ]


def rows_of(rows: Sequence[Row], kind: str) -> Iterator[Row]:
    return (row for row in rows if row[1] == kind)


def dead_letters(rows: Sequence[Row]) -> list[Record]:
    return [record for row in rows_of(rows, "reject") for record in unpack_records(row[3])]


def event(**fields: object) -> bytes:
    return json.dumps({"id": "e", "key": "k", "earliest": 0, "latest": 100, **fields}).encode()


BAD = {
    "nothing": (None, Reason.NULL_VALUE),
    "empty": (b"", Reason.MALFORMED_JSON),
    "cut": (b'{"id": "e"', Reason.MALFORMED_JSON),
    "two": (b"{} {}", Reason.MALFORMED_JSON),
    "deep": (b"[" * 100_000, Reason.MALFORMED_JSON),
    "nan": (b'{"id":"e","key":"k","earliest":NaN,"latest":1}', Reason.MALFORMED_JSON),
    "infinity": (b'{"id":"e","key":"k","earliest":0,"latest":Infinity}', Reason.MALFORMED_JSON),
    "latin-1": ('{"id":"é"}'.encode("latin-1"), Reason.WRONG_ENCODING),
    "utf-16": ("{}".encode("utf-16"), Reason.WRONG_ENCODING),
    "byte order mark": (b"\xef\xbb\xbf{}", Reason.WRONG_ENCODING),
    "lone surrogate": (b'{"id":"\\ud800","earliest":0,"latest":50}', Reason.MALFORMED_JSON),
    "null": (b"null", Reason.NOT_AN_OBJECT),
    "list": (b"[1,2]", Reason.NOT_AN_OBJECT),
    "number": (b"17", Reason.NOT_AN_OBJECT),
    "no times": (b'{"id":"e","key":"k"}', Reason.MISSING_FIELD),
    "one time": (b'{"id":"e","key":"k","earliest":1}', Reason.MISSING_FIELD),
    "null time": (event(latest=None), Reason.WRONG_TYPE),
    "true time": (event(latest=True), Reason.WRONG_TYPE),
    "list time": (event(latest=[1]), Reason.WRONG_TYPE),
    "text time": (event(latest="soon"), Reason.NOT_A_TIME),
    "huge time": (event(earliest=10**18 * 2, latest=10**18 * 2 + 50), Reason.TIME_OUT_OF_RANGE),
    "huger time": (event(latest=10**30), Reason.TIME_OUT_OF_RANGE),
    "float time": (event(latest=1e300), Reason.TIME_OUT_OF_RANGE),
    "reversed": (event(earliest=101), Reason.EARLIEST_AFTER_LATEST),
    "short": (event(earliest=91), Reason.SHORTER_THAN_DECLARED),
    "long": (event(latest=1_001), Reason.LONGER_THAN_DECLARED),
    "future": (event(earliest=5_000_001, latest=5_000_050), Reason.FUTURE_DATED),
    "no key": (b'{"id":"e","earliest":0,"latest":100}', Reason.MISSING_KEY),
    "object id": (event(id={}), Reason.WRONG_TYPE),
    "list key": (event(key=[]), Reason.WRONG_TYPE),
    "10 MB": (event(pad="x" * 10_000_000), Reason.TOO_LARGE),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_record_is_a_dead_letter_untouched_and_the_next_one_an_event(name: str) -> None:
    value, reason = BAD[name]
    # Longer than 16 bits count: names and values may be any length.
    headers = (("mine", b"\xff"), ("null", None), ("n" * 70_000, b"v"))
    bad = SourceRecord("events", value, None, 2, 7, 4_000_000, headers)
    good = SourceRecord("events", event(), b"k", 2, 8, 4_000_000)
    rows = pack([bad, good])
    (letter,) = dead_letters(rows)
    assert (letter.topic, letter.key, letter.value) == ("p.dead-letter", None, value)
    assert letter.headers[:3] == list(headers)
    added = dict(letter.headers[3:])
    assert added.pop("coincide.error.detail")
    assert added == {
        "coincide.error.reason": reason.value.encode(),
        "coincide.error.stream": b"s",
        "coincide.error.topic": b"events",
        "coincide.error.partition": b"2",
        "coincide.error.offset": b"7",
    }
    counts = [rejected_counts(row[3]) for row in rows_of(rows, "reject")]
    assert sum(counts, Counter()) == {("s", reason.value): 1}
    (packed,) = rows_of(rows, "events")
    assert Events.from_bytes(packed[3]).offset.tolist() == [8]


def test_dead_letters_are_in_the_order_of_their_offsets_and_streams() -> None:
    other = replace(STREAM, name="other", min_uncertainty_us=0)
    values = [event(), b"{", event(latest=5), None, event(id={}), event()]
    # More records than are parsed at once.
    records = [
        SourceRecord("events", value, b"k", 2, offset, 4_000_000)
        for offset, value in enumerate(values * 300)
    ]
    letters = [
        (int(added["coincide.error.offset"] or b""), added["coincide.error.stream"])
        for added in (
            dict(letter.headers) for letter in dead_letters(pack(records, [STREAM, other]))
        )
    ]
    streams = {1: (b"s", b"other"), 2: (b"s",), 3: (b"s", b"other"), 4: (b"s", b"other")}
    assert letters == [
        (offset, stream) for offset in range(1_800) for stream in streams.get(offset % 6, ())
    ]


def test_event_columns_hold_what_the_record_says() -> None:
    records = [
        SourceRecord("events", event(), b"other", 1, 41, 5_000, (("h", b"1"),)),
        SourceRecord("events", b'{"earliest":-50,"latest":-40}', b"k", 1, 42, 6_000),
        SourceRecord("events", event(id=None), None, 1, 44, 7_000),
    ]
    (row,) = rows_of(pack(records), "events")
    events = Events.from_bytes(row[3])
    assert events.stream == "s"
    assert events.id.to_list() == [b"e", b"events-1-42", b"events-1-44"]
    assert events.key.to_list() == [b"k", b"k", b"k"]
    assert events.earliest.tolist() == [0, -50, 0]
    assert events.latest.tolist() == [100, -40, 100]
    assert events.partition.tolist() == [1, 1, 1]
    assert events.offset.tolist() == [41, 42, 44]
    assert events.record_timestamp_us.tolist() == [5_000, 6_000, 7_000]


def test_events_keep_how_their_times_are_distributed() -> None:
    halves = Template("t", Histogram.from_buckets([[0, 40, "0.5"], [40, 90, "0.5"]]))
    own = Histogram.from_buckets([[5, 25, "0.15"], [25, 45, "0.85"]])
    with_histograms = replace(STREAM, templates=(halves,), histograms=True)
    values = [
        b'{"key":"k","detected":100,"template":"t"}',
        event(),
        b'{"key":"k","histogram":[[5,25,0.15],[25,45,0.85]]}',
        b'{"key":"k","detected":100,"template":"u"}',
        b'{"key":"k","histogram":[[5,25,0.15],[25,45,0.80]]}',
        b'{"key":"k","detected":200,"template":"t"}',
    ]
    records = [SourceRecord("events", value, None, 0, n) for n, value in enumerate(values)]
    for streams, reasons in (
        ([with_histograms], [b"unknown_template", b"bad_histogram"]),
        ([STREAM], [*[b"unknown_template", b"undeclared_histogram"] * 2, b"unknown_template"]),
    ):
        rows = pack(records, streams)
        found = [dict(letter.headers)["coincide.error.reason"] for letter in dead_letters(rows)]
        assert found == reasons
        (row,) = rows_of(rows, "events")
        events = Events.from_bytes(row[3])
        if streams == [STREAM]:
            assert (events.offset.tolist(), events.shape) == ([1], None)
            continue
        assert events.offset.tolist() == [0, 1, 2, 5]
        assert events.earliest.tolist() == [10, 0, 5, 110]
        assert events.latest.tolist() == [100, 100, 45, 200]
        assert events.shape is not None
        template_shape = halves.histogram.shape_bytes
        assert events.shape.to_list() == [template_shape, None, own.shape_bytes, template_shape]


def test_equal_keys_share_a_slot_and_all_slots_are_used() -> None:
    records = [
        SourceRecord("events", event(id=n, key=f"k{n % 40}"), None, n % 2, n) for n in range(400)
    ]
    rows = list(rows_of(pack(records, cut=64), "events"))
    slots_of_key: dict[bytes, set[int]] = {}
    count = 0
    for slot_key, _, position, blob in rows:
        events = Events.from_bytes(blob)
        assert len(set(events.partition.tolist())) == 1
        assert position == events.offset[0]
        count += len(events)
        for key in events.key.to_list():
            slots_of_key.setdefault(key, set()).add(slot_key)
    assert count == 400
    assert all(len(slots) == 1 for slots in slots_of_key.values())
    assert {slot for slots in slots_of_key.values() for slot in slots} == set(SLOT_KEYS)


def test_grid_stream_needs_no_key_and_its_events_meet_in_one_slot() -> None:
    stream = Stream(
        "g", "events", max_uncertainty_us=1_000, max_delay_us=0, partitioning=Partitioning("grid")
    )
    records = [SourceRecord("events", event(key=None), None, 0, n) for n in range(9)]
    (row,) = rows_of(pack(records, [stream]), "events")
    assert row[0] == SLOT_KEYS[0]
    assert len(set(Events.from_bytes(row[3]).key.to_list())) == 1


def test_grid_sends_each_event_to_the_cells_of_its_group_the_same_in_any_batch() -> None:
    grid = Partitioning("grid", 3)
    stream = Stream("g", "events", max_uncertainty_us=1_000, max_delay_us=0, partitioning=grid)
    records = [SourceRecord("events", event(id=n), None, n % 2, n) for n in range(90)]
    found = []
    for cut in (90, 7):
        copies: dict[bytes, list[tuple[int, bytes]]] = {}
        home = Counter[bytes]()
        for slot_key, _, position, blob in rows_of(pack(records, [stream], cut=cut), "events"):
            events = Events.from_bytes(blob)
            assert position == events.offset[0]
            for ident, key in zip(events.id.to_list(), events.key.to_list(), strict=True):
                copies.setdefault(ident, []).append((slot_key, key))
            rows = home_copies(events.key, grid.groups)
            home.update(events.id.take(rows.nonzero()[0]).to_list())
        assert len(copies) == 90
        assert all(len(set(places)) == 3 for places in copies.values())
        assert {slot for places in copies.values() for slot, _ in places} == set(SLOT_KEYS)
        # A late event is written once.
        assert home == Counter(b"%d" % n for n in range(90))
        found.append({ident: sorted(places) for ident, places in copies.items()})
    assert found[0] == found[1]


def test_two_streams_read_the_same_topic_each_with_its_own_mapping() -> None:
    other = Stream(
        "o",
        "events",
        max_uncertainty_us=1_000,
        max_delay_us=0,
        mapping=EventMapping("time", time_path=("at",), format="epoch_us", after_us=5),
    )
    record = SourceRecord("events", event(at=7), b"k", 0, 3)
    rows = pack([record, SourceRecord("events", event(), b"k", 0, 4)], [STREAM, other])
    found = {
        events.stream: events.latest.tolist()
        for events in (Events.from_bytes(row[3]) for row in rows_of(rows, "events"))
    }
    assert found == {"s": [100, 100], "o": [12]}
    (letter,) = dead_letters(rows)
    assert dict(letter.headers)["coincide.error.stream"] == b"o"


def test_progress_reaches_every_slot_and_counts_rejected_records() -> None:
    records = [
        SourceRecord("events", event(latest=latest), b"k", partition, offset)
        for partition, offset, latest in [(0, 5, 90), (0, 6, 70), (1, 9, 80), (0, 7, 60)]
    ]
    records.append(SourceRecord("events", None, None, 2, 3))
    rows = list(rows_of(pack(records, cut=2), "progress"))
    assert [row[0] for row in rows] == list(SLOT_KEYS)
    for row in rows:
        assert orjson.loads(row[3]) == [["s", 0, 8, 90], ["s", 1, 10, 80], ["s", 2, 4, None]]


def test_control_and_heartbeat_records_reach_every_slot_and_bad_ones_are_dead_letters() -> None:
    rows = pack(
        [
            SourceRecord("p.config", b'{"v":1}', b"condition/c", 0, 4),
            SourceRecord("p.config", None, b"condition/c", 0, 5),
            SourceRecord("p.config", b"{", b"condition/d", 0, 6),
            SourceRecord("p.config", b'{"v":2}', b"condition/e", 0, 7),
            SourceRecord("p.config", b"{}", b"condition/\xff", 0, 8),
            SourceRecord("p.config", None, b"condition/\xff", 0, 9),
            SourceRecord("p.heartbeats", b'{"stream":"s","read_up_to":9}', b"s", 0, 1),
            SourceRecord("p.heartbeats", b'{"stream":"s","read_up_to":"soon"}', b"s", 0, 2),
            SourceRecord("p.heartbeats", None, b"s", 0, 3),
        ]
    )
    assert [(row[0], row[2]) for row in rows_of(rows, "control")] == [
        (key, offset) for offset in (4, 5, 6, 7) for key in SLOT_KEYS
    ]
    # Also those that cannot be read: they take their condition out of force.
    controls = [
        orjson.loads(it) for it in dict.fromkeys(row[3] for row in rows_of(rows, "control"))
    ]
    no_kind, removed, no_json, newer = ((it["key"], it["record"]) for it in controls)
    assert no_kind[0] == "condition/c"
    assert_names(no_kind[1], "not a condition", "field 'kind'")
    assert removed == ("condition/c", None)
    assert no_json[0] == "condition/d"
    assert_names(no_json[1], "not valid JSON", "line 1 column 2")
    assert newer == ("condition/e", {"v": 2})
    assert [row[0] for row in rows_of(rows, "heartbeat")] == list(SLOT_KEYS)
    assert orjson.loads(next(rows_of(rows, "heartbeat"))[3]) == ["s", None, 9, None, 0]
    reasons = [dict(letter.headers)["coincide.error.reason"] for letter in dead_letters(rows)]
    assert sorted(reason or b"" for reason in reasons) == [
        b"bad_control",
        b"bad_control",
        b"bad_control",
        b"bad_heartbeat",
        b"bad_heartbeat",
    ]


@pytest.mark.parametrize("levels", [100, 253, 254, 1_000])
@pytest.mark.parametrize("key", [b"condition/c", b"planet/x"])
@pytest.mark.parametrize("version", [1, 2])
def test_control_of_any_depth_reaches_the_slots_as_its_problem(
    key: bytes, levels: int, version: int
) -> None:
    value = b'{"v":%d,"more":%s}' % (version, b"[" * levels + b"]" * levels)
    rows = pack([SourceRecord("p.config", value, key, 0, 4)])
    (letter,) = dead_letters(rows)
    assert letter.value == value
    # No slot has anything under a key that does not name a resource.
    assert {row[3] for row in rows_of(rows, "control")} == (
        {b'{"key":"condition/c","record":"the value is nested deeper than 100 levels"}'}
        if key == b"condition/c"
        else set()
    )


def test_heartbeat_of_any_depth_is_a_dead_letter() -> None:
    deep = b"[" * 1_000 + b"]" * 1_000
    values = [b'{"v":%s}' % deep, b'{"stream":"s","read_up_to":%s}' % deep, deep]
    rows = pack(
        [
            SourceRecord("p.heartbeats", value, b"s", 0, offset)
            for offset, value in enumerate(values)
        ]
    )
    assert [letter.value for letter in dead_letters(rows)] == values


@pytest.mark.parametrize("version", [0, 2])
def test_long_control_that_cannot_be_read_reaches_the_slots_as_its_problem(version: int) -> None:
    value = orjson.dumps({"v": version, "more": "x" * 100_000})
    rows = pack([SourceRecord("p.config", value, b"condition/c", 0, 4)])
    controls = [orjson.loads(row[3])["record"] for row in rows_of(rows, "control")]
    assert len(controls) == len(SLOT_KEYS)
    problem = {0: "v: must be 1", 2: "after the upgrade"}[version]
    assert all(problem in record for record in controls)


def test_a_time_and_a_mass_of_more_digits_than_float64_holds_are_exact() -> None:
    mapping = EventMapping("time", time_path=("at",), format="epoch_s")
    stream = Stream(
        "s", "events", max_uncertainty_us=1_000, max_delay_us=0, clock="replay", mapping=mapping
    )
    times = [b"1767225600.123456", b"1767225600.1234561", b"17179869184.123457"]
    records = [
        SourceRecord("events", b'{"at": %s}' % time, b"k", 0, offset)
        for offset, time in enumerate(times)
    ]
    rows = pack(records, [stream])
    blocks = [Events.from_bytes(row[3]) for row in rows_of(rows, "events")]
    spans = [(int(it.earliest[i]), int(it.latest[i])) for it in blocks for i in range(len(it))]
    assert sorted(spans) == [
        (1_767_225_600_123_456, 1_767_225_600_123_456),
        (1_767_225_600_123_456, 1_767_225_600_123_457),
        (17_179_869_184_123_457, 17_179_869_184_123_457),
    ]
    value = b'{"histogram": [[0, 10, 0.15000000000000000001], [10, 20, 0.85]]}'
    with_histograms = replace(STREAM, histograms=True)
    (letter,) = dead_letters(pack([SourceRecord("events", value, b"k")], [with_histograms]))
    assert dict(letter.headers)["coincide.error.reason"] == b"bad_histogram"


def test_heartbeats_ahead_of_their_records_timestamp_are_dead_letters_of_live_streams() -> None:
    recorded = replace(STREAM, name="r", topic="recorded", clock="replay")
    at_us = 1_700_000_000_000_000
    heartbeats = [
        ("s", at_us + STREAM.max_skew_us, None),
        ("s", at_us + STREAM.max_skew_us + 1_000, b"future_heartbeat"),
        ("s", 32_503_680_000_000_000, b"future_heartbeat"),
        ("s", "end", b"future_heartbeat"),
        ("s", "reset", None),
        ("r", 32_503_680_000_000_000, None),
        ("r", "end", None),
        # Its clock is not known yet; the slots see it when it joins.
        ("unknown", "end", None),
    ]
    rows = pack(
        [
            SourceRecord(
                "p.heartbeats",
                json.dumps({"stream": stream, "read_up_to": until}).encode(),
                stream.encode(),
                0,
                offset,
                at_us,
            )
            for offset, (stream, until, _) in enumerate(heartbeats)
        ],
        [STREAM, recorded],
    )
    letters = dead_letters(rows)
    assert [dict(letter.headers)["coincide.error.offset"] for letter in letters] == [
        str(offset).encode() for offset, (_, _, reason) in enumerate(heartbeats) if reason
    ]
    for letter in letters:
        headers = dict(letter.headers)
        assert headers["coincide.error.reason"] == b"future_heartbeat"
        assert headers["coincide.error.stream"] == b"s"
    # The slots get them with their timestamps and decide as the packing does.
    sent = [orjson.loads(row[3]) for row in rows_of(rows, "heartbeat") if row[0] == SLOT_KEYS[0]]
    assert [entry[4] for entry in sent] == [at_us] * len(heartbeats)


def test_shapes_are_packed_with_their_events() -> None:
    halves = Template("halves", Histogram.from_buckets([[0, 4_000, "0.5"], [4_000, 9_000, "0.5"]]))
    own = [[1_000, 3_000, 0.15], [3_000, 8_000, 0.85]]
    values = [
        {"detected": 50_000, "template": "halves"},
        {"histogram": own},
        {"detected": 50_000, "template": "thirds"},
    ]
    stream = Stream("a", "t", 20_000, 0, clock="replay", templates=(halves,), histograms=True)
    records = [
        SourceRecord("t", json.dumps(value).encode(), b"k", 0, offset)
        for offset, value in enumerate(values)
    ]
    rows = pack(records, [stream])
    (events,) = [Events.from_bytes(row[3]) for row in rows_of(rows, "events")]
    assert (events.earliest.tolist(), events.latest.tolist()) == ([41_000, 1_000], [50_000, 8_000])
    assert events.shape is not None
    shapes = [halves.histogram.shape_bytes, Histogram.from_buckets(own).shape_bytes]
    assert events.shape.to_list() == shapes
    (letter,) = dead_letters(rows)
    assert letter.value == records[2].value
