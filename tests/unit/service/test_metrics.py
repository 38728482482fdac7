"""The view of the metrics topic: sums of the records of slots."""

from __future__ import annotations

import sys
from typing import Any, Literal

import numpy as np
import orjson
import pytest

import service.metrics
from correlation.engine.contract import ContractFacts
from correlation.reporting import Gauge, Ratio
from correlation.resources.streams import Stream
from service.log import LogRecord
from service.metrics import Histogram, MetricsView, Sample

MINUTE_US = 60_000_000
OVER_SLOTS: tuple[Literal["sum", "max", "min"], ...] = ("sum", "max", "min")


def slot(at: int = 1000, **parts: Any) -> dict[str, Any]:  # noqa: ANN401  JSON
    return {"v": 1, "slot": 0, "at": at, **parts}


def facts(offset: int, version: int = 1, state: str = "running", alarm: int | None = None) -> Any:  # noqa: ANN401  JSON
    return {"version": version, "state": state, "config_offset": offset, "last_alarm_at": alarm}


def view_of(*slots: dict[str, Any] | None) -> MetricsView:
    view = MetricsView()
    for number, found in enumerate(slots):
        value = None if found is None else orjson.dumps(found)
        view.apply(LogRecord(number, f"slot/{number}".encode(), value, 0))
    assert view.unreadable == 0
    return view


def test_counters_are_summed_over_the_slots() -> None:
    view = view_of(
        slot(counters=[["alarms_total", {"condition": "c"}, 2], ["x_total", {}, 1]]),
        slot(counters=[["alarms_total", {"condition": "c"}, 3]]),
        slot(counters=[["alarms_total", {"condition": "d"}, 4]]),
    )
    assert view.counters() == [
        Sample("alarms_total", (("condition", "c"),), 5),
        Sample("alarms_total", (("condition", "d"),), 4),
        Sample("x_total", (), 1),
    ]
    assert view.total("alarms_total") == 9
    assert view.total("alarms_total", condition="c") == 5
    assert view.total("alarms_total", condition="e") == 0


def test_merged_results_count_beside_those_of_the_slots() -> None:
    """Their gauges and their last alarm do not depend on when a slot wrote."""
    labels = {"condition": "c"}
    seen = [["delay_seconds", labels, {"buckets": [["0.1", 1], ["+Inf", 2]], "sum": 3.0}]]
    late = slot(20 * MINUTE_US, counters=[["alarms_total", labels, 1]], histograms=seen)
    view = view_of({**late, "conditions": {"c": facts(1, alarm=5)}})
    merged = {
        "v": 1,
        "at": 7,
        "counters": [["alarms_total", labels, 4]],
        "gauges": [["topk_last_value", labels, 0.5]],
        "histograms": seen,
        "last_alarm_at": {"c": 6, "d": 9},
    }
    view.apply(LogRecord(2, b"merged", orjson.dumps(merged), 0))
    assert view.total("alarms_total", condition="c") == 5
    assert view.gauges() == [Sample("topk_last_value", (("condition", "c"),), 0.5)]
    assert view.histograms()[0].buckets == {"0.1": 2, "+Inf": 4}
    assert view.condition("c").last_alarm_at == 6
    assert view.slots() == sys.maxsize
    view.apply(LogRecord(3, b"merged", None, 0))
    assert (view.total("alarms_total"), view.gauges()) == (1, [])
    assert view.unreadable == 0


def test_gauges_are_combined_as_their_kind_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    gauges = {it: Gauge("Help.", it) for it in OVER_SLOTS}
    monkeypatch.setattr(service.metrics, "GAUGES", gauges)
    names = (*gauges, "plain", "old_timestamp_seconds")
    view = view_of(*(slot(gauges=[[it, {}, value] for it in names]) for value in (-3, -1, -2)))
    assert {it.name: it.value for it in view.gauges()} == {
        "sum": -6,
        "max": -1,
        "min": -3,
        "plain": -6,
        "old_timestamp_seconds": -3,
    }


def test_newest_record_of_a_slot_counts_once() -> None:
    view = view_of(slot(counters=[["n_total", {}, 1]]))
    for number, count in enumerate((5, 5, 7)):
        value = orjson.dumps(slot(counters=[["n_total", {}, count]]))
        view.apply(LogRecord(number, b"slot/0", value, 0))
    assert view.total("n_total") == 7
    view.apply(LogRecord(9, b"slot/0", None, 0))
    assert view.counters() == []


def test_slots_of_an_older_and_wider_checkpoint_count_no_more() -> None:
    counters = [["n_total", {}, 1]]
    view = view_of(slot(at=2, slots=1, counters=counters), slot(at=1, slots=2, counters=counters))
    assert view.total("n_total") == 1


def test_gauges_are_summed_and_times_are_the_min() -> None:
    view = view_of(
        slot(gauges=[["buffered_events", {"stream": "x"}, 2], ["k_timestamp_seconds", {}, 9.5]]),
        slot(gauges=[["buffered_events", {"stream": "x"}, 3], ["k_timestamp_seconds", {}, 7.5]]),
    )
    assert view.gauges() == [
        Sample("buffered_events", (("stream", "x"),), 5),
        Sample("k_timestamp_seconds", (), 7.5),
    ]
    assert view.gauge("buffered_events", stream="x") == 5
    assert view.gauge("buffered_events", stream="y") is None


def test_slot_of_an_earlier_checkpoint_keeps_its_totals_only() -> None:
    old = slot(
        counters=[["n_total", {}, 4]],
        gauges=[["buffered_events", {}, 100]],
        watermarks={"x": {"watermark": 1}},
    )
    new = slot(
        at=1000 + 11 * MINUTE_US,
        counters=[["n_total", {}, 1]],
        gauges=[["buffered_events", {}, 7]],
        watermarks={"x": {"watermark": 50}},
    )
    view = view_of(old, new)
    assert view.total("n_total") == 5
    assert view.gauge("buffered_events") == 7
    assert view.watermarks() == {"x": 50}


def test_histograms_are_summed_bucket_by_bucket() -> None:
    def seconds(counts: tuple[int, int, int], total: float) -> dict[str, Any]:
        bounds = (0.5, 10, "+Inf")
        buckets = [list(pair) for pair in zip(bounds, counts, strict=True)]
        return slot(
            histograms=[["s_seconds", {"condition": "c"}, {"buckets": buckets, "sum": total}]]
        )

    view = view_of(seconds((1, 2, 3), 20.5), seconds((0, 4, 4), 8.0))
    assert view.histograms() == [
        Histogram("s_seconds", (("condition", "c"),), {"0.5": 1, "10.0": 6, "+Inf": 7}, 28.5)
    ]
    assert list(view.histograms()[0].buckets) == ["0.5", "10.0", "+Inf"]


@pytest.mark.parametrize(
    ("marks", "least"),
    [((5, 3), 3), ((5, None), None), ((None, None), None), ((-7, 0), -7)],
)
def test_watermark_is_the_min_and_unknown_while_a_slot_knows_none(
    marks: tuple[int | None, int | None], least: int | None
) -> None:
    view = view_of(
        *(slot(watermarks={"x": {"watermark": mark, "partitions": {"0": mark}}}) for mark in marks)
    )
    assert view.watermarks() == {"x": least}
    assert view.partition_watermarks("x") == {"0": least}
    assert view.partition_watermarks("y") == {}


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        ([], ("pending", None, None, None, None)),
        ([{"c": facts(7)}, {}], ("pending", None, None, None, None)),
        ([{"c": facts(7)}, {"c": facts(7, alarm=4)}], ("running", 1, 7, 4, None)),
        ([{"c": facts(7, 2, alarm=9)}, {"c": facts(5, 1, "paused", 3)}], ("paused", 1, 5, 9, None)),
    ],
)
def test_condition_is_as_far_as_its_slowest_slot(
    slots: list[dict[str, Any]], expected: tuple[object, ...]
) -> None:
    view = view_of(*(slot(conditions=found) for found in slots))
    assert view.condition("c") == expected


def test_hit_ratio_is_hits_over_probed() -> None:
    labels = {"condition": "c"}
    view = view_of(
        slot(counters=[["probe_region_events_total", labels, 4], ["lookup_hits_total", labels, 1]]),
        slot(counters=[["probe_region_events_total", labels, 4], ["lookup_hits_total", labels, 3]]),
        slot(counters=[["probe_region_events_total", {"condition": "idle"}, 0]]),
    )
    assert view.ratios() == [Sample("lookup_hit_ratio", (("condition", "c"),), 0.5)]


def test_ratio_is_that_which_a_kind_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    ratio = Ratio("long_events_total", "events_seen_total", "Share of long events.")
    monkeypatch.setattr(service.metrics, "RATIOS", {"long_events_ratio": ratio})
    labels = {"condition": "c"}
    view = view_of(slot(counters=[["events_seen_total", labels, 4]]))
    assert view.ratios() == [Sample("long_events_ratio", (("condition", "c"),), 0.0)]


def _facts(stream: Stream, lengths: list[int], delays: list[int]) -> dict[str, Any]:
    columns = [np.array(durations, np.int64) for durations in (lengths, delays)]
    return ContractFacts.of_events(stream, columns[0], columns[1], late=1).to_record()


def test_contracts_are_merged_over_the_slots_that_know_the_declaration() -> None:
    stream = Stream("x", "x", max_uncertainty_us=10, max_delay_us=20)
    wider = Stream("x", "x", max_uncertainty_us=30, max_delay_us=20)
    view = view_of(
        slot(contracts={"x": _facts(stream, [1, 9], [-3, 4])}),
        slot(contracts={"x": _facts(stream, [5], [19])}),
        slot(contracts={"x": _facts(wider, [25], [20])}),
        slot(),
    )
    found = view.contract(stream)
    assert found is not None
    assert (found.events, found.late, found.near) == (3, 2, {"max_uncertainty": 1, "max_delay": 1})
    assert found.lengths is not None
    assert (found.lengths.min_us, found.lengths.max_us) == (1, 9)
    assert found.delays is not None
    assert (found.delays.min_us, found.delays.max_us) == (-3, 19)
    other = view.contract(wider)
    assert other is not None
    assert other.events == 1
    assert view.contract(Stream("x", "x", max_uncertainty_us=11, max_delay_us=20)) is None
    assert view.contract(Stream("y", "y", max_uncertainty_us=10, max_delay_us=20)) is None


def test_counters_are_told_apart_by_a_label() -> None:
    counters = [
        ["events_rejected_total", {"stream": "x", "reason": "missing_key"}, 2],
        ["events_rejected_total", {"stream": "y", "reason": "missing_key"}, 4],
        ["events_rejected_total", {"stream": "x", "reason": "not_a_time"}, 1],
    ]
    view = view_of(slot(counters=counters), slot(counters=counters[:1]))
    found = view.by_label("events_rejected_total", "reason", stream="x")
    assert found == {"missing_key": 4, "not_a_time": 1}


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"null",
        b"{}",
        b'{"v":2,"at":1}',
        b'{"v":1,"at":"soon"}',
        b'{"v":1,"at":1,"counters":[["n_total",{}]]}',
        b'{"v":1,"at":1,"counters":[["n_total",{},null]]}',
        b'{"v":1,"at":1,"counters":3}',
        b'{"v":1,"at":1,"conditions":{"c":{}}}',
        b'{"v":1,"at":1,"histograms":[["h",{},{"buckets":[]}]]}',
        b'{"v":1,"at":1,"watermarks":{"x":3}}',
        b'{"v":1,"at":1,"contracts":{"x":{}}}',
        b'{"v":1,"at":1,"contracts":{"x":{"declared":{},"events":1,"late":0}}}',
        b'{"v":1,"at":1,"watermarks":{"x":{"mark":"late"}}}',
        b'{"v":1,"at":1,"histograms":[["h",{},{"buckets":[["much",1]],"sum":1}]]}',
    ],
)
def test_unreadable_record_is_counted_and_changes_nothing(value: bytes) -> None:
    view = view_of(slot(counters=[["n_total", {}, 1]]))
    view.apply(LogRecord(5, b"slot/0", value, 0))
    assert view.unreadable == 1
    assert view.total("n_total") == 1


def test_job_gives_its_newest_record() -> None:
    view = view_of()
    assert view.job() is None
    view.apply(LogRecord(1, b"job", b'{"v":1,"at":5,"state":"running","batch":3}', 0))
    view.apply(LogRecord(2, b"job", b'{"v":1,"at":6}', 0))
    job = view.job()
    assert job is not None
    assert (job["at"], job["state"], job["batch"], job["lag"]) == (5, "running", 3, {})
    assert view.unreadable == 1


def test_job_lists_few_of_many_records_that_cannot_be_read() -> None:
    view = MetricsView()
    found = [{"key": "k" * 1_000, "offset": it, "problem": "p" * 1_000} for it in range(30)]
    record = {"v": 1, "at": 1, "state": "running", "unreadable_records": found}
    for more, total in (({}, 30), ({"unreadable_records_total": 99}, 99)):
        view.apply(LogRecord(0, b"job", orjson.dumps(record | more), 0))
        job = view.job()
        assert job is not None
        assert [it["offset"] for it in job["unreadable_records"]] == list(range(20))
        assert {len(it["key"]) for it in job["unreadable_records"]} == {200}
        assert {len(it["problem"]) for it in job["unreadable_records"]} == {200}
        assert job["unreadable_records_total"] == total


def test_record_of_any_depth_is_counted_as_unreadable() -> None:
    view = MetricsView()
    deep = b"[" * 1_000 + b"]" * 1_000
    for offset, value in enumerate([b'{"v":%s}' % deep, deep]):
        view.apply(LogRecord(offset, b"job", value, 0))
    assert view.unreadable == 2


def test_losses_are_known_until_a_job_that_starts_knows_them_again() -> None:
    view = view_of()
    said = (
        b'{"v":1,"at":1,"state":"starting","lost":null}',
        b'{"v":1,"at":2,"state":"running","lost":{"t":{"0":3}}}',
        b'{"v":1,"at":3,"state":"starting","lost":null}',
        b'{"v":1,"at":4,"state":"starting"}',
        b'{"v":1,"at":5,"state":"running","lost":{}}',
    )
    found = []
    for number, value in enumerate(said):
        view.apply(LogRecord(number, b"job", value, 0))
        job = view.job()
        assert job is not None
        found.append((job["at"], job["lost"]))
    lost = {"t": {"0": 3}}
    assert found == [(1, None), (2, lost), (3, lost), (4, lost), (5, {})]


def test_record_of_a_job_is_ignored_after_another_job_has_claimed_the_installation() -> None:
    view = view_of()
    said = (
        # A job of an earlier version.
        b'{"v":1,"at":1,"state":"running"}',
        b'{"v":1,"at":2,"state":"starting","claim":null}',
        b'{"v":1,"at":3,"state":"running","claim":7}',
        b'{"v":1,"at":4,"state":"running","claim":9}',
        b'{"v":1,"at":5,"state":"failing","claim":7}',
        # A job that starts has no claim, and the former owner is still not the newest.
        b'{"v":1,"at":6,"state":"starting"}',
        b'{"v":1,"at":7,"state":"running","claim":8}',
        b'{"v":1,"at":8,"state":"stopped","claim":9}',
    )
    found = []
    for number, value in enumerate(said):
        view.apply(LogRecord(number, b"job", value, 0))
        job = view.job()
        assert job is not None
        found.append(job["at"])
    assert found == [1, 2, 3, 4, 4, 6, 6, 8]
    assert view.unreadable == 0
