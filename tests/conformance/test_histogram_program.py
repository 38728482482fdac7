"""Program against the oracle for histogram events, in any order, with any blocks and restarts."""

from __future__ import annotations

import random
from collections import OrderedDict
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.condition_kind import Load
from correlation.engine.heartbeats import CLOSED, Heartbeat
from correlation.engine.program import Block
from correlation.kinds import to_condition
from correlation.resources.mapping import EventMapping
from correlation.resources.records import Resource
from correlation.resources.template import Template
from correlation.timing.conditions import ALGORITHM_CHOICES, TimingCondition
from correlation.timing.histograms import windows as histogram_windows
from correlation.timing.plan import derive_costs, plan_condition
from tests.oracle import histograms as oracle
from tests.support.histogram_slots import (
    DECLARED,
    TEMPLATES,
    expected_pairs,
    give_shapes,
    histogram_slot,
    histogram_verdicts,
)
from tests.support.histograms import told
from tests.support.slots import (
    CONDITIONS,
    LONGEST,
    PARTITIONS,
    Arrival,
    Slot,
    control_record,
    control_records,
    draw_arrivals,
    judged_window,
    make_block,
    read_alarms,
)
from tests.unit.correlation.timing.histogram_strategies import described


def feed(
    slot: Slot, rng: random.Random, arrivals: list[Arrival], *, restarts: bool
) -> list[dict[str, Any]]:
    """Advance by blocks of any cut; gives the alarms."""
    alarms = []
    rest = list(arrivals)
    while rest:
        skipped = {(rng.choice("xy"), rng.randrange(PARTITIONS))} if rng.random() < 0.4 else set()
        taken = [a for a in rest if (a.stream, a.partition) not in skipped][: rng.randint(1, 12)]
        alarms += read_alarms(slot.advance(make_block(taken, [])))
        chosen = {a.id for a in taken}
        rest = [a for a in rest if a.id not in chosen]
        if restarts and rng.random() < 0.5:
            slot.restart()
    return alarms


@pytest.mark.parametrize("algorithm", ALGORITHM_CHOICES)
@pytest.mark.parametrize("declared", DECLARED)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(0, 50),
    restarts=st.booleans(),
    cheap=st.booleans(),
    names=st.sets(st.sampled_from(sorted(CONDITIONS)), min_size=1, max_size=2)
    | st.just(set(CONDITIONS)),
)
def test_program_reports_the_judges_pairs_of_histogram_events_once(
    declared: str,
    algorithm: str,
    seed: int,
    count: int,
    names: set[str],
    *,
    restarts: bool,
    cheap: bool,
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    arrivals = give_shapes(rng, draw_arrivals(rng, count), declared)
    slot = histogram_slot(declared)
    controls = [it for it in control_records(algorithm) if it.key[10:].decode() in names]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(histogram_windows, "_KEPT", OrderedDict())
        patch.setattr(histogram_windows, "SLICE", 10**9 if cheap else 0)
        slot.advance(make_block([], controls))
        alarms = feed(slot, rng, arrivals, restarts=restarts)
    for name in names:
        expected = expected_pairs(arrivals, CONDITIONS[name])
        found = {
            (alarm["a"]["id"], alarm["b"]["id"]): alarm["probability"]
            for alarm in alarms
            if alarm["condition"] == name
        }
        assert sorted(found) == sorted(expected), name
        assert sum(alarm["condition"] == name for alarm in alarms) == len(found)
        for pair, reported in found.items():
            assert reported == pytest.approx(float(expected[pair]), abs=1e-12)
    assert not any(alarm["late"] for alarm in alarms)


EMIT = {**CONDITIONS["near"], "threshold": "0.3"}


@pytest.mark.parametrize("emit", ["best", "unmatched"])
@pytest.mark.parametrize("declared", DECLARED)
@pytest.mark.parametrize("name", ["near", "narrow", "by", "self_within", "tie"])
@given(seed=st.integers(0, 2**32), count=st.integers(0, 50), restarts=st.booleans())
def test_program_reports_the_judges_best_or_none_of_histogram_events_once(
    declared: str, emit: str, name: str, seed: int, count: int, *, restarts: bool
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    arrivals = give_shapes(rng, draw_arrivals(rng, count), declared)
    slot = histogram_slot(declared)
    document = {**CONDITIONS[name], "emit": emit}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(histogram_windows, "_KEPT", OrderedDict())
        patch.setattr(histogram_windows, "SLICE", rng.choice([0, 1, 10**9]))
        slot.advance(make_block([], [control_record(0, "c", document)]))
        alarms = feed(slot, rng, arrivals, restarts=restarts)
        closed = [Heartbeat(stream, None, CLOSED, None) for stream in "xy"]
        alarms += read_alarms(slot.advance(Block(heartbeats=closed)))
    verdicts = histogram_verdicts(arrivals, document)
    found = [(alarm["a"]["id"], alarm["b"] and alarm["b"]["id"]) for alarm in alarms]
    assert sorted(found, key=str) == sorted(
        ((a, b) for a, b in verdicts.items() if (b is None) == (emit == "unmatched")), key=str
    )


def test_a_stream_gets_shapes_later_and_loses_them_again() -> None:
    slot = Slot()
    slot.advance(make_block([], control_records("lazy_lookup")[:1]))
    plain = Arrival("x", 0, "k", "x0", 0, 4)
    assert read_alarms(slot.advance(make_block([plain], []))) == []
    bare = dict(slot.streams)
    slot.streams |= histogram_slot("own").streams
    slot.restart()
    shape = described((-12, -3, "0.5"), (-3, 0, "0.5"))
    later = [
        Arrival("y", 0, "k", "y0", 0, 12, 0, shape),
        Arrival("x", 0, "k", "x1", 10, 22, 1, shape),
    ]
    found = read_alarms(slot.advance(make_block(later, [])))
    assert {(it["a"]["id"], it["b"]["id"]) for it in found} == {("x0", "y0"), ("x1", "y0")}
    # Buffered events keep their shapes, and the operator its wider reach.
    slot.streams |= bare
    slot.restart()
    found = read_alarms(slot.advance(make_block([Arrival("y", 1, "k", "y1", 30, 40)], [])))
    window = judged_window(CONDITIONS["near"])
    exact = oracle.probability(told(shape.moved(22)), [(30, 40, Fraction(1))], window)
    assert [(it["a"]["id"], it["probability"]) for it in found] == [
        ("x1", pytest.approx(float(exact)))
    ]


@pytest.mark.parametrize(
    "mapping",
    [
        EventMapping(form="template", detected_path=("at",), template_path=("model",)),
        EventMapping(form="time", time_path=("at",), before_us=LONGEST),
    ],
)
def test_conditions_go_on_when_a_template_or_the_mapping_changes(mapping: EventMapping) -> None:
    """Events with the template's last version are still buffered."""
    slot = Slot()
    first, second = TEMPLATES["y"]
    template_form = EventMapping(form="template", detected_path=("at",), template_path=("model",))
    old = replace(slot.streams["y"], mapping=template_form, templates=(Template("t", first),))
    slot.streams["y"] = old
    slot.restart()
    slot.advance(make_block([], control_records("lazy_lookup")[:2]))
    with_shape = Arrival("y", 0, "k", "y0", -8, 0, 0, first)
    slot.advance(make_block([with_shape], []))
    templates = (Template("t", second, 2),) if mapping.form == "template" else ()
    slot.streams["y"] = replace(old, mapping=mapping, templates=templates)
    slot.restart()
    outcome = slot.advance(make_block([Arrival("x", 0, "k", "x0", -4, 0)], []))
    assert {it["state"] for it in outcome.metrics["conditions"].values()} == {"running"}
    window = judged_window(CONDITIONS["near"])
    exact = oracle.probability([(-4, 0, Fraction(1))], told(first), window)
    (alarm,) = [it for it in read_alarms(outcome) if it["condition"] == "near"]
    assert (alarm["b"]["id"], alarm["probability"]) == ("y0", pytest.approx(float(exact)))


def test_a_pair_of_histogram_twins_is_reported_once_by_id() -> None:
    shape = TEMPLATES["x"][0]
    slot = histogram_slot("templates")
    self_condition = [it for it in control_records("auto") if it.key.endswith(b"/self")]
    slot.advance(make_block([], self_condition))
    twins = [
        Arrival("x", 0, "k", name, -3, 9, offset, it)
        for offset, (name, it) in enumerate([("b", shape), ("a", None), ("b", shape)])
    ]
    alarms = read_alarms(slot.advance(make_block(twins, [])))
    found = sorted((it["a"]["id"], it["b"]["id"]) for it in alarms)
    assert found == [("a", "b"), ("a", "b"), ("b", "b")]


def test_a_late_histogram_event_is_marked_late() -> None:
    slot = histogram_slot("templates")
    slot.advance(make_block([], control_records("lazy_lookup")[:1]))
    for partition in range(PARTITIONS):
        points = [Arrival(s, partition, "k", f"{s}{partition}", 100, 100) for s in "xy"]
        slot.advance(make_block(points, []))
    late = Arrival("x", 0, "k", "late", 76, 88, 1, TEMPLATES["x"][0])
    outcome = slot.advance(make_block([late], []))
    assert [events.shape is not None for events in outcome.late] == [True]
    assert {(it["a"]["id"], it["late"]) for it in read_alarms(outcome)} == {("late", True)}


def test_plan_says_how_histogram_streams_are_evaluated() -> None:
    resource = Resource("condition", "c", 1, 0, CONDITIONS["near"])
    condition = to_condition(resource)
    assert isinstance(condition, TimingCondition)
    streams = histogram_slot("templates").streams
    plan = plan_condition(condition, streams)
    assert "s-windows" in plan["why"]
    # Supports: lower - 12, lower + 12, upper - 12, upper + 12.
    longest = plan["regions"]["base_a"]["max_uncertainty"]
    assert [longest[end] for end in ("LH", "LL", "RL", "RH")] == ["-37us", "-13us", "13us", "37us"]
    load = Load({"x": 10.0, "y": 10.0}, 1.0)
    derived = derive_costs(condition, streams, load)
    widths = [
        sum(
            oracle.is_satisfied(told(u), told(v.moved(s)), judged_window(CONDITIONS["near"]))
            for s in range(-60, 61)
        )
        for u in TEMPLATES["x"]
        for v in TEMPLATES["y"]
    ]
    expected = 10 * 10 * sum(widths) / len(widths) / 1e6 * 3600
    assert derived["chance_alarms_per_hour"] == pytest.approx(expected)
    own = derive_costs(condition, histogram_slot("own").streams, load)
    assert "chance_alarms_per_hour" not in own
    assert own["buffer_horizon_us"]["x"] == 25 + LONGEST + 9
