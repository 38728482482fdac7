"""Explanations of combinations of event queries."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from correlation.errors import InvalidFieldError
from correlation.event_query.building import build_condition
from correlation.event_query.condition import EventQueryCondition
from correlation.event_query.explain import explain_combination
from correlation.event_query.relevance.analysis import analyse_relevance
from correlation.explaining import GivenRecord
from correlation.resources.attributes import Attribute
from correlation.resources.mapping import EventMapping
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from tests.oracle.event_queries import Event, results
from tests.support.event_queries import SMALL_STREAMS, judged, queries
from tests.support.messages import assert_names

if TYPE_CHECKING:
    from correlation.event_query.query import Query

SECOND = 1_000_000
MINUTE = 60 * SECOND
ATTRIBUTES = (
    Attribute("area", ("area",)),
    Attribute("level", ("level",), "integer"),
    Attribute("heat", ("heat",), "number"),
)
STREAMS = {
    name: Stream(name, name, 0, SECOND, attributes=ATTRIBUTES, clock="replay")
    for name in ("smoke", "report", "door")
}
ALARM = """DETECT Alarm {area {var X}}
ON event s: Smoke {area {var X}, level {>= 3}}
   not event r: Report {area {var X}}
WHERE s.rt.end <= r.rt.begin, r.rt.begin <= s.rt.end + 5 min END"""


def condition(text: str, **more: object) -> EventQueryCondition:
    return build_condition("q", 1, {"query": text, **more})


def event(name: str, time_us: int, key: str = "k", **attributes: object) -> GivenRecord:
    value = {"id": name, "key": key, "earliest": time_us, "latest": time_us, **attributes}
    return GivenRecord(value, form="record")


def explain(text: str = ALARM, **given: GivenRecord) -> dict[str, Any]:
    return explain_combination(condition(text), STREAMS, given)


SMOKE = event("s1", 7 * MINUTE, area="lab", level=3)


def test_result_without_a_negated_event_and_when_it_is_final() -> None:
    answer = explain(s=SMOKE)
    assert (answer["verdict"], answer["failed_step"]) == ("satisfied", None)
    assert [it["step"] for it in answer["steps"]] == [
        *("contract", "key", "attributes", "variables", "relations", "absence")
    ]
    assert answer["time"] == 7 * MINUTE
    assert answer["decided_when"] == {"smoke": 7 * MINUTE, "report": 12 * MINUTE}
    reported, stops = answer["notes"]
    assert_names(reported, "smoke has reached 1970-01-01T00:07:00Z")
    assert_names(reported, "report has reached 1970-01-01T00:12:00Z")
    assert_names(stops, "event r", "not given", "may stop")
    assert {alias: it["id"] for alias, it in answer["events"].items()} == {"s": "s1"}


@pytest.mark.parametrize("after_us", [0, 5 * MINUTE])
def test_negated_event_stops_the_combination(after_us: int) -> None:
    answer = explain(s=SMOKE, r=event("r1", 7 * MINUTE + after_us, area="lab"))
    assert (answer["verdict"], answer["failed_step"]) == ("not_satisfied", "absence")
    assert answer["explanation"] == (
        "event r (r1) stops the combination: s.rt.end <= r.rt.begin and "
        "r.rt.begin <= s.rt.end + 5 min"
    )


@pytest.mark.parametrize(
    ("report", "reasons"),
    [
        (
            event("r1", 12 * MINUTE + 1, area="lab"),
            ["r.rt.begin <= s.rt.end + 5 min does not hold", "left side is 1us after"],
        ),
        (event("r1", 6 * MINUTE, area="lab"), ["left side is 1min after"]),
        (
            event("r1", 8 * MINUTE, area="hall"),
            ["variable X", 's.area is "lab"', 'r.area is "hall"'],
        ),
        (event("r1", 8 * MINUTE), ["variable X", "r.area is missing"]),
        (event("r1", 8 * MINUTE, "other", area="lab"), ["its key is 'other'"]),
        (event("r1", 8 * MINUTE, area=7), ["stream report", "bad_attribute"]),
    ],
)
def test_negated_event_that_does_not_stop_it(report: GivenRecord, reasons: list[str]) -> None:
    answer = explain(s=SMOKE, r=report)
    assert answer["verdict"] == "satisfied"
    assert answer["explanation"].startswith("r does not stop")
    assert_names(answer["explanation"], *reasons)


@pytest.mark.parametrize(
    ("smoke", "step", "names"),
    [
        (
            event("s1", 0, area="lab", level="3"),
            "contract",
            ["s", "stream smoke", "bad_attribute"],
        ),
        (event("s1", 0, area="lab", level=2), "attributes", ["s.level is 2", "{>= 3}"]),
        (event("s1", 0, area="lab"), "attributes", ["s.level is missing", "{>= 3}"]),
        (event("s1", 0, level=4), "variables", ["variable X", "s.area is missing"]),
    ],
)
def test_first_failed_step_of_the_positive_event(
    smoke: GivenRecord, step: str, names: list[str]
) -> None:
    answer = explain(s=smoke, r=event("r1", 0, area="lab"))
    assert (answer["verdict"], answer["failed_step"]) == ("not_satisfied", step)
    assert_names(answer["explanation"], *names)
    assert answer["steps"][-1] == {"step": "absence", "passed": None, "detail": None}


PAIR = """DETECT Pair ON event s: Smoke {area {var X}, heat {> 0.5}} event d: Door {area {var X}}
WHERE s.rt.end < d.rt.end, not (d.rt.end > s.rt.end + 10 s or d.rt.end = s.rt.end + 3 s) END"""


@pytest.mark.parametrize(
    ("door", "step", "names"),
    [
        (event("d1", 4 * SECOND, area="lab"), None, ["no negated event"]),
        (event("d1", 0, area="lab"), "relations", ["s.rt.end < d.rt.end", "both are equal"]),
        (event("d1", 11 * SECOND, area="lab"), "relations", ["1s after the right side"]),
        (event("d1", 3 * SECOND, area="lab"), "relations", ["does not hold"]),
        (
            event("d1", 4 * SECOND, area="hall"),
            "variables",
            ['s.area is "lab"', 'd.area is "hall"'],
        ),
        (
            event("d1", 4 * SECOND, "z", area="lab"),
            "key",
            ["s has the key 'k'", "d has the key 'z'"],
        ),
    ],
)
def test_relations_among_positive_events(
    door: GivenRecord, step: str | None, names: list[str]
) -> None:
    answer = explain(PAIR, s=event("s1", 0, area="lab", heat=0.50001), d=door)
    assert answer["failed_step"] == step
    assert_names(answer["explanation"], *names)


def test_streams_without_keys_and_events_that_last() -> None:
    grid = Partitioning("grid")
    mapping = EventMapping(
        "lasting", id_path=("id",), begin_path=("from",), end_path=("to",), format="epoch_us"
    )
    streams = {
        "visit": Stream(
            "visit", "visit", 0, SECOND, mapping=mapping, partitioning=grid, max_length_us=MINUTE
        ),
        "smoke": Stream("smoke", "smoke", 0, SECOND, partitioning=grid),
    }
    text = """DETECT A ON event v: Visit not event s: Smoke
    WHERE v.rt.begin <= s.rt.end, s.rt.end <= v.rt.end END"""
    visit = GivenRecord({"id": "v1", "from": 10, "to": 20}, form="record")
    for time_us, verdict in ((9, "satisfied"), (10, "not_satisfied"), (20, "not_satisfied")):
        smoke = GivenRecord({"id": "s1", "earliest": time_us, "latest": time_us})
        answer = explain_combination(condition(text), streams, {"v": visit, "s": smoke})
        assert answer["verdict"] == verdict, answer["explanation"]
    assert answer["steps"][1]["detail"].endswith(": all events meet")
    assert answer["time"] == 20


_K = (Attribute("k", ("k",), "boolean"),)
_LASTING = EventMapping(
    "lasting", key_path=("key",), begin_path=("begin",), end_path=("end",), format="epoch_us"
)
_SMALL = {
    "a": Stream("a", "a", 0, 0, attributes=_K),
    "b": Stream("b", "b", 0, 0, attributes=_K, mapping=_LASTING, max_length_us=2),
    "c": Stream("c", "c", 0, 0, attributes=_K, mapping=_LASTING),
}


@st.composite
def small_events(draw: st.DrawFn) -> list[Event]:
    found = []
    for number in range(draw(st.integers(1, 6))):
        stream = draw(st.sampled_from("abc"))
        begin = draw(st.integers(0, 6))
        length = 0 if stream == "a" else draw(st.integers(0, 2))
        k = (("k", draw(st.booleans())),)
        found.append(Event(stream, begin, begin + length, k, number))
    return found


def as_record(it: Event) -> GivenRecord:
    times = {"begin": it.begin, "end": it.end}
    if it.stream == "a":
        times = {"earliest": it.end, "latest": it.end}
    return GivenRecord(
        {"key": "k", "id": str(it.id), **times, **dict(it.attributes)}, form="record"
    )


@given(queries(), small_events())
def test_verdicts_agree_with_the_judge(query: Query, pool: list[Event]) -> None:
    try:
        analyse_relevance(query, SMALL_STREAMS)
    except InvalidFieldError:
        reject()
    types = {name: times.stream for name, times in SMALL_STREAMS.items()}
    used = {it.type for it in query.events}
    found = EventQueryCondition("q", 1, query, {it: types[it] for it in used})
    expected = results(judged(query, SMALL_STREAMS), pool)
    of = {
        it.alias: [event for event in pool if event.stream == types[it.type]] for it in query.events
    }
    for chosen in product(*(of[it.alias] for it in query.positive)):
        positive = {it.alias: as_record(e) for it, e in zip(query.positive, chosen, strict=True)}
        tries = [{it.alias: as_record(e)} for it in query.negated for e in of[it.alias]]
        verdicts = [
            explain_combination(found, _SMALL, {**positive, **negated})["verdict"]
            for negated in (tries or [{}])
        ]
        assert (chosen in expected) == (set(verdicts) == {"satisfied"})
