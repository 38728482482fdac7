"""`output: factored` expands to the alarms of `output: pairs`, and to the oracle's pairs."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.columns import DictionaryColumn
from correlation.engine.heartbeats import CLOSED, Heartbeat
from correlation.engine.program import Block, Outcome, Program
from correlation.operators import OutputRecord
from correlation.resources.histogram import Bucket, Histogram
from correlation.resources.partitioning import Partitioning
from correlation.timing.factored.expanding import Expander
from tests.oracle.intervals import is_satisfied, probability
from tests.support.factored import expand
from tests.support.messages import assert_names
from tests.support.slots import (
    CONDITIONS,
    Arrival,
    Slot,
    control_record,
    draw_arrivals,
    draw_late_arrivals,
    judged_window,
    make_block,
    read_alarms,
)

DOCUMENTS = {
    **{name: it for name, it in CONDITIONS.items() if it["a"] != it["b"]},
    "certain": {"kind": "mutual_deadline", "a": "x", "b": "y", "window_us": 60, "threshold": "1"},
    "silent": {**CONDITIONS["near"], "report_probability": False},
    "blocks": {**CONDITIONS["near"], "block_size": 7, "block_interval_us": 10},
}


def controls_of(names: set[str], output: str) -> list[Any]:
    return [
        control_record(number, name, {**DOCUMENTS[name], "output": output})
        for number, name in enumerate(sorted(names))
    ]


def read_records(outcome: Outcome) -> list[OutputRecord]:
    return [
        record for result in outcome.results for record in result.records(outcome.detected_at_us)
    ]


def comparable(alarm: dict[str, Any]) -> str:
    """Write an alarm; probe and lookup are one where pairs are factored."""
    way = alarm["decided_by"].replace("lookup", "probe")
    return json.dumps({**alarm, "decided_by": way}, sort_keys=True)


def run(
    slots: dict[str, Slot], names: set[str], arrivals: list[Arrival], rng: random.Random
) -> dict[str, list[OutputRecord]]:
    """Send the same blocks through a slot for each output; restart them now and then."""
    for output, slot in slots.items():
        slot.advance(make_block([], controls_of(names, output)))
    # Events that wait for a block are evaluated when the streams are closed.
    closing = Block(heartbeats=[Heartbeat(name, None, CLOSED, None) for name in "xy"])
    found: dict[str, list[OutputRecord]] = {output: [] for output in slots}
    rest = list(arrivals)
    while rest:
        size = rng.choice([1, 5, 20, 80])
        taken, rest = rest[:size], rest[size:]
        restarts = rng.random() < 0.4
        for output, slot in slots.items():
            found[output] += read_records(slot.advance(make_block(taken, [])))
            if restarts:
                slot.restart()
    for output, slot in slots.items():
        found[output] += read_records(slot.advance(closing))
    return found


def counters(slot: Slot, name: str) -> dict[str, int]:
    """Sum the counters of a condition."""
    found: Counter[str] = Counter()
    for metric, labels, value in slot.advance(Block()).metrics["counters"]:
        if labels.get("condition") == name:
            found[metric] += value
    return found


SEEDS = st.integers(0, 2**32)
NAMES = st.sets(st.sampled_from(sorted(DOCUMENTS)), min_size=1, max_size=2)


@given(seed=SEEDS, count=st.integers(0, 120), names=NAMES, late=st.booleans())
def test_factored_records_expand_to_the_alarms_of_pairs(
    seed: int, count: int, names: set[str], *, late: bool
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    arrivals = draw_late_arrivals(rng, count) if late else draw_arrivals(rng, count)
    slots = {"pairs": Slot(), "factored": Slot()}
    found = run(slots, names, arrivals, rng)
    alarms = list(expand((record.value or b"") for record in found["factored"]))
    expected = [json.loads(record.value or b"") for record in found["pairs"]]
    assert sorted(map(comparable, alarms)) == sorted(map(comparable, expected))
    for name in names:
        counted = counters(slots["factored"], name)
        mine = [alarm for alarm in alarms if alarm["condition"] == name]
        assert counted["alarms_total"] == counted["pairs_total"] == len(mine)
        for metric in ("probe_region_events_total", "lookup_hits_total", "pairs_total"):
            assert counted[metric] == counters(slots["pairs"], name)[metric]
    written = sum(counters(slots["factored"], name)["factored_records_total"] for name in names)
    assert written == len(found["factored"])


@given(seed=SEEDS, count=st.integers(0, 80), name=st.sampled_from(sorted(DOCUMENTS)))
def test_factored_records_expand_to_the_judges_pairs(seed: int, count: int, name: str) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    arrivals = draw_arrivals(rng, count)
    found = run({"factored": Slot()}, {name}, arrivals, rng)["factored"]
    alarms = list(expand((record.value or b"") for record in found))
    document, window = DOCUMENTS[name], judged_window(DOCUMENTS[name])
    expected = {
        (a.id, b.id): probability(a.interval, b.interval, window)
        for a in arrivals
        for b in arrivals
        if (a.stream, b.stream, a.key) == (document["a"], document["b"], b.key)
        and is_satisfied(a.interval, b.interval, window)
    }
    pairs = [(alarm["a"]["id"], alarm["b"]["id"]) for alarm in alarms]
    assert sorted(pairs) == sorted(expected)
    assert not any(alarm["late"] for alarm in alarms)
    for pair, alarm in zip(pairs, alarms, strict=True):
        if name == "silent":
            assert "probability" not in alarm
        else:
            assert alarm["probability"] == pytest.approx(float(expected[pair]), abs=1e-9)


@given(seed=SEEDS)
def test_a_repeated_batch_gives_the_same_bytes(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    arrivals = draw_arrivals(rng, 60)
    slot = Slot()
    slot.advance(make_block(arrivals[:40], controls_of({"near", "narrow"}, "factored")))
    snapshot = slot.program.snapshot()
    block = make_block(arrivals[40:], [])
    again = Program.restore(
        snapshot.manifest, snapshot.added.__getitem__, slot.streams, slot.partitions
    )
    assert read_records(slot.advance(block)) == read_records(again.advance(block, lambda: 100))


def test_every_record_has_an_id_of_its_own_and_tables_stand_before_their_base_events() -> None:
    rng = random.Random(11)  # noqa: S311 - a reproducible shuffle, no secret
    found = run({"factored": Slot()}, set(DOCUMENTS), draw_arrivals(rng, 400), rng)["factored"]
    assert len({record.ident for record in found}) == len(found) > 500
    expander, uses = Expander(), Counter[str]()
    for record in found:
        value = json.loads(record.value or b"")
        assert record.key == (value.get("a") or value.get("b") or value)["key"].encode()
        if value["record"] == "targets":
            assert uses[value["table"]] == 0
            uses[value["table"]] = value["uses"]
        else:
            uses[value["table"]] -= 1
        list(expander.take(value))
    # A consumer has let go of every table: each said how many records refer to it.
    assert set(uses.values()) == {0}
    assert expander.held == 0


def test_few_records_tell_many_pairs() -> None:
    slots = {"pairs": Slot(), "factored": Slot()}
    arrivals = [
        Arrival(name, 0, "k", f"{name}{i}", i % 7, i % 7 + 3, i)
        for i in range(200)
        for name in "xy"
    ]
    found = {}
    for output, slot in slots.items():
        block = make_block(arrivals, controls_of({"near"}, output))
        found[output] = read_records(slot.advance(block))
    assert len(found["pairs"]) == 200 * 200
    assert len(found["factored"]) == 201
    size = {
        output: sum(len(it.value or b"") for it in records) for output, records in found.items()
    }
    assert 100 * size["factored"] < size["pairs"]


def test_latencies_are_those_of_the_last_pair_of_each_base_event() -> None:
    slot = Slot()
    arrivals = [Arrival("x", 0, "k", f"x{i}", i, i, i) for i in range(0, 30, 10)]
    arrivals += [Arrival("y", 0, "k", f"y{i}", i, i, i) for i in range(15)]
    slot.advance(make_block(arrivals, controls_of({"near"}, "factored")))
    metrics = slot.advance(Block()).metrics
    # Kafka's timestamps are the latest times here, and the wall clock is 100 µs. Of x0 and x10 the
    # last is y14, of x20 it is x20 itself.
    (found,) = [it for name, _, it in metrics["histograms"] if name == "pipeline_latency_seconds"]
    assert found["buckets"][-1][1] == 3
    assert found["sum"] == pytest.approx((86 + 86 + 80) / 1e6)


def test_streams_without_keys_are_told_without_keys() -> None:
    slot = Slot()
    slot.streams = {
        name: replace(stream, partitioning=Partitioning("grid"))
        for name, stream in slot.streams.items()
    }
    slot.program = Program(slot.streams, slot.partitions)
    arrivals = [Arrival(name, 0, "", name, 3, 4, 0) for name in "xy"]
    records = read_records(slot.advance(make_block(arrivals, controls_of({"near"}, "factored"))))
    assert [record.key for record in records] == [b"near", b"near"]
    (alarm,) = expand((record.value or b"") for record in records)
    assert (alarm["a"]["key"], alarm["b"]["key"]) == (None, None)


def test_stream_with_histograms_is_refused_by_a_sentence() -> None:
    slot = Slot()
    slot.streams["y"] = replace(slot.streams["y"], histograms=True)
    slot.program = Program(slot.streams, slot.partitions)
    metrics = slot.advance(make_block([], controls_of({"near"}, "factored"))).metrics
    found = metrics["conditions"]["near"]
    assert found["state"] == "failed"
    assert found["detail"].startswith("output: ")
    assert_names(found["detail"], "factored", "histograms", "use output pairs")


def test_events_buffered_with_a_histogram_are_written_pair_by_pair() -> None:
    """A stream that is declared again without histograms still holds events that have one."""
    slot = Slot()
    slot.advance(make_block([], controls_of({"near"}, "factored")))
    shape = Histogram((Bucket(-4, -2, 5 * 10**9), Bucket(-2, 0, 5 * 10**9))).shape_bytes
    block = make_block([Arrival("y", 0, "k", "y0", 0, 4)], [])
    (events,) = block.events
    with_shape = replace(events, shape=DictionaryColumn.from_list([shape]))
    slot.advance(replace(block, events=(with_shape,)))
    later = [Arrival("x", 0, "k", "x0", 0, 4), Arrival("y", 0, "k", "y1", 1, 5, 1)]
    alarms = read_alarms(slot.advance(make_block(later, [])))
    assert sorted(alarm.get("record", "alarm") for alarm in alarms) == ["alarm", "base", "targets"]
    found = [alarm["b"]["id"] for alarm in expand(map(json.dumps, alarms))]
    assert sorted(found) == ["y0", "y1"]
    assert counters(slot, "near")["alarms_total"] == 2
