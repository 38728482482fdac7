"""Alarms as records that a consumer reads."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import orjson
import pytest
from numpy.typing import NDArray

from correlation.buffers.events import Events
from correlation.buffers.segment import Segment
from correlation.kinds import condition_from_document
from correlation.operators import encode_json
from correlation.timing import alarms
from correlation.timing.alarm_format import alarm_id
from correlation.timing.alarms import PairBatch, UnmatchedBatch
from correlation.timing.conditions import TimingCondition

DOCUMENT = {
    "kind": "mutual_deadline",
    "a": "acoustic",
    "b": "seismic",
    "window_us": 20,
    "threshold": "0.7",
    "output_topic": "mine",
}


def _batch(*, keyed: bool = True, **changes: object) -> PairBatch:
    condition = condition_from_document("near", 3, {**DOCUMENT, **changes})
    assert isinstance(condition, TimingCondition)
    a = Events.from_rows("acoustic", [(b"k\xff", b"a1", 0, 10, 0, 0, 0)])
    b = Events.from_rows("seismic", [(b"k\xff", b"b%d" % i, 5, 25, 0, i, 0) for i in range(2)])
    return PairBatch(
        condition,
        keyed,
        Segment.from_events(a, np.array([False]))[0],
        Segment.from_events(b, np.array([False, True]))[0],
        np.array([0, 0]),
        np.array([0, 1]),
        np.array([0, 2], np.uint8),
    )


def _unmatched(*, keyed: bool = True) -> UnmatchedBatch:
    pairs = _batch(keyed=keyed)
    # The rows of B are those of A here: a second event, which is late.
    return UnmatchedBatch(pairs.condition, keyed, pairs.b, np.array([0, 1]))


def test_an_alarm_tells_all_about_its_pair() -> None:
    first, second = _batch().records(1_000_000)
    heading = _batch().heading(1_000_000)
    ident = alarm_id("near", 3, b"a1", b"b0")
    assert json.loads(first.value or b"") == {
        "v": 1,
        "alarm_id": ident,
        "condition": "near",
        "version": 3,
        "kind": "mutual_deadline",
        "probability": 0.9375,
        "threshold": 0.7,
        "decided_by": "satisfaction_region",
        "late": False,
        "a": {"id": "a1", "stream": "acoustic", "key": "k\\xff", "earliest": 0, "latest": 10},
        "b": {"id": "b0", "stream": "seismic", "key": "k\\xff", "earliest": 5, "latest": 25},
        "detected_at": 1_000_000,
    }
    assert (heading.channel, heading.topic) == ("alarms", "mine")
    assert heading.headers["ce_type"] == "coincide.alarm.v1"
    assert heading.headers["ce_time"] == "1970-01-01T00:00:01+00:00"
    assert (first.key, first.ident) == (b"k\xff", ident)
    assert json.loads(second.value or b"")["decided_by"] == "lookup"
    assert json.loads(second.value or b"")["late"] is True


def test_each_alarm_may_have_its_own_time() -> None:
    batch = _batch()
    assert batch.ready_us().tolist() == [25, 25]
    found = [json.loads(record.value or b"") for record in batch.records(np.array([25, 26]))]
    assert [alarm.pop("detected_at") for alarm in found] == [25, 26]
    same = [json.loads(record.value or b"") for record in batch.records(7)]
    assert [alarm.pop("detected_at") for alarm in same] == [7, 7]
    assert found == same


@pytest.mark.parametrize("times", [7, np.array([25, 26, 27])], ids=["one", "each"])
def test_many_pairs_are_encoded_part_by_part_with_the_same_records(
    times: int | NDArray[np.int64], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = _batch()
    batch = replace(
        pair,
        a_rows=np.array([0, 0, 0]),
        b_rows=np.array([1, 0, 1]),
        decided_by=np.array([0, 1, 2], np.uint8),
    )
    whole = list(batch.records(times))
    assert len(whole) == 3
    monkeypatch.setattr(alarms, "_PART_ALARMS", 2)
    assert list(batch.records(times)) == whole


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("report_probability", [False, True])
def test_every_encoder_writes_the_same_alarm(*, keyed: bool, report_probability: bool) -> None:
    batch = _batch(keyed=keyed, report_probability=report_probability)
    ours, theirs = (
        [json.loads(record.value or b"") for record in batch.records(0, encode)]
        for encode in (encode_json, orjson.dumps)
    )
    assert ours == theirs
    assert ("probability" in ours[0]) == report_probability


def test_an_alarm_of_an_event_without_a_b_has_the_same_form() -> None:
    pair = json.loads(next(_batch().records(7)).value or b"")
    first, second = _unmatched().records(7)
    alone = json.loads(first.value or b"")
    assert list(alone) == [name for name in pair if name != "probability"]
    assert alone["b"] is None
    assert alone["decided_by"] == "watermark"
    assert alone["a"]["id"] == "b0"
    assert alone["alarm_id"] == first.ident == alarm_id("near", 3, b"b0", None)
    assert (alone["late"], json.loads(second.value or b"")["late"]) == (False, True)
    assert _unmatched().heading(7) == _batch().heading(7)
    assert {name: alone[name] for name in ("v", "kind", "detected_at")} == {
        name: pair[name] for name in ("v", "kind", "detected_at")
    }


@pytest.mark.parametrize("keyed", [False, True])
def test_every_encoder_writes_the_same_alarm_without_a_b(*, keyed: bool) -> None:
    ours, theirs = (
        [
            (record.key, json.loads(record.value or b""))
            for record in _unmatched(keyed=keyed).records(0, it)
        ]
        for it in (encode_json, orjson.dumps)
    )
    assert ours == theirs
    assert [key for key, _ in ours] == ([b"k\xff"] * 2 if keyed else [b"near"] * 2)


def test_probability_is_left_out_when_the_condition_says_so() -> None:
    assert all(
        b"probability" not in (a.value or b"") for a in _batch(report_probability=False).records(0)
    )


def test_without_a_key_the_conditions_name_is_the_records_key() -> None:
    alarm = next(_batch(keyed=False).records(0))
    assert alarm.key == b"near"
    assert json.loads(alarm.value or b"")["a"]["key"] is None


def test_alarm_ids_differ_where_anything_differs() -> None:
    idents = {
        alarm_id("c", 1, b"a", b"b"),
        alarm_id("c", 2, b"a", b"b"),
        alarm_id("d", 1, b"a", b"b"),
        alarm_id("c", 1, b"b", b"a"),
        alarm_id("c", 1, b"ab", b""),
        alarm_id("c1", 1, b"a", b"b"),
        alarm_id("c", 1, b"a", b""),
        alarm_id("c", 1, b"a", None),
    }
    assert len(idents) == 8
