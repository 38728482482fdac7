"""Late events, new and changed queries, resets, and timing conditions beside queries."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.engine.blocks import Block
from correlation.engine.heartbeats import RESET, Heartbeat
from correlation.engine.program import Program
from correlation.errors import UnknownRecordVersionError
from correlation.event_query.query import (
    And,
    AttributePattern,
    EventPattern,
    OutputAttribute,
    Query,
    Relation,
    Variable,
)
from tests.support.event_queries import ALARM_STREAMS, begin, end
from tests.support.query_slots import (
    AlarmSlot,
    closing_heartbeats,
    counters_of,
    make_query_block,
    query_control,
)
from tests.support.slots import control_record, read_alarms

if TYPE_CHECKING:
    from correlation.engine.blocks import Control

_AREA = (AttributePattern("area", Variable("X")),)
SMOKE, REPORT = EventPattern("s", "Smoke", _AREA), EventPattern("r", "Report", _AREA, negated=True)


def alarm(window: int) -> Query:
    """Return: smoke, and no report in the same area within a window."""
    near = (Relation(end("s"), "<=", begin("r")), Relation(begin("r"), "<=", end("s", window)))
    return Query("Alarm", (OutputAttribute("area", Variable("X")),), (SMOKE, REPORT), And(near))


def pair(window: int) -> Query:
    """Return: smoke, and later smoke in the same area within a window."""
    near = (Relation(end("s"), "<", end("t")), Relation(end("t"), "<=", end("s", window)))
    return Query("Pair", (), (SMOKE, replace(SMOKE, alias="t")), And(near))


def control(query: Query, offset: int = 0, name: str = "q", *, paused: bool = False) -> Control:
    return query_control(offset, query, ALARM_STREAMS, offset + 1, name, paused=paused)


def test_a_heartbeat_releases_a_result_and_not_before_a_report_can_no_longer_come() -> None:
    slot = AlarmSlot(control(alarm(10)))
    assert slot.send(("smoke", 100, "x"), marks={"smoke": 101, "report": 110}) == []
    assert slot.send(marks={"report": 111}) == [(("s100x",), False)]
    assert slot.send(marks={"smoke": 500, "report": 500}) == []
    assert slot.buffered() == {"smoke": 0, "report": 0}


def test_a_heartbeat_without_a_due_result_looks_at_no_event() -> None:
    slot = AlarmSlot(control(alarm(10)))
    slot.send(*[("smoke", 100 + 2 * n, "x") for n in range(5)], marks={"smoke": 200})
    slot.send(marks={"report": 111})
    before = counters_of(slot.last)
    assert before["query_combinations_total"] == 1
    slot.send(marks={"report": 112})
    assert counters_of(slot.last) == before


@pytest.mark.parametrize("keyed", [False, True])
def test_alarm_has_all_fields(*, keyed: bool) -> None:
    slot = AlarmSlot(control(alarm(10)), keyed=keyed)
    slot.send(("smoke", 100, "x"))
    outcome = slot.advance(make_query_block([], heartbeats=closing_heartbeats(slot.streams)))
    (found,) = read_alarms(outcome)
    key = "0" if keyed else None
    assert found == {
        "v": 1,
        "alarm_id": found["alarm_id"],
        "condition": "q",
        "version": 1,
        "kind": "event_query",
        "type": "Alarm",
        "attributes": {"area": "x"},
        "begin": 100,
        "end": 100,
        "events": {
            "s": {
                "id": "s100x",
                "stream": "smoke",
                "key": key,
                "earliest": 100,
                "latest": 100,
                "attributes": {"area": "x"},
            }
        },
        "late": False,
        "detected_at": 100,
    }
    (result,) = outcome.results
    assert result.heading(0).headers["ce_type"] == "coincide.event_query.v1"
    (record,) = result.records(0)
    assert record.ident == found["alarm_id"]
    assert record.key == (b"0" if keyed else b"q")
    assert result.ready_us().tolist() == [100]


def test_late_smoke_is_reported_with_late_if_its_result_is_not_published_yet() -> None:
    slot = AlarmSlot(control(alarm(10)))
    slot.rebuilds = False  # the mark `late` is checked
    slot.send(marks={"smoke": 101, "report": 105})
    assert slot.send(("smoke", 100, "x")) == []
    assert slot.send(marks={"report": 111}) == [(("s100x",), True)]


def test_late_smoke_of_a_published_time_is_reported_only_if_no_report_can_be_forgotten() -> None:
    slot = AlarmSlot(control(alarm(10)))
    slot.send(("report", 105, "x"), marks={"smoke": 200, "report": 200})
    assert slot.send(("smoke", 100, "x"), ("smoke", 101, "y")) == []
    assert counters_of(slot.last)["query_undecided_total"] == 2
    # Another query keeps the reports.
    slot = AlarmSlot(control(alarm(10)), control(alarm(500), 1, "wide"))
    slot.send(("report", 105, "x"), marks={"smoke": 200, "report": 200})
    assert slot.send(("smoke", 100, "x"), ("smoke", 101, "y")) == [(("s101y",), True)]
    assert counters_of(slot.last)["query_undecided_total"] == 0


def test_late_smoke_of_a_published_time_makes_pairs_with_what_is_buffered_once() -> None:
    slot = AlarmSlot(control(pair(10)), control(alarm(500), 1, "wide"))
    found = slot.send(("smoke", 100, "x"), ("smoke", 105, "x"), marks={"smoke": 200})
    assert found == [(("s100x", "s105x"), False)]
    assert sorted(slot.send(("smoke", 103, "x"), ("smoke", 104, "x"))) == [
        (("s100x", "s103x"), True),
        (("s100x", "s104x"), True),
        (("s103x", "s104x"), True),
        (("s103x", "s105x"), True),
        (("s104x", "s105x"), True),
    ]
    assert slot.send(marks={"smoke": 300}) == []


def test_a_late_report_stops_what_is_not_published_and_withdraws_nothing() -> None:
    slot = AlarmSlot(control(alarm(10)))
    slot.send(("smoke", 100, "x"), ("smoke", 100, "y"), marks={"smoke": 200, "report": 110})
    assert slot.send(("report", 103, "x")) == []
    assert slot.send(marks={"report": 111}) == [(("s100y",), False)]
    assert slot.send(("report", 103, "y"), marks={"report": 150}) == []


def test_a_new_query_reports_results_after_its_beginning_if_nothing_was_forgotten() -> None:
    slot = AlarmSlot(control(alarm(500), 0, "keeper"))
    slot.send(("smoke", 100, "x"), ("smoke", 130, "x"), marks={"smoke": 200, "report": 115})
    found = slot.send(marks={"report": 200}, controls=[control(alarm(10), 1)])
    # The progress was 104 when the query came.
    assert found == [(("s130x",), False)]


def test_a_new_query_reports_nothing_that_a_forgotten_report_might_have_stopped() -> None:
    slot = AlarmSlot(control(alarm(10)))
    slot.send(("report", 130, "x"), marks={"smoke": 126, "report": 300})
    # The buffer has the reports from 126 on.
    slot.send(controls=[control(alarm(500), 1, "wide")])
    slot.send(("smoke", 126, "y"), ("smoke", 126, "x"), marks={"smoke": 300})
    found = slot.send(marks={"report": 900}, name="wide")
    assert found == [(("s126y",), False)]
    slot = AlarmSlot()
    slot.send(("report", 130, "x"), marks={"smoke": 100, "report": 100})
    slot.send(controls=[control(alarm(10))])
    found = slot.send(
        ("smoke", 125, "x"), ("smoke", 130, "y"), ("smoke", 131, "x"), marks={"smoke": 300}
    )
    assert found == []
    # Nothing kept the report of 130.
    assert slot.send(marks={"report": 300}) == [(("s131x",), False)]
    assert counters_of(slot.last)["query_undecided_total"] == 2


@pytest.mark.parametrize("window", [5, 10, 50])
def test_a_changed_query_publishes_nothing_again(window: int) -> None:
    slot = AlarmSlot(control(alarm(500), 0, "keeper"), control(alarm(10), 1))
    events = [("smoke", 90, "x"), ("smoke", 100, "y"), ("smoke", 120, "x")]
    # Final are the results up to 96.
    assert slot.send(*events, marks={"smoke": 200, "report": 107}) == [(("s90x",), False)]
    changed = slot.send(controls=[control(alarm(window), 2)], marks={"report": 108})
    changed += slot.send(marks={"report": 600})
    assert changed == [(("s100y",), False), (("s120x",), False)]


def test_a_query_with_a_wider_window_is_silent_until_its_results_are_final() -> None:
    slot = AlarmSlot(control(alarm(500), 0, "keeper"), control(alarm(10), 1))
    slot.rebuilds = False  # the mark `late` is checked
    slot.send(marks={"smoke": 90, "report": 111})
    slot.send(("smoke", 115, "y"), marks={"smoke": 110, "report": 131})
    assert slot.send(marks={"smoke": 120}) == [(("s115y",), False)]
    # The progress was 119; that of the new version is 80.
    slot.send(controls=[control(alarm(50), 2)])
    # Not final: a report may still come.
    assert slot.send(("smoke", 110, "x"), ("smoke", 111, "z")) == []
    assert slot.send(("report", 132, "z"), marks={"report": 160}) == []
    assert slot.send(("smoke", 125, "x"), marks={"smoke": 300, "report": 161}) == [
        (("s110x",), True)
    ]
    assert slot.send(marks={"report": 176}) == [(("s125x",), False)]
    assert counters_of(slot.last)["query_undecided_total"] == 0


def lone_smoke(lag: int) -> Query:
    """Return: smoke, a report later by a lag or more, and no smoke right after the first."""
    relations = (
        Relation(end("s", lag), "<=", end("r")),
        Relation(end("r"), "<=", end("s", 200)),
        Relation(end("s"), "<", end("t")),
        Relation(end("t"), "<=", end("s", 10)),
    )
    report, other = replace(REPORT, negated=False), replace(SMOKE, alias="t", negated=True)
    return Query("Lone", (), (SMOKE, report, other), And(relations))


def test_a_result_in_time_is_reported_although_its_time_was_final_for_the_version_before() -> None:
    slot = AlarmSlot(control(alarm(500), 0, "keeper"), control(lone_smoke(100), 1))
    slot.send(("report", 160, "x"), ("report", 170, "z"), marks={"smoke": 100, "report": 300})
    # The progress was 189; that of the new version is 89.
    slot.send(controls=[control(lone_smoke(0), 2)])
    assert slot.send(("smoke", 150, "x"), ("smoke", 151, "z")) == []
    assert slot.send(("smoke", 158, "z"), marks={"smoke": 170}) == []
    assert slot.send(marks={"smoke": 171}) == [(("s150x", "r160x"), False)]
    assert slot.send(marks={"smoke": 300}) == [(("s158z", "r170z"), False)]


UNSATISFIABLE = replace(alarm(10), where=And((Relation(end("s"), "<", end("s")),)))


def test_a_query_is_as_before_after_a_version_that_cannot_be_satisfied() -> None:
    found = []
    for first in (UNSATISFIABLE, alarm(20)):
        slot = AlarmSlot(control(alarm(500), 0, "keeper"), control(first, 1))
        slot.send(("smoke", 90, "x"), marks={"smoke": 95, "report": 95})
        slot.send(controls=[control(alarm(10), 2)])
        found.append(slot.send(("smoke", 100, "x"), marks={"smoke": 200, "report": 105}))
        found.append(slot.send(("smoke", 210, "x"), marks={"smoke": 300, "report": 300}))
        assert counters_of(slot.last)["query_undecided_total"] == 0
    assert (
        found[:2] == found[2:] == [[(("s90x",), False)], [(("s100x",), False), (("s210x",), False)]]
    )


def test_a_version_that_cannot_be_satisfied_is_like_a_pause() -> None:
    slot = AlarmSlot(control(alarm(500), 0, "keeper"), control(alarm(10), 1))
    slot.send(("smoke", 100, "x"), ("smoke", 200, "x"), marks={"smoke": 300, "report": 50})
    assert slot.send(marks={"report": 150}, controls=[control(UNSATISFIABLE, 2)]) == []
    assert slot.send(marks={"report": 151}, controls=[control(alarm(10), 3)]) == []
    assert slot.send(marks={"report": 400}) == [(("s200x",), False)]


def test_a_paused_query_reports_nothing_that_became_final_meanwhile() -> None:
    slot = AlarmSlot(control(alarm(500), 0, "keeper"), control(alarm(10), 1))
    slot.send(("smoke", 100, "x"), ("smoke", 200, "x"), marks={"smoke": 300, "report": 50})
    assert slot.send(marks={"report": 150}, controls=[control(alarm(10), 2, paused=True)]) == []
    assert slot.send(marks={"report": 151}, controls=[control(alarm(10), 3)]) == []
    assert slot.send(marks={"report": 400}) == [(("s200x",), False)]


def reset(*streams: str) -> list[Heartbeat]:
    return [Heartbeat(it, None, RESET, None) for it in streams]


def test_p_reset_results_before_it_are_not_repeated_and_later_ones_wait() -> None:
    slot = AlarmSlot(control(alarm(10)), control(alarm(500), 1, "keeper"))
    slot.send(("smoke", 100, "x"), marks={"smoke": 90, "report": 90})
    # Wrong watermarks: the result is published too early.
    assert slot.send(marks={"smoke": 3_000, "report": 3_000}) == [(("s100x",), False)]
    assert slot.send(beats=reset("smoke", "report"), marks={"smoke": 99, "report": 99}) == []
    assert slot.send(("smoke", 100, "y"), ("smoke", 2_000, "x"), marks={"report": 110}) == []
    assert slot.send(marks={"smoke": 112, "report": 112}) == [(("s100y",), False)]
    assert slot.send(marks={"smoke": 4_000, "report": 4_000}) == [(("s2000x",), False)]
    state = next(iter(slot.program._conditions.values())).dump()  # noqa: SLF001 - stored state
    assert b'"sealed": {"smoke": []}' in state


def test_p_reset_pairs_of_old_and_new_events_are_found_once() -> None:
    slot = AlarmSlot(control(pair(10)), control(alarm(500), 1, "keeper"))
    found = slot.send(("smoke", 100, "x"), ("smoke", 105, "x"), marks={"smoke": 3_000})
    assert found == [(("s100x", "s105x"), False)]
    assert slot.send(beats=reset("smoke"), marks={"smoke": 90}) == []
    assert slot.send(("smoke", 103, "x")) == []
    assert sorted(slot.send(marks={"smoke": 200})) == [
        (("s100x", "s103x"), False),
        (("s103x", "s105x"), False),
    ]


@given(
    seed=st.integers(0, 2**32),
    window=st.integers(1, 6),
    wrong=st.sets(st.sampled_from(["smoke", "report"]), min_size=1),
)
def test_p_reset_every_result_once_and_after_it_all_that_is_known(
    seed: int, window: int, wrong: set[str]
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    slot = AlarmSlot(control(alarm(window)), control(pair(window), 1, "pair"))
    blocks = [_draw_block(rng, time) for time in range(0, 45, 3)]
    fault_at = rng.randrange(len(blocks))
    reset_at = fault_at + rng.randint(1, 4)
    before: Counter[tuple[str, ...]] = Counter()
    after: Counter[tuple[str, ...]] = Counter()
    for place, events in enumerate(blocks):
        marks = dict.fromkeys(("smoke", "report"), 3 * place - 4)
        if fault_at <= place < reset_at:
            marks = dict.fromkeys(wrong, 1000)
        slot.send(*events, marks=marks, beats=reset(*wrong) if place == reset_at else ())
        (before if place < reset_at else after).update(_names(slot))
    slot.send(beats=closing_heartbeats(slot.streams))
    after.update(_names(slot))
    assert max((before + after).values(), default=1) == 1
    lone, pairs = _judge([event for events in blocks for event in events], window)
    assert after.keys() <= lone | pairs
    # Of events that arrive after the reset nothing is missing.
    later = {_name(event) for events in blocks[reset_at:] for event in events}
    assert {it for it in pairs if later.issuperset(it)} <= after.keys()


def _draw_block(rng: random.Random, time: int) -> list[tuple[str, int, str]]:
    """Draw events of three microseconds, each at most once, in any order."""
    pool = [
        (stream, time + after, area)
        for stream, after, area in product(("smoke", "report", "smoke"), range(3), "xyz")
    ]
    return list(dict.fromkeys(rng.sample(pool, rng.randint(0, 5))))


def _name(event: tuple[str, int, str]) -> str:
    stream, time, area = event
    return f"{stream[0]}{time}{area}"


def _names(slot: AlarmSlot) -> list[tuple[str, ...]]:
    alarms = read_alarms(slot.last)
    return [tuple(event["id"] for event in alarm["events"].values()) for alarm in alarms]


def _judge(
    events: list[tuple[str, int, str]], window: int
) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
    """Return the smoke events without a report, and the pairs of smoke events."""
    smoke = [it for it in events if it[0] == "smoke"]
    reports = [it for it in events if it[0] == "report"]
    lone: set[tuple[str, ...]] = {
        (_name(s),)
        for s in smoke
        if not any(r[2] == s[2] and s[1] <= r[1] <= s[1] + window for r in reports)
    }
    pairs: set[tuple[str, ...]] = {
        (_name(s), _name(t))
        for s in smoke
        for t in smoke
        if s[2] == t[2] and 0 < t[1] - s[1] <= window
    }
    return lone, pairs


def test_a_timing_condition_and_a_query_share_the_buffers() -> None:
    within = {"kind": "within", "a": "smoke", "b": "report", "lower_us": -30, "upper_us": 2}
    slot = AlarmSlot(
        control_record(0, "near", {**within, "threshold": "1", "emit": "pairs"}),
        control(alarm(10), 1),
    )
    slot.send(("report", 80, "y"), ("report", 108, "y"), marks={"smoke": 100, "report": 100})
    # The query needs reports from 90 on, the timing condition from 100 - 30 on.
    assert slot.buffered() == {"smoke": 0, "report": 2}
    slot.send(("smoke", 105, "x"), marks={"smoke": 110, "report": 110})
    pairs = [(it["a"]["id"], it["b"]["id"]) for it in read_alarms(slot.last)]
    assert pairs == [("s105x", "r80y")]
    # The timing condition needs smoke from 108 on, the query from 100 on.
    assert slot.buffered() == {"smoke": 1, "report": 2}
    assert slot.send(marks={"report": 116}) == [(("s105x",), False)]


def test_state_of_another_version_is_refused() -> None:
    slot = AlarmSlot(control(alarm(10)))
    snapshot = slot.program.snapshot()
    state = bytes.fromhex(snapshot.manifest["operators"]["q"])
    assert json.loads(state.partition(b" ")[2])["streams"] == [["smoke"], ["report"]]
    snapshot.manifest["operators"]["q"] = state.replace(b"CoinQry1", b"CoinQry7").hex()
    with pytest.raises(UnknownRecordVersionError, match="version 7"):
        Program.restore(snapshot.manifest, slot.blobs.__getitem__, slot.streams, slot.partitions)


def test_a_timing_condition_becomes_a_query_and_back() -> None:
    timing = {"kind": "within", "a": "smoke", "b": "report", "lower_us": 0, "upper_us": 10}
    best = {**timing, "threshold": "1", "emit": "unmatched"}
    slot = AlarmSlot(control_record(0, "q", best))
    slot.send(("smoke", 100, "x"), marks={"smoke": 90, "report": 90})
    assert slot.send(controls=[control(alarm(10), 1)]) == []
    assert slot.send(marks={"smoke": 200, "report": 111}) == [(("s100x",), False)]
    outcome = slot.advance(Block([control_record(2, "q", best, 3)]))
    assert read_alarms(outcome) == []
