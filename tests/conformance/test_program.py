"""Program against the oracle for all orders of arrival, blocks and restarts."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.engine.heartbeats import CLOSED, Heartbeat
from correlation.engine.origin import Origin
from correlation.engine.program import MANIFEST_VERSION, Block, Control, Outcome, Program
from correlation.engine.progress import Progress
from correlation.errors import UnknownRecordVersionError
from correlation.resources.records import Resource, stream_to_document
from correlation.resources.streams import Stream
from correlation.timing.conditions import ALGORITHM_CHOICES
from tests.oracle.intervals import probability
from tests.support.messages import naming
from tests.support.slots import (
    CONDITIONS,
    DELAY,
    LONGEST,
    PARTITIONS,
    Arrival,
    Slot,
    advance_slot,
    beat,
    control_record,
    control_records,
    draw_arrivals,
    judged_pairs,
    judged_window,
    make_block,
    point,
    read_alarms,
    slot_of_points,
)


@pytest.mark.parametrize("algorithm", ALGORITHM_CHOICES)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(0, 60),
    restarts=st.booleans(),
    # Few conditions at a time: the widest of many would keep the buffers for all of them.
    names=st.sets(st.sampled_from(sorted(CONDITIONS)), min_size=1, max_size=2)
    | st.just(set(CONDITIONS)),
)
def test_program_reports_the_judges_pairs_once(
    algorithm: str, seed: int, count: int, names: set[str], *, restarts: bool
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    arrivals = draw_arrivals(rng, count)
    slot = Slot()
    controls = [
        control for control in control_records(algorithm) if control.key[10:].decode() in names
    ]
    alarms = read_alarms(slot.advance(make_block([], controls)))
    rest = list(arrivals)
    while rest:
        size = rng.randint(1, 12)
        # A block takes from each Kafka partition in order, not from all of them equally far.
        skipped = {(rng.choice("xy"), rng.randrange(PARTITIONS))} if rng.random() < 0.4 else set()
        taken = [a for a in rest if (a.stream, a.partition) not in skipped][:size]
        alarms += read_alarms(slot.advance(make_block(taken, [])))
        chosen = {a.id for a in taken}
        rest = [a for a in rest if a.id not in chosen]
        if restarts and rng.random() < 0.5:
            slot.restart()
    by_id = {arrival.id: arrival for arrival in arrivals}
    for name in names:
        document = CONDITIONS[name]
        found = [
            (alarm["a"]["id"], alarm["b"]["id"], alarm["probability"])
            for alarm in alarms
            if alarm["condition"] == name
        ]
        assert len({pair[:2] for pair in found}) == len(found)
        assert {pair[:2] for pair in found} == judged_pairs(arrivals, document), name
        for a, b, reported in found:
            exact = probability(by_id[a].interval, by_id[b].interval, judged_window(document))
            assert reported == pytest.approx(float(exact), abs=1e-9)
    assert not any(alarm["late"] for alarm in alarms)


def test_buffers_are_empty_when_both_streams_are_closed() -> None:
    slot = Slot()
    rng = random.Random(7)  # noqa: S311 - a reproducible shuffle, no secret
    slot.advance(make_block(draw_arrivals(rng, 200), control_records("lazy_lookup")))
    closed = [Heartbeat(name, None, CLOSED, None) for name in ("x", "y")]
    metrics = slot.advance(Block(heartbeats=closed)).metrics
    buffered = {
        labels["stream"]: value
        for name, labels, value in metrics["gauges"]
        if name == "buffered_events"
    }
    assert buffered == {"x": 0, "y": 0}
    slot.restart()
    assert slot.blobs == {}


def test_buffers_level_off_at_rate_times_horizon() -> None:
    slot = Slot()
    slot.advance(make_block([], control_records("lazy_lookup")))
    sizes = []
    for step in range(400):
        arrivals = [
            Arrival(name, p, "k", f"{name}{p}-{step}", step - 3, step, step)
            for name in ("x", "y")
            for p in range(PARTITIONS)
        ]
        metrics = slot.advance(make_block(arrivals, [])).metrics
        slot.restart()
        sizes.append(
            sum(value for name, _, value in metrics["gauges"] if name == "buffered_events")
        )
    # Horizon: 30 + LONGEST + DELAY of stream time, 4 events a unit; as many may await removal.
    assert max(sizes[100:]) <= 2 * 4 * (30 + LONGEST + DELAY)
    assert max(sizes[300:]) <= max(sizes[100:200])


def test_a_late_event_is_set_aside_and_still_correlated() -> None:
    slot = Slot()
    slot.advance(make_block([], control_records("lazy_lookup")[:1]))
    for p in range(PARTITIONS):
        early = [Arrival("x", p, "k", f"x{p}", 100, 100), Arrival("y", p, "k", f"y{p}", 100, 100)]
        slot.advance(make_block(early, []))
    outcome = slot.advance(make_block([Arrival("x", 0, "k", "late", 80, 80, 1)], []))
    assert [events.id.to_list() for events in outcome.late] == [[b"late"]]
    # The watermark itself is not late.
    at_mark = Arrival("x", 1, "k", "in time", 100 - DELAY, 100 - DELAY, 1)
    assert slot.advance(make_block([at_mark], [])).late == ()
    assert {(a["a"]["id"], a["b"]["id"], a["late"]) for a in read_alarms(outcome)} == {
        ("late", "y0", True),
        ("late", "y1", True),
    }


def test_order_of_the_parts_of_a_block_changes_nothing() -> None:
    """Tasks of Spark hand them over as they finish."""
    arrivals = [Arrival("x", p, "k", f"x{p}", 90, 100) for p in range(PARTITIONS)]
    block = make_block(
        [*arrivals, Arrival("y", 0, "k", "y", 95, 100)], control_records("lazy_lookup")[:1]
    )
    assert len(block.events) > PARTITIONS
    orders = (block, replace(block, events=block.events[::-1]))
    first, second = (read_alarms(Slot().advance(order)) for order in orders)
    assert len(first) == PARTITIONS
    assert first == second


def test_conditions_are_changed_paused_and_deleted_from_their_offset_on() -> None:
    slot = Slot()
    document = CONDITIONS["near"]

    def control(offset: int, version: int, *, paused: bool = False, **changes: object) -> Control:
        resource = Resource("condition", "near", version, 0, {**document, **changes}, paused)
        return Control(offset, b"condition/near", resource.to_record())

    def meet(time: int, *controls: Control) -> list[tuple[object, object]]:
        pair = [Arrival("x", 0, "k", f"x{time}", time, time), Arrival("y", 0, "k", "y", time, time)]
        alarms = read_alarms(slot.advance(make_block(pair, list(controls))))
        return [(alarm["version"], alarm["threshold"]) for alarm in alarms]

    assert meet(0) == []
    # Both conditions of the block apply in the order of their offsets, not of their arrival.
    assert meet(1_000, control(2, 2, threshold="0.9"), control(1, 1)) == [(2, 0.9)]
    assert meet(2_000, control(3, 2, paused=True)) == []
    assert meet(3_000, control(4, 2)) == [(2, 0.7)]
    assert meet(4_000, Control(5, b"condition/near", None)) == []
    metrics = slot.advance(Block()).metrics
    assert metrics["conditions"] == {}
    assert metrics["config_offset"] == 5


def test_twins_of_a_self_correlation_are_one_pair() -> None:
    for blocks in ((["first", "second"],), (["first"], ["second"])):
        slot = Slot()
        slot.advance(
            make_block([], [c for c in control_records("lazy_lookup") if c.key.endswith(b"/self")])
        )
        alarms = []
        for offset, names in enumerate(blocks):
            # Equal in everything, ids included: only their places in Kafka differ.
            twins = [Arrival("x", 0, "k", "twin", 5, 9, 2 * offset + i) for i in range(len(names))]
            alarms += read_alarms(slot.advance(make_block(twins, [])))
        assert [(a["a"]["id"], a["b"]["id"]) for a in alarms] == [("twin", "twin")]


def _keep_until(name: str, mark: int) -> Slot:
    """Return a slot with one condition, two points of each stream at 20, and watermarks there."""
    slot = Slot()
    control = next(
        c for c in control_records("lazy_lookup") if c.key == f"condition/{name}".encode()
    )
    slot.advance(make_block([], [control]))
    points = [Arrival(s, p, "k", f"{s}{p}", 20, 20) for s in ("x", "y") for p in range(PARTITIONS)]
    slot.advance(make_block(points, []))
    if name == "sure":
        # Buffered points are shorter than any event to come.
        slot.streams["y"] = Stream("y", "y", LONGEST, DELAY, LONGEST, clock="replay")
        slot.restart()
    slot.advance(Block(heartbeats=[Heartbeat("x", None, mark + DELAY, None)]))
    slot.restart()
    return slot


def test_points_buffered_before_their_stream_grew_longer_still_meet() -> None:
    alarms = read_alarms(
        _keep_until("sure", 15).advance(make_block([Arrival("x", 0, "k", "x", 20, 20, 1)], []))
    )
    assert {a["b"]["id"] for a in alarms} == {"y0", "y1"}


def test_a_self_correlation_keeps_what_either_order_needs() -> None:
    outcome = _keep_until("self_within", 35).advance(
        make_block([Arrival("x", 0, "k", "x", 38, 38, 1)], [])
    )
    assert {a["a"]["id"] for a in read_alarms(outcome)} == {"x0", "x1"}


def test_totals_tell_when_and_go_with_their_condition() -> None:
    slot = Slot()
    slot.streams = {n: Stream(n, n, LONGEST, DELAY, clock="live") for n in ("x", "y")}
    slot.program = Program(slot.streams, slot.partitions)
    slot.advance(make_block([], control_records("lazy_lookup")[:1]))
    pair = [Arrival("x", 0, "k", "x", 40, 40), Arrival("y", 0, "k", "y", 30, 60)]
    found = slot.advance(make_block(pair, [])).metrics
    # The wall clock is 100: the later latest, and the later stamp, are 60.
    for name in ("response_time_seconds", "pipeline_latency_seconds"):
        sums = [entry["sum"] for metric, _, entry in found["histograms"] if metric == name]
        assert sums == [pytest.approx(40e-6)]
    assert found["conditions"]["near"]["last_alarm_at"] == 100
    slot.restart()
    after = slot.advance(Block([Control(9, b"condition/near", None)])).metrics
    assert not [labels for _, labels, _ in after["counters"] if labels.get("condition") == "near"]


def test_response_time_is_not_observed_if_a_stream_does_not_follow_the_wall_clock() -> None:
    slot = Slot()
    slot.streams["x"] = replace(slot.streams["x"], clock="live")
    slot.program = Program(slot.streams, slot.partitions)
    slot.advance(make_block([], control_records("lazy_lookup")[:1]))
    pair = [Arrival("x", 0, "k", "x", 40, 40), Arrival("y", 0, "k", "y", 30, 60)]
    found = slot.advance(make_block(pair, [])).metrics["histograms"]
    assert [name for name, labels, _ in found if "condition" in labels] == [
        "pipeline_latency_seconds"
    ]


@pytest.mark.parametrize("change", ["name", "id"])
def test_a_stream_on_another_topic_begins_its_partitions_anew(change: str) -> None:
    slot = Slot()
    slot.origin = Origin({"x": "first", "y": "same"})
    slot.restart()
    slot.advance(make_block([], control_records("lazy_lookup")[:1]))
    old = [Arrival("x", p, "k", f"x{p}", 100, 100, 5_000) for p in range(PARTITIONS)]
    assert _mark(slot.advance(make_block(old, []))) == 100 - DELAY
    # Waits for an offset of the old topic.
    slot.advance(Block(heartbeats=[Heartbeat("x", 0, 5_000, 5_002)]))
    topic = "x-new" if change == "name" else "x"
    slot.streams["x"] = Stream("x", topic, LONGEST, DELAY, clock="replay")
    slot.partitions["x"] = 1
    slot.origin = Origin({"x": "second", "y": "same"})
    slot.restart()
    # The heartbeat names an offset that the new topic has not been read to.
    early = Heartbeat("x", 0, 900, 3)
    assert _mark(slot.advance(Block(heartbeats=[early]))) == 100 - DELAY
    outcome = slot.advance(make_block([Arrival("x", 0, "k", "new", 200, 200, 0)], []))
    assert (_mark(outcome), outcome.late) == (200 - DELAY, ())
    assert _mark(slot.advance(Block(progress=[Progress("x", 0, 3, None)]))) == 900 - DELAY
    assert _mark(slot.advance(Block(progress=[Progress("x", 0, 6_000, None)]))) == 900 - DELAY


def test_events_of_a_topic_that_was_recreated_still_meet() -> None:
    slot = Slot()
    slot.origin = Origin({"x": "first"})
    slot.restart()
    slot.advance(make_block([Arrival("x", 0, "k", "x0", 40, 50)], control_records("lazy_lookup")))
    slot.origin = Origin({"x": "second"})
    slot.restart()
    found = read_alarms(slot.advance(make_block([Arrival("y", 0, "k", "y0", 40, 50)], [])))
    assert ("near", "x0", "y0") in {(it["condition"], it["a"]["id"], it["b"]["id"]) for it in found}


UNMATCHED = {**CONDITIONS["near"], "emit": "unmatched"}


def test_conditions_of_an_earlier_config_topic_go_unless_they_come_again() -> None:
    slot = slot_of_points(
        control_record(0, "c", UNMATCHED),
        control_record(1, "gone", CONDITIONS["near"]),
        control_record(2, "other", CONDITIONS["near"]),
    )
    # An A that waits for its B is kept by the operator, not by the program.
    assert advance_slot(slot, [point("x0", 100), point("y0", 0)]) == []
    slot.origin = Origin(config_epoch=1)
    slot.restart()
    # The offsets begin again, below those of the earlier topic.
    again = [control_record(0, "c", UNMATCHED), control_record(1, "new", CONDITIONS["near"])]
    found = slot.advance(Block(again)).metrics
    assert found["config_offset"] == 1
    assert {name: it["state"] for name, it in found["conditions"].items()} == {
        "c": "running",
        "new": "running",
    }
    assert not [it for it in found["counters"] if it[1].get("condition") in {"gone", "other"}]
    slot.restart()
    assert advance_slot(slot, [], [beat("x", 500), beat("y", 500)]) == [("x0", None, False)]


def test_empty_config_topic_leaves_no_condition() -> None:
    slot = slot_of_points(control_record(0, "c", CONDITIONS["near"]))
    slot.origin = Origin(config_epoch=1)
    slot.restart()
    assert (
        slot.advance(make_block([point("x0", 1), point("y0", 1)], [])).metrics["conditions"] == {}
    )
    # Later records count from the beginning, and what comes later is not taken back.
    slot.advance(Block([control_record(0, "c", CONDITIONS["near"])]))
    slot.restart()
    assert set(slot.advance(Block()).metrics["conditions"]) == {"c"}


def _mark(outcome: Outcome) -> object:
    return outcome.metrics["watermarks"]["x"]["watermark"]


def _gauge(outcome: Outcome, gauge: str, stream: str) -> float:
    (found,) = (
        value
        for name, labels, value in outcome.metrics["gauges"]
        if (name, labels) == (gauge, {"stream": stream})
    )
    return float(found)


def _buffered(outcome: Outcome, stream: str) -> int:
    return int(_gauge(outcome, "buffered_events", stream))


def test_records_of_the_config_topic_count_once() -> None:
    slot = Slot()
    newer, older = control_records("lazy_lookup")[1], Control(0, b"condition/tie", None)
    assert slot.advance(Block([newer])).metrics["config_offset"] == newer.offset
    assert "tie" in slot.advance(Block([older])).metrics["conditions"]


def test_a_condition_waits_for_its_stream() -> None:
    slot = Slot()
    document = {**CONDITIONS["near"], "b": "z"}
    record = Resource("condition", "c", 1, 0, document).to_record()
    metrics = slot.advance(Block([Control(0, b"condition/c", record)])).metrics
    assert metrics["conditions"]["c"]["state"] == "waiting"
    slot.streams["z"] = Stream("z", "z", LONGEST, DELAY, clock="replay")
    slot.partitions["z"] = 1
    slot.restart()
    assert slot.advance(Block()).metrics["conditions"]["c"]["state"] == "running"


WAITING = {**CONDITIONS["near"], "b": "z"}
TO_COME = Stream("z", "z", LONGEST, DELAY, clock="replay")
REGISTERED = Resource("stream", "z", 1, 0, stream_to_document(TO_COME))


def _waiting_slot(*controls: Control) -> Slot:
    """Return a slot whose condition waits for stream z, far behind the watermark of stream x."""
    slot = Slot()
    slot.advance(make_block([], [control_record(0, "c", WAITING), *controls]))
    slot.advance(make_block([Arrival("x", 0, "k", "x0", 100, 100)], []))
    later = [Arrival("x", p, "q", f"x{p + 1}", 10**9, 10**9, 1) for p in range(PARTITIONS)]
    assert _mark(slot.advance(make_block(later, []))) == 10**9 - DELAY
    return slot


def _read_to_come(slot: Slot) -> list[tuple[str, str]]:
    """Run with stream z; return the pairs with its first event."""
    slot.streams["z"] = TO_COME
    slot.partitions["z"] = 1
    slot.restart()
    outcome = slot.advance(make_block([Arrival("z", 0, "k", "z0", 100, 100)], []))
    return [(alarm["a"]["id"], alarm["b"]["id"]) for alarm in read_alarms(outcome)]


@pytest.mark.parametrize("restarts", [0, 2])
def test_p_waiting_events_are_kept_for_a_stream_that_a_later_run_reads(restarts: int) -> None:
    slot = _waiting_slot(Control(1, REGISTERED.key, REGISTERED.to_record()))
    # An unfinished batch is completed with the streams of the run that began it.
    for _ in range(restarts):
        slot.restart()
        assert _buffered(slot.advance(Block()), "x") == 1 + PARTITIONS
    assert _read_to_come(slot) == [("x0", "z0")]
    # From now on the condition needs only events near the watermark.
    outcome = slot.advance(Block(heartbeats=[beat("z", 10**9)]))
    assert _gauge(outcome, "buffer_keep_timestamp_seconds", "x") > 900


@pytest.mark.parametrize(
    ("control", "missing"),
    [
        (Control(1, REGISTERED.key, REGISTERED.to_record()), {"z"}),
        (Control(1, REGISTERED.key, "not JSON"), set()),
        (Control(1, REGISTERED.key, None), set()),
        (Control(1, b"stream/other", None), set()),
    ],
)
def test_p_waiting_memory_is_bounded_for_a_stream_that_cannot_be_read(
    control: Control, missing: set[str]
) -> None:
    slot = Slot()
    slot.origin = Origin(missing=frozenset(missing))
    slot.restart()
    if control.key == REGISTERED.key and not missing:
        # Registered first, then unreadable or deleted.
        slot.advance(Block([Control(0, REGISTERED.key, REGISTERED.to_record())]))
    slot.advance(Block([control, control_record(6, "c", WAITING)]))
    outcome = slot.advance(make_block([Arrival("x", 0, "k", "x0", 100, 100)], []))
    assert _buffered(outcome, "x") == 0


def test_p_waiting_paused_conditions_keep_nothing() -> None:
    record = Resource("condition", "c", 2, 0, WAITING, paused=True)
    slot = _waiting_slot(
        Control(1, REGISTERED.key, REGISTERED.to_record()),
        Control(2, record.key, record.to_record()),
    )
    assert _buffered(slot.advance(Block()), "x") == 0


@pytest.mark.parametrize("version", [MANIFEST_VERSION - 1, MANIFEST_VERSION + 1])
def test_state_of_another_version_is_refused(version: int) -> None:
    slot = Slot()
    manifest = slot.program.snapshot().manifest | {"v": version}
    with pytest.raises(UnknownRecordVersionError, match=naming(version, "empty checkpoint")):
        Program.restore(manifest, slot.blobs.__getitem__, slot.streams, slot.partitions)


def test_state_that_looks_otherwise_has_another_version() -> None:
    """A change of the content of the state needs one of MANIFEST_VERSION, and then of this test."""
    slot = Slot()
    slot.advance(make_block([Arrival("x", 0, "k", "x0", 0, 9)], control_records("lazy_lookup")[:1]))
    found = json.loads(json.dumps(slot.program.snapshot().manifest))
    (condition,) = found.pop("conditions")
    named = {name: sorted(part) for name, part in found.items() if isinstance(part, dict)}
    assert (sorted(found.keys() - named.keys()), named, len(condition), found["v"]) == (
        ["config_epoch", "config_offset", "next_number", "to_come", "v"],
        {
            "buffers": ["x", "y"],
            "forgotten": ["x", "y"],
            "joined_by": ["x", "y"],
            "operators": [],
            "topic_ids": [],
            "topics": ["x", "y"],
            "totals": ["contracts", "counters", "histograms"],
            "watermarks": ["streams", "unclaimed"],
        },
        3,
        6,
    )
    assert found["joined_by"]["x"] == ["key", 1]
    assert found["buffers"]["x"] == [0]
    # Max time and bound of the dropped events; watermarks of a stream and its partitions.
    assert len(found["forgotten"]["x"]) == 2
    watermark = found["watermarks"]["streams"]["x"]
    assert sorted(watermark) == ["max_latest", "partitions", "refused", "watermark"]
    assert {len(partition) for partition in watermark["partitions"]} == {6}
