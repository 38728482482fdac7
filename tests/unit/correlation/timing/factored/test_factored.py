"""Factored records: results of the search, splitting, and errors of the reader."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.columns import BytesColumn
from correlation.buffers.segment import Segment
from correlation.errors import InvalidRecordError, UnknownRecordVersionError
from correlation.kinds import condition_from_document
from correlation.operators import Encode, encode_json
from correlation.timing.conditions import TimingCondition
from correlation.timing.factored.batch import FactoredBatch
from correlation.timing.factored.expanding import Expander, MissingTableError
from correlation.timing.factored.layout import lay_out
from correlation.timing.factored.ranges import max_in_ranges
from correlation.timing.factored.search import Spans, correlate_spans
from correlation.timing.intervals.pairs import Side
from correlation.timing.intervals.window import TimingWindow
from tests.support.factored import expand
from tests.support.messages import naming
from tests.unit.correlation.timing.sides import (
    WINDOWS,
    correlate,
    decisions,
    one_group,
    random_side,
    side,
)

# Kafka's default limit of a record minus headers and a reserve.
_MAX_BYTES = 300_000


def spread(spans: Spans) -> dict[tuple[int, int], bool]:
    """Return every pair, and whether it is certain."""
    found: dict[tuple[int, int], bool] = {}
    for row, base in enumerate(spans.base.tolist()):
        mine = {(base, j): True for j in range(*spans.certain[row].tolist())}
        for place, region in enumerate((spans.left, spans.right)):
            begin, end = region[row].tolist()
            low, high = spans.bits_at[row, place : place + 2].tolist()
            marks = np.unpackbits(spans.bits[low:high])
            assert not marks[end - begin :].any()
            mine |= {(base, begin + int(k)): False for k in np.flatnonzero(marks)}
            if begin < end:
                assert marks[0] == marks[end - begin - 1] == 1
        reach = spans.reach()[row].tolist()
        targets = [target for _, target in mine]
        assert [min(targets), max(targets) + 1] == reach
        assert len(mine) == spans.pairs[row]
        found |= mine
    return found


@pytest.mark.parametrize("ct", ["0.1", "0.5", "0.7", "1"])
@pytest.mark.parametrize("window", WINDOWS)
def test_spans_are_the_pairs_of_lazy_lookup(
    window: tuple[int | None, int | None, int | None, int | None], ct: str
) -> None:
    rng = np.random.default_rng(20100713)
    base, target = random_side(rng, 80, 1500), random_side(rng, 110, 1500)
    made = TimingWindow(*window, Fraction(ct))
    spans = correlate_spans(base, target, one_group(base, target), made)
    pairs = correlate("lazy_lookup", base, target, made)
    assert spread(spans) == {pair: how == 0 for pair, how in decisions(pairs).items()}
    assert spans.decided.tolist() == np.bincount(pairs.decided_by, minlength=3).tolist()
    assert spans.counts == pairs.counts


def test_spans_of_no_events_are_none() -> None:
    window = TimingWindow(-5, 5, None, None, Fraction(1, 2))
    spans = correlate_spans(side(), side((0, 1)), np.zeros((0, 4), np.int64), window)
    assert spread(spans) == {}
    assert list(lay_out(spans, BytesColumn.from_list([b"t"]))) == []


@given(values=st.lists(st.integers(-9, 9), min_size=1, max_size=40), data=st.data())
def test_max_in_ranges_is_the_max(values: list[int], data: st.DataObject) -> None:
    place = st.integers(0, len(values) - 1)
    ends = data.draw(st.lists(st.tuples(place, place).map(sorted), max_size=10))
    ranges = np.array([(low, high + 1) for low, high in ends], np.int64).reshape(-1, 2)
    found = max_in_ranges(np.array(values), ranges)
    assert found.tolist() == [max(values[low : high + 1]) for low, high in ends]


def segment(ids: list[bytes], side: Side) -> Segment:
    starts = np.array([0, len(ids)])
    key = BytesColumn.from_list([b"k"])
    columns = (side.earliest, side.latest, BytesColumn.from_list(ids))
    return Segment(key, starts, *columns, np.zeros(len(ids), np.bool_))


def batch(base: Segment, target: Segment, window_us: int, threshold: str) -> FactoredBatch:
    document = {"kind": "mutual_deadline", "a": "x", "b": "y", "window_us": window_us}
    condition = condition_from_document("near", 1, {**document, "threshold": threshold})
    assert isinstance(condition, TimingCondition)
    sides = (Side(base.earliest, base.latest), Side(target.earliest, target.latest))
    groups = np.array([[0, len(base), 0, len(target)]])
    spans = correlate_spans(*sides, groups, condition.window)
    return FactoredBatch(condition, True, base, target, True, spans)  # noqa: FBT003 - keyed, base is A


def values_of(found: FactoredBatch, encode: Encode = encode_json) -> list[dict[str, Any]]:
    return [json.loads(record.value or b"") for record in found.records(7, encode)]


@pytest.mark.parametrize("encode", [encode_json, orjson.dumps])
def test_records_are_bounded_however_many_targets_are_reached(encode: Encode) -> None:
    """450,000 targets in one probe region, every 40th with an id that JSON makes far longer."""
    count = 450_000
    latest = np.arange(count) // 1000
    # The window is narrower than the events are long: all are in doubt, the longer half satisfied.
    lengths = np.random.default_rng(5).integers(0, 20_001, count)
    ids = [b'\x01\xc3\xa9"\\' * 60 if i % 40 == 0 else b"event-%d" % i for i in range(count)]
    target = segment(ids, Side(latest - lengths, latest))
    base = segment([b"x0", b"x1"], side((-20_000, 0), (-1, 10)))
    found = batch(base, target, 5_000, "0.4")
    records = list(found.records(7, encode))
    assert max(len(record.value or b"") for record in records) < _MAX_BYTES
    assert len(records) == len(found) == len(found.ready_us())
    sorts = found.count_records()
    assert sorts["base"] > 2
    assert sorts["targets"] > 50
    pairs = sum(json.loads(record.value or b"").get("pairs", 0) for record in records)
    assert pairs == found.spans.pairs.sum() > 200_000
    first = [alarm["b"]["id"] for alarm in islice(expand((it.value or b"") for it in records), 3)]
    assert len(set(first)) == 3


def test_pieces_of_a_base_event_tell_each_pair_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    sides = random_side(rng, 40, 300), random_side(rng, 300, 300)
    ids = [[b"%d" % i for i in range(len(it.latest))] for it in sides]
    segments = [segment(*columns) for columns in zip(ids, sides, strict=True)]
    whole = batch(segments[0], segments[1], 150, "0.6")
    expected = sorted(
        json.dumps(it, sort_keys=True) for it in expand(map(json.dumps, values_of(whole)))
    )
    for name, size in (("TARGETS_BYTES", 1_000), ("BITMAP_BYTES", 2)):
        monkeypatch.setattr(f"correlation.timing.factored.layout.{name}", size)
    monkeypatch.setattr("correlation.timing.factored.batch.BITMAP_BYTES", 2)
    cut = batch(segments[0], segments[1], 150, "0.6")
    assert cut.count_records()["targets"] > 10 * whole.count_records()["targets"]
    assert cut.count_records()["base"] > 2 * whole.count_records()["base"]
    values = values_of(cut)
    found = list(expand(map(json.dumps, values)))
    assert sorted(json.dumps(it, sort_keys=True) for it in found) == expected
    assert sum(value.get("pairs", 0) for value in values) == len(found)
    assert cut.ready_us().max() == whole.ready_us().max()


def test_what_lies_between_two_distant_base_events_is_not_written() -> None:
    target = segment([b"%d" % i for i in range(1000)], side(*[(i, i) for i in range(1000)]))
    base = segment([b"early", b"late"], side((0, 0), (900, 900)))
    tables = [it for it in values_of(batch(base, target, 2, "1")) if it["record"] == "targets"]
    assert [it["ids"] for it in tables] == [["0", "1", "2"], ["898", "899", "900", "901", "902"]]
    near = segment([b"early", b"late"], side((0, 0), (12, 12)))
    tables = [it for it in values_of(batch(near, target, 2, "1")) if it["record"] == "targets"]
    # A gap that costs less than a table of its own is written.
    assert [len(it["ids"]) for it in tables] == [15]


def two_records() -> tuple[dict[str, Any], dict[str, Any]]:
    base, target = segment([b"x"], side((0, 4))), segment([b"y"], side((1, 5)))
    table, record = values_of(batch(base, target, 10, "0.9"))
    return table, record


def test_a_table_that_comes_again_changes_nothing() -> None:
    table, base = two_records()
    expander = Expander()
    for _ in range(2):
        assert list(expander.take(table)) == []
    assert expander.held == 1
    first, second = (list(expander.take(base)) for _ in range(2))
    assert first == second
    assert expander.held == 0


def test_a_base_record_without_its_table_is_refused() -> None:
    table, base = two_records()
    expander = Expander()
    with pytest.raises(MissingTableError, match=table["table"]):
        list(expander.take(base))
    list(expander.take({**table, "size": 2}))
    with pytest.raises(MissingTableError):
        list(expander.take(base))


def test_a_record_of_another_version_is_refused() -> None:
    with pytest.raises(UnknownRecordVersionError, match="version 2"):
        list(Expander().take({**two_records()[0], "v": 2}))


@pytest.mark.parametrize(
    ("changes", "field", "names"),
    [
        ({"certain": [0, 2]}, "certain", ["range", "1 targets"]),
        ({"certain": [-1, 0]}, "certain", ["range", "1 targets"]),
        ({"certain": [0, 10**15]}, "certain", ["range", "1 targets"]),
        ({"certain": None}, "certain", ["list", "got None"]),
        ({"probed": [[-1, "gA=="]]}, "probed", ["within", "1 targets"]),
        ({"probed": [[1, "gA=="]]}, "probed", ["within", "1 targets"]),
        ({"probed": [[0, "?"]]}, "probed", ["list"]),
        ({"probed": [3]}, "probed", ["list"]),
        ({"a": {"id": 3}}, "a.id", ["string", "got 3"]),
        ({"a": {"id": "x", "stream": "s"}}, "a.earliest", ["missing"]),
        ({"detected_at": None}, "detected_at", ["integer", "got None"]),
        ({"table": []}, "table", ["string"]),
    ],
)
def test_damaged_base_record_is_refused_with_its_field(
    changes: dict[str, Any], field: str, names: list[str]
) -> None:
    table, base = two_records()
    expander = Expander()
    list(expander.take(table))
    with pytest.raises(InvalidRecordError, match=naming(*names, "skip the record")) as caught:
        list(expander.take({**base, **changes}))
    assert caught.value.field == field
    # The table is held until a valid record has used it.
    assert [alarm["b"]["id"] for alarm in expander.take(base)] == ["y"]


@pytest.mark.parametrize(
    ("changes", "field", "names"),
    [
        ({"ids": [3]}, "ids", ["list of strings"]),
        ({"earliest": []}, "earliest", ["list of 1 integers"]),
        ({"late": [1]}, "late", ["positions", "less than 1"]),
        ({"late": [[]]}, "late", ["list of integers"]),
        ({"size": True}, "size", ["integer", "got True"]),
        ({"key": 3}, "key", ["string", "got 3"]),
        ({"lower_us": "1s"}, "lower_us", ["integer", "got '1s'"]),
    ],
)
def test_damaged_table_is_refused_with_its_field(
    changes: dict[str, Any], field: str, names: list[str]
) -> None:
    table, base = two_records()
    expander = Expander()
    with pytest.raises(InvalidRecordError, match=naming(*names)) as caught:
        list(expander.take({**table, **changes}))
    assert caught.value.field == field
    with pytest.raises(MissingTableError):
        list(expander.take(base))


def test_other_records_pass() -> None:
    alarm = {"v": 1, "alarm_id": "x", "b": None}
    assert list(expand([json.dumps(alarm)])) == [alarm]
