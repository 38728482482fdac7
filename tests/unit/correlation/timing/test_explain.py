"""Explanations of pairs: the oracle's verdict, the program's behaviour, and the wording."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.events import Events
from correlation.engine.program import Block, Control, Program
from correlation.explaining import GivenRecord, Place
from correlation.kinds import KINDS, condition_from_document
from correlation.resources.partitioning import Partitioning
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from correlation.timing.conditions import ALGORITHM_CHOICES
from tests.oracle.intervals import Window, is_satisfied, probability
from tests.support.messages import assert_names

SECOND = 1_000_000
NEAR: dict[str, Any] = {
    "kind": "mutual_deadline",
    "a": "x",
    "b": "y",
    "window_us": SECOND,
    "threshold": "0.6",
}


def _stream(name: str, max_uncertainty_us: int = 2 * SECOND, **changes: Any) -> Stream:  # noqa: ANN401 - as Stream
    return Stream(name, name, max_uncertainty_us, SECOND, **{"clock": "replay", **changes})


STREAMS = {"x": _stream("x", SECOND // 2), "y": _stream("y")}


def _record(earliest: object, latest: object, key: str = "k", **more: object) -> GivenRecord:
    return GivenRecord({"id": "e", "key": key, "earliest": earliest, "latest": latest, **more})


def explain(
    a: GivenRecord, b: GivenRecord, streams: dict[str, Stream] | None = None, /, **changes: object
) -> dict[str, Any]:
    document = {**NEAR, **changes}
    condition = condition_from_document("c", 1, document)
    answer = KINDS[condition.kind].explain(condition, streams or STREAMS, {"a": a, "b": b})
    assert json.loads(json.dumps(answer)) == answer
    return answer


def test_satisfied_pair_has_its_numbers() -> None:
    answer = explain(_record(1_500_000, 2_000_000), _record(0, 2_000_000))
    assert (answer["verdict"], answer["failed_step"]) == ("satisfied", None)
    assert answer["explanation"] == "the probability is 0.625 (5/8), the threshold is 0.6"
    assert (answer["probability"], answer["probability_exact"]) == (0.625, "5/8")
    assert (answer["missing"], answer["s_us"], answer["expired_by_us"]) == (0.0, 0, 0)
    assert answer["window"] == {
        "lower_us": -SECOND,
        "upper_us": SECOND,
        "floor_us": None,
        "ceiling_us": None,
        "width": "narrow",
    }
    # l_A = 0.5 s, targets 0 to 2 s long: LL10's offsets, LH and RH by hand.
    assert answer["regions"]["base_a"]["lh_us"] == -SECOND - SECOND // 5
    assert answer["regions"]["base_a"]["region"] in {"left_probe", "right_probe"}
    assert answer["decided_by"] == ["probe", "lookup", "satisfaction_region"]
    assert answer["algorithm"] == "lazy_lookup"
    assert [it["passed"] for it in answer["steps"]] == [True] * 4
    assert answer["notes"] == []


def test_position_decides_where_the_window_is_wide() -> None:
    answer = explain(_record(0, 0), _record(SECOND, SECOND), window_us=10 * SECOND)
    assert answer["window"]["width"] == "wide"
    for base, offset in (("base_a", SECOND), ("base_b", -SECOND)):
        found = answer["regions"][base]
        assert (found["region"], found["offset_us"]) == ("satisfaction", offset)
        assert found["lh_us"] <= found["ll_us"] <= offset <= found["rl_us"] <= found["rh_us"]
    assert answer["decided_by"] == ["satisfaction_region"]


def test_emit_says_what_else_decides_on_the_report() -> None:
    """The pair satisfies; whether it is reported depends on others as well."""
    pair = _record(1_500_000, 2_000_000), _record(0, 2_000_000)
    best = explain(*pair, emit="best")
    assert (best["verdict"], best["decided_by"], best["algorithm"]) == (
        "satisfied",
        ["probe"],
        "best",
    )
    (note,) = best["notes"]
    assert_names(note, "emit is best", "higher probability")
    unmatched = explain(*pair, emit="unmatched")
    assert (unmatched["verdict"], unmatched["decided_by"]) == ("satisfied", None)
    assert_names(unmatched["notes"][0], "this B prevents")
    far = pair[0], _record(0, SECOND)
    assert_names(explain(*far, emit="unmatched")["notes"][0], "this B does not prevent")
    assert explain(*far, emit="best")["notes"] == []
    assert_names(explain(*pair, max_pairs=5)["notes"][0], "max_pairs", "missing if")
    assert explain(*far, max_pairs=5)["notes"] == []


@pytest.mark.parametrize(
    ("a", "b", "step", "names"),
    [
        (
            _record(0, SECOND),
            _record(0, 0),
            "contract",
            ["A", "stream x", "longer_than_declared", "1000000 us"],
        ),
        (_record(0, 0), _record(1, 0), "contract", ["B", "stream y", "earliest_after_latest"]),
        (_record(0, 0), _record("soon", 0), "contract", ["not_a_time"]),
        (
            _record(0, 0, "north"),
            _record(0, 0, "south"),
            "key",
            ["A has the key 'north'", "B has 'south'"],
        ),
        (
            _record(0, 0),
            _record(5 * SECOND, 5 * SECOND),
            "expired",
            ["B ends 5s after A", "-1.2s to 1.8s", "3.2s too far"],
        ),
        (_record(5 * SECOND, 5 * SECOND), _record(0, 0), "expired", ["B ends 5s before A"]),
        (
            _record(1_500_000, 2_000_000),
            _record(0, SECOND),
            "threshold",
            ["0.25 (1/4)", "0.35 (7/20) below", "threshold 0.6"],
        ),
    ],
)
def test_first_step_that_fails_is_told(
    a: GivenRecord, b: GivenRecord, step: str, names: list[str]
) -> None:
    answer = explain(a, b)
    assert (answer["verdict"], answer["failed_step"]) == ("not_satisfied", step)
    assert_names(answer["explanation"], *names)
    assert answer["decided_by"] is None
    assert (answer["probability"] is None) == (step == "contract")
    names = [it["step"] for it in answer["steps"]]
    taken = [it["passed"] for it in answer["steps"]]
    assert taken == [True] * names.index(step) + [False] + [None] * (3 - names.index(step))


def test_missing_probability_and_distance_are_exact() -> None:
    answer = explain(_record(0, 3), _record(SECOND + 1, SECOND + 1), threshold="0.6666666667")
    assert (answer["failed_step"], answer["probability_exact"]) == ("threshold", "2/3")
    assert answer["missing_exact"] == "1/30000000000"
    assert "0.666667 (2/3): 3.33333e-11 below" in answer["explanation"]
    tie = explain(_record(0, 2), _record(SECOND + 1, SECOND + 1), threshold="0.5")
    assert (tie["verdict"], tie["probability_exact"], tie["missing_exact"]) == (
        "satisfied",
        "1/2",
        "0",
    )
    far = explain(_record(0, 0), _record(5 * SECOND, 5 * SECOND))
    assert far["expired_by_us"] == 5 * SECOND - far["reach"]["max_us"]


def test_horizon_is_a_distance() -> None:
    far = {"kind": "deadline", "deadline_us": SECOND, "horizon_us": 3 * SECOND}
    answer = explain(_record(9 * SECOND, 9 * SECOND), _record(0, 0), **far)
    assert (answer["failed_step"], answer["probability"]) == ("expired", 1.0)
    assert answer["expired_by_us"] == 6 * SECOND


def test_window_too_narrow_for_any_pair_is_said_to_be() -> None:
    streams = {name: _stream(name, 60 * SECOND, min_uncertainty_us=60 * SECOND) for name in "xy"}
    minute = _record(0, 60 * SECOND)
    answer = explain(minute, minute, streams)
    assert answer["failed_step"] == "threshold"
    assert_names(answer["explanation"], "too narrow")


def test_late_arrival_is_noted_and_does_not_change_the_verdict() -> None:
    live = {name: _stream(name, clock="live") for name in "xy"}
    late = GivenRecord({"key": "k", "earliest": 0, "latest": 0}, record_timestamp_us=1_500_000)
    answer = explain(_record(0, 0), late, live)
    assert answer["verdict"] == "satisfied"
    (note,) = answer["notes"]
    assert_names(note, "B", "1.5s after its latest time", "max_delay is 1s", "missed if")
    assert answer["b"]["delay_us"] == 1_500_000


def test_streams_without_keys_meet() -> None:
    grid = {name: _stream(name, partitioning=Partitioning("grid")) for name in "xy"}
    answer = explain(_record(0, 0, "north"), _record(0, 0, "south"), grid)
    assert answer["verdict"] == "satisfied"


def test_stream_with_itself_is_told_in_the_order_of_its_report() -> None:
    after = {"kind": "within", "b": "x", "lower_us": 0, "upper_us": SECOND}
    early, late = _record(0, 0), _record(SECOND, SECOND)
    for a, b, swapped in ((early, late, False), (late, early, True)):
        answer = explain(a, b, **after)
        assert (answer["verdict"], answer["swapped"]) == ("satisfied", swapped)
        assert (answer["a"]["latest"], answer["b"]["latest"]) == (0, SECOND)
    # Only the other order satisfies: it is explained.
    before = {**after, "lower_us": -SECOND, "upper_us": 0}
    answer = explain(early, late, **before)
    assert (answer["verdict"], answer["swapped"], answer["s_us"]) == ("satisfied", True, -SECOND)


def test_record_does_not_meet_itself() -> None:
    value = {"id": "e", "key": "k", "earliest": 0, "latest": 0}
    one, other = (GivenRecord(value, place=Place("t", 0, offset)) for offset in (3, 4))
    assert explain(one, one, b="x")["failed_step"] == "same_event"
    assert explain(one, other, b="x")["verdict"] == "satisfied"


LENGTH = 12
EVENTS = st.tuples(st.integers(-40, 40), st.integers(0, LENGTH)).map(
    lambda found: (found[0] - found[1], found[0])
)


TIMING_KINDS = ("deadline", "delay", "mutual_deadline", "within")


@st.composite
def conditions(draw: st.DrawFn) -> tuple[dict[str, Any], Window]:
    """Draw a condition, and as the judge has it."""
    threshold = draw(st.sampled_from(["0.05", "0.3", "0.5", "0.75", "1"]))
    ct = Fraction(threshold)
    kind = draw(st.sampled_from(TIMING_KINDS))
    end, horizon = draw(st.integers(0, 30)), draw(st.integers(30, 50))
    document: dict[str, Any] = {"kind": kind, "a": "x", "b": "y", "threshold": threshold}
    if kind == "mutual_deadline":
        return document | {"window_us": end}, (-end, end, None, None, ct)
    if kind == "within":
        lower = draw(st.integers(-30, end))
        return document | {"lower_us": lower, "upper_us": end}, (lower, end, None, None, ct)
    document |= {f"{kind}_us": end, "horizon_us": horizon}
    if kind == "deadline":
        return document, (None, end, -horizon, None, ct)
    return document, (end, None, None, horizon, ct)


def _explain(
    document: dict[str, Any], a: tuple[int, int], b: tuple[int, int], streams: dict[str, Stream]
) -> dict[str, Any]:
    condition = condition_from_document("c", 1, document)
    records = {"a": _record(*a), "b": _record(*b)}
    return KINDS[condition.kind].explain(condition, streams, records)


@given(conditions(), EVENTS, EVENTS)
def test_p_explain_says_what_the_judge_decides(
    condition: tuple[dict[str, Any], Window], a: tuple[int, int], b: tuple[int, int]
) -> None:
    document, window = condition
    answer = _explain(document, a, b, {name: _stream(name, LENGTH) for name in "xy"})
    exact = probability(a, b, window)
    assert answer["probability_exact"] == str(exact)
    assert answer["probability"] == float(exact)
    assert (answer["verdict"] == "satisfied") == is_satisfied(a, b, window)
    assert answer["missing_exact"] == str(max(window[4] - exact, Fraction(0)))
    if answer["verdict"] == "satisfied":
        assert answer["failed_step"] is None
        assert "violated" not in {it["region"] for it in answer["regions"].values()}
    elif answer["failed_step"] == "threshold":
        assert exact < window[4]
    else:
        assert answer["failed_step"] == "expired"
        assert answer["expired_by_us"] > 0
        assert {it["region"] for it in answer["regions"].values()} == {"violated"}


@pytest.mark.parametrize("algorithm", ALGORITHM_CHOICES)
@given(conditions(), EVENTS, st.lists(EVENTS, min_size=1, max_size=6), st.booleans())
def test_p_explain_says_what_the_program_does(
    algorithm: str,
    condition: tuple[dict[str, Any], Window],
    a: tuple[int, int],
    bs: list[tuple[int, int]],
    b_first: bool,  # noqa: FBT001 - drawn
) -> None:
    document = {**condition[0], "algorithm": algorithm}
    streams = {name: _stream(name, LENGTH) for name in "xy"}
    program = Program(streams, {"x": 1, "y": 1})
    record = Resource("condition", "c", 1, 0, document).to_record()
    rows_a = [(b"k", b"a", *a, 0, 0, a[1])]
    rows_b = [(b"k", b"%d" % i, *b, 0, i, b[1]) for i, b in enumerate(bs)]
    blocks = [[Events.from_rows("x", rows_a)], [Events.from_rows("y", rows_b)]]
    alarms = {}
    controls = [Control(0, b"condition/c", record)]
    for parts in reversed(blocks) if b_first else blocks:
        # No progress: nothing is forgotten.
        outcome = program.advance(Block(controls, parts), lambda: 0)
        for result in outcome.results:
            for found in result.records(0):
                alarm = json.loads(found.value or b"")
                alarms[alarm["b"]["id"]] = alarm
    for i, b in enumerate(bs):
        answer = _explain(document, a, b, streams)
        assert (answer["verdict"] == "satisfied") == (str(i) in alarms)
        if str(i) in alarms:
            assert alarms[str(i)]["decided_by"] in answer["decided_by"]
            assert alarms[str(i)]["probability"] == pytest.approx(answer["probability"], abs=1e-12)
