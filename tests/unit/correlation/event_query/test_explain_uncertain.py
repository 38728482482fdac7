"""Explanations of combinations with uncertain instants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from correlation.event_query.building import build_condition
from correlation.event_query.explain import explain_combination, find_stopping
from correlation.explaining import GivenRecord, Place
from correlation.resources.attributes import Attribute
from correlation.resources.mapping import EventMapping
from correlation.resources.streams import Stream
from tests.support.messages import assert_names

MINUTE = 60_000_000
AREA = (Attribute("area", ("area",)),)
STREAMS = {
    name: Stream(name, name, uncertainty, MINUTE, attributes=AREA, clock="replay")
    for name, uncertainty in (("leak", 10 * MINUTE), ("report", 0), ("door", 0))
}
REPORTED = """DETECT A {area {var X}} ON event a: Leak {area {var X}} event d: Door
   not event r: Report {area {var X}} not event b: Leak {area {var X}}
WHERE a.rt.end < d.rt.end, d.rt.end <= a.rt.end + 20 min,
  r.rt.end >= a.rt.end, r.rt.end <= a.rt.end + 5 min,
  b.rt.end > a.rt.end, b.rt.end <= a.rt.end + 1 min END"""


def event(name: str, first: int, last: int | None = None, area: str = "lab") -> GivenRecord:
    value = {
        "id": name,
        "key": "k",
        "earliest": first * MINUTE,
        "latest": (first if last is None else last) * MINUTE,
        "area": area,
    }
    return GivenRecord(value, form="record")


LEAK, DOOR = event("a1", 0, 10), event("d1", 20)


def explain(text: str = REPORTED, threshold: str = "0.5", **given: GivenRecord) -> dict[str, Any]:
    found = build_condition("q", 1, {"query": text, "threshold": threshold})
    return explain_combination(found, STREAMS, given)


@pytest.mark.parametrize(
    ("given", "exact", "failed"),
    [
        ({}, "1", None),
        # The report stops a leak of the last three minutes.
        ({"r": event("r1", 12)}, "7/10", None),
        ({"r": event("r1", 10)}, "1/2", None),
        ({"r": event("r1", 9)}, "1/2", None),
        ({"r": event("r1", 6)}, "1/2", None),
        ({"r": event("r1", 12, area="hall")}, "1", None),
        # The door opens before three in ten leaks, so this relation holds with 7/10.
        ({"d": event("d1", 7)}, "7/10", None),
        ({"d": event("d1", 7), "r": event("r1", 12)}, "7/10", None),
        ({"d": event("d1", 7), "r": event("r1", 6)}, "1/5", "threshold"),
        ({"d": event("d1", 0)}, "0", "relations"),
        # The leak itself is not after itself.
        ({"b": LEAK}, "1", None),
    ],
)
def test_probability_follows_from_relations_and_given_negated_events(
    given: dict[str, GivenRecord], exact: str, failed: str | None
) -> None:
    answer = explain(REPORTED, "0.5", **{"a": LEAK, "d": DOOR, **given})
    assert answer["absence"]["probability_exact"] == exact
    assert answer["failed_step"] == failed
    assert answer["verdict"] == ("satisfied" if failed is None else "not_satisfied")
    assert [it["step"] for it in answer["steps"]][-3:] == ["relations", "absence", "threshold"]


def test_details_name_probabilities_and_the_threshold() -> None:
    answer = explain(threshold="0.8", a=LEAK, d=DOOR, r=event("r1", 12))
    details = {it["step"]: it["detail"] for it in answer["steps"]}
    assert details["relations"].endswith("with probability 1")
    assert details["absence"] == "r (r1) stops it with probability 0.3 (3/10)"
    assert details["threshold"] == "the probability is 0.7 (7/10), below the threshold 0.8"
    assert answer["failed_step"] == "threshold"
    assert answer["absence"]["instant"] == "a"
    assert answer["absence"]["windows"]["b"][0]["hi_us"] == MINUTE
    assert set(answer["decided_when"]) == {"leak", "report", "door"}


def test_an_event_that_contains_its_own_time_stops_itself() -> None:
    text = """DETECT A ON event a: Leak not event b: Leak
    WHERE b.rt.end >= a.rt.end, b.rt.end <= a.rt.end + 1 min END"""
    answer = explain(text, a=LEAK, b=LEAK)
    assert (answer["failed_step"], answer["absence"]["probability_exact"]) == ("absence", "0")
    assert_names(answer["explanation"], "event b (a1)", "with certainty")
    other = explain(text, a=LEAK, b=event("a2", 0, 10))
    assert other["failed_step"] is None


def test_one_event_of_two_aliases_has_one_instant() -> None:
    text = """DETECT A ON event d: Door not event b: Leak not event c: Leak
    WHERE b.rt.end <= d.rt.end, b.rt.end >= d.rt.end - 5 min,
      c.rt.end >= d.rt.end, c.rt.end <= d.rt.end + 5 min END"""
    door = event("d1", 5)
    answer = explain(text, d=door, b=LEAK, c=LEAK)
    assert answer["absence"]["probability_exact"] == "0"
    two = explain(text, d=door, b=LEAK, c=event("a2", 0, 10))
    assert two["absence"]["probability_exact"] == "1/4"


# The events a3, r3 and r4 of docs/queries.md, in minutes after 10:00.
LATE = """DETECT Unreported {area {var X}} ON event a: Leak {area {var X}}
   not event r: Report {area {var X}}
WHERE a.rt.end <= r.rt.end, r.rt.end <= a.rt.end + 5 min END"""
A3, R3, R4 = event("a3", 40, 50), event("r3", 46), event("r4", 44)


def at(offset: int, record: GivenRecord, topic: str = "report") -> GivenRecord:
    return replace(record, place=Place(topic, 0, offset))


def explain_with(
    found: Sequence[GivenRecord], given: Mapping[str, GivenRecord], threshold: str = "0.5"
) -> dict[str, Any]:
    condition = build_condition("q", 1, {"query": LATE, "threshold": threshold})
    return explain_combination(condition, STREAMS, given, {"r": found})


@pytest.mark.parametrize(
    ("found", "given", "exact"),
    [
        ([at(1, R4), at(0, R3)], {}, "2/5"),
        ([at(0, R3)], {"r": R4}, "2/5"),
        # A given event is found again.
        ([at(1, R4), at(0, R3)], {"r": at(1, R4)}, "2/5"),
        ([at(1, R4), at(0, R3)], {"r": R3}, "2/5"),
        ([at(0, R3)], {}, "1/2"),
        ([at(1, R4)], {}, "3/5"),
        # Two records with one content are two events, with one exact time.
        ([at(1, R4), at(2, R4)], {}, "3/5"),
        ([at(1, event("r5", 41)), at(0, R3)], {}, "2/5"),
        ([at(0, event("r6", 46, area="hall"))], {}, "1"),
    ],
)
def test_probability_follows_from_all_events_that_were_found(
    found: list[GivenRecord], given: dict[str, GivenRecord], exact: str
) -> None:
    answer = explain_with(found, {"a": A3, **given})
    assert answer["absence"]["probability_exact"] == exact
    reported = float(answer["absence"]["probability"]) >= 0.5
    assert answer["verdict"] == ("satisfied" if reported else "not_satisfied")


def test_events_that_were_found_are_candidates_and_in_the_answer() -> None:
    answer = explain_with([at(1, R4), at(0, R3)], {"a": A3}, "0.45")
    assert (answer["verdict"], answer["failed_step"]) == ("not_satisfied", "threshold")
    assert answer["explanation"] == "the probability is 0.4 (2/5), below the threshold 0.45"
    assert [it["id"] for it in answer["found"]["r"]] == ["r4", "r3"]
    assert answer["events"]["r"]["id"] == "r4"
    shown = {it["id"]: it["in_window_exact"] for it in answer["absence"]["candidates"]}
    assert shown == {"r4": "2/5", "r3": "1/2"}
    assert not [note for note in answer["notes"] if "not given" in note]


def test_an_event_with_uncertain_copies_in_kafka_is_several_events() -> None:
    text = """DETECT A ON event a: Leak not event b: Leak
    WHERE b.rt.end <= a.rt.end, b.rt.end >= a.rt.end - 1 h END"""
    condition = build_condition("q", 1, {"query": text, "threshold": "0.4"})
    a = at(0, LEAK, "leak")
    copies = [at(2, LEAK, "leak"), at(1, LEAK, "leak")]
    answer = explain_combination(condition, STREAMS, {"a": a}, {"b": copies})
    assert answer["absence"]["probability_exact"] == "1/3"
    tests = find_stopping(condition, STREAMS, {"a": a, "b": copies[0]})
    # The leak is at most its own time.
    assert [tests["b"](it) for it in (a, *copies, event("x", 11, 20))] == [True, True, True, False]


def test_events_are_searched_for_unless_the_verdict_is_certain() -> None:
    condition = build_condition("q", 1, {"query": LATE, "threshold": "0.55"})
    for given, searched in (
        ({}, True),
        ({"r": R4}, True),
        # The probability is below the threshold, but not yet that of all events.
        ({"r": R3}, True),
        ({"r": event("r", 45), "a": event("a", 45)}, False),
    ):
        tests = find_stopping(condition, STREAMS, {"a": A3, **given})
        assert (set(tests) == {"r"}) == searched
        if searched:
            assert [tests["r"](it) for it in (R3, R4, event("r", 40), event("r", 39))] == [
                *(True, True, False, False)
            ]


def test_exact_event_is_compared_with_the_begin_and_the_end_of_an_event_that_lasts() -> None:
    lasting = EventMapping("lasting", begin_path=("begin",), end_path=("end",))
    visit = Stream("visit", "visit", 0, MINUTE, mapping=lasting, clock="replay")
    query = """DETECT A ON event v: Visit not event r: Report not event b: Leak
WHERE v.rt.begin < r.rt.begin, r.rt.end = v.rt.end, b.rt.end = v.rt.end END"""
    condition = build_condition("q", 1, {"query": query, "threshold": "0.5"})
    times = {"id": "v1", "key": "k", "begin": 5 * MINUTE, "end": 7 * MINUTE}
    given = {"v": GivenRecord(times, form="event")}
    streams = {**STREAMS, "visit": visit}
    for minute, exact in ((7, "0"), (6, "1"), (8, "1")):
        report = event("r1", minute)
        answer = explain_combination(condition, streams, {**given, "r": report})
        assert answer["absence"]["probability_exact"] == exact
        assert find_stopping(condition, streams, given)["r"](report) == (exact == "0")


# The last leak before a door opens; a relation with the door limits the leaks after it.
LAST = """DETECT A ON event a: Leak event d: Door not event b: Leak
WHERE a.rt.end <= d.rt.end + 5 min, d.rt.end <= a.rt.end + 30 min,
  b.rt.end > a.rt.end, b.rt.end <= d.rt.end END"""
LAST_OR_EQUAL = LAST.replace("b.rt.end >", "b.rt.end >=")
EARLY = LAST.replace(
    "b.rt.end > a.rt.end",
    "(b.rt.end > a.rt.end and a.rt.end < d.rt.end - 7 min or b.rt.end > a.rt.end + 1 h)",
)


@pytest.mark.parametrize(
    ("text", "given", "exact"),
    [
        (LAST, {"b": event("a2", 4, 14)}, "19/50"),
        (LAST, {"b": event("a2", 6)}, "2/5"),
        (LAST, {"b": event("a2", 12)}, "0"),
        (LAST, {"b": event("a2", 13)}, "1"),
        (LAST, {"b": event("a2", 12, 22)}, "1"),
        (LAST, {"b": LEAK}, "1"),
        # The leak stops itself if it is not after the door.
        (LAST_OR_EQUAL, {"b": LEAK, "d": event("d1", 7)}, "3/10"),
        (LAST_OR_EQUAL, {"b": event("a1", 5), "a": event("a1", 5), "d": event("d1", 5)}, "0"),
        # Only a leak more than 7 minutes before the door is stopped.
        (EARLY, {"b": event("a2", 10, 12)}, "1/2"),
        (EARLY, {"b": event("a2", 10, 14)}, "3/4"),
    ],
)
def test_probability_follows_from_relations_of_uncertain_negated_events_to_exact_ones(
    text: str, given: dict[str, GivenRecord], exact: str
) -> None:
    answer = explain(text, "0.0001", **{"a": LEAK, "d": event("d1", 12), **given})
    assert answer["absence"]["probability_exact"] == exact


def test_windows_are_cut_by_fixed_ends() -> None:
    given = {"a": LEAK, "d": event("d1", 12), "b": event("a2", 4, 14)}
    (window,) = explain(LAST, "0.5", **given)["absence"]["windows"]["b"]
    assert (window["first_us"], window["last_us"]) == (0, 12 * MINUTE)
    assert (window["lo_us"], window["hi_us"], window["negated"]["hi_us"]) == (0, None, 12 * MINUTE)
    assert window["negated"]["lo_us"] is window["positive"]["lo_us"] is None
    # A window that no leak is in is not shown.
    late = explain(LAST, "0.5", **{**given, "a": event("a1", 13, 20)})
    assert late["absence"]["windows"]["b"] == []
    condition = build_condition("q", 1, {"query": LAST, "threshold": "0.1"})
    test = find_stopping(condition, STREAMS, {it: given[it] for it in ("a", "d")})["b"]
    records = [event("x", 0), event("x", 1), event("x", 12), event("x", 13), event("x", 12, 20)]
    assert [test(it) for it in [*records, event("x", 11, 20)]] == [
        *(False, True, True, False, False, True)
    ]
