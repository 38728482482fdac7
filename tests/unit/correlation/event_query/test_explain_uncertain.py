"""Explanations of combinations with uncertain instants."""

from __future__ import annotations

from typing import Any

import pytest

from correlation.event_query.building import build_condition
from correlation.event_query.explain import explain_combination
from correlation.explaining import GivenRecord
from correlation.resources.attributes import Attribute
from correlation.resources.streams import Stream

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
    assert details["relations"] == "the relations among the positive events hold with probability 1"
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
    assert answer["explanation"] == "event b (a1) stops the combination with certainty"
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
