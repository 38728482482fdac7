"""Warnings on queries that never have a result."""

from __future__ import annotations

import pytest

from correlation.condition_kind import Load
from correlation.event_query.building import build_condition
from correlation.event_query.kind import EVENT_QUERY_KIND
from correlation.event_query.warnings import find_warnings
from correlation.resources.attributes import Attribute
from correlation.resources.streams import Stream
from tests.support.messages import assert_names

ATTRIBUTES = (Attribute("area", ("area",)), Attribute("level", ("level",), "integer"))
STREAMS = {
    "smoke": Stream("smoke", "smoke", 0, 1, attributes=ATTRIBUTES),
    "report": Stream("report", "report", 0, 1, attributes=ATTRIBUTES),
    "leak": Stream("leak", "leak", 60_000_000, 1, attributes=ATTRIBUTES),
}
AFTER = "s.rt.end <= o.rt.end, o.rt.end <= s.rt.end + 5 min"


def warnings(events: str, where: str = AFTER, threshold: str | None = None) -> list[str]:
    text = f"DETECT A ON {events} WHERE {where} END"
    values = {"kind": "event_query", "query": text, "threshold": threshold}
    return list(EVENT_QUERY_KIND.warn(build_condition("c", 1, values), STREAMS))


@pytest.mark.parametrize(
    ("events", "where"),
    [
        ("event s: Smoke not event o: Smoke", AFTER),
        ("event s: Smoke {area {var X}} not event o: Smoke {area {var X}}", AFTER),
        ("event s: Smoke {area {var X}, level {3}} not event o: Smoke {level {3}}", AFTER),
        (
            "event t: Report event s: Smoke not event o: Smoke",
            (
                "s.rt.end >= t.rt.end, s.rt.end <= t.rt.end + 5 min, o.rt.end >= t.rt.end, "
                "o.rt.end <= t.rt.end + 9 min"
            ),
        ),
    ],
)
def test_an_event_that_stops_itself_is_a_warning(events: str, where: str) -> None:
    (found,) = warnings(events, where)
    assert_names(found, "event s", "event o", "stops itself")


@pytest.mark.parametrize(
    ("events", "where"),
    [
        ("event s: Smoke not event o: Smoke", AFTER.replace("<=", "<", 1)),
        ("event s: Smoke not event o: Report", AFTER),
        ("event s: Smoke not event o: Smoke {level {3}}", AFTER),
        ("event s: Smoke {area {var X}} not event o: Smoke {level {3}}", AFTER),
        # Some events do not stop themselves.
        (
            "event t: Report event s: Smoke not event o: Smoke",
            (
                "s.rt.end >= t.rt.end, s.rt.end <= t.rt.end + 5 min, o.rt.end > t.rt.end, "
                "o.rt.end <= t.rt.end + 9 min"
            ),
        ),
    ],
)
def test_other_queries_have_no_warning(events: str, where: str) -> None:
    assert warnings(events, where) == []


@pytest.mark.parametrize(
    ("negated", "lower", "is_warned"),
    [("Leak", "<=", True), ("Leak", "<", False), ("Report", "<=", False)],
)
def test_an_uncertain_instant_that_stops_itself_is_a_warning(
    negated: str, lower: str, *, is_warned: bool
) -> None:
    where = AFTER.replace("<=", lower, 1)
    assert bool(warnings(f"event s: Leak not event o: {negated}", where, "0.5")) == is_warned


def test_relations_that_contradict_each_other_are_a_warning() -> None:
    (found,) = warnings("event s: Smoke", "s.rt.end < s.rt.begin")
    assert_names(found, "no events can satisfy")


def test_plan_and_validation_have_the_warnings() -> None:
    text = "DETECT A ON event s: Smoke WHERE s.rt.end < s.rt.begin END"
    condition = build_condition("c", 1, {"kind": "event_query", "query": text})
    expected = find_warnings(condition, STREAMS)
    assert len(expected) == 1
    assert EVENT_QUERY_KIND.plan(condition, STREAMS)["warnings"] == expected
    assert EVENT_QUERY_KIND.derive(condition, STREAMS, Load({}))["warnings"] == expected
