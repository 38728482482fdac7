"""Checks, plan, costs, picture and explanation of queries that state the time of their result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from correlation.condition_kind import Load
from correlation.errors import InvalidFieldError
from correlation.event_query.building import build_condition, stored_query
from correlation.event_query.checking import check_streams
from correlation.event_query.condition import EventQueryCondition
from correlation.event_query.explain import explain_combination
from correlation.event_query.language.documents import query_to_document
from correlation.event_query.language.parser import parse_query
from correlation.event_query.picture import draw_constraints
from correlation.event_query.plan import derive_costs, plan_query
from correlation.explaining import GivenRecord
from correlation.resources.mapping import EventMapping
from correlation.resources.streams import Stream
from tests.support.messages import assert_names, naming

SECOND = 1_000_000
MINUTE = 60 * SECOND
STREAMS = {
    name: Stream(name, name, 0, SECOND, clock="replay") for name in ("smoke", "report", "fire")
}
ABSENCE = """DETECT Alarm ON event s: Smoke not event r: Report
WHERE s.rt.end <= r.rt.begin, r.rt.begin <= s.rt.end + 5 min"""
PAIR = """DETECT Pair ON event s: Smoke event f: Fire
WHERE s.rt.end <= f.rt.end, f.rt.end <= s.rt.end + 2 min"""
LATER = f"{ABSENCE}, Alarm.rt.end = s.rt.end + 5 min"


def condition(text: str, *, as_json: bool = False) -> EventQueryCondition:
    query: object = f"{text} END"
    if as_json:
        query = query_to_document(parse_query(f"{text} END"))
    return build_condition("q", 1, {"query": stored_query(query)})


def event(name: str, time_us: int) -> GivenRecord:
    value = {"id": name, "key": "k", "earliest": time_us, "latest": time_us}
    return GivenRecord(value, form="record")


def test_plan_and_picture_name_the_time() -> None:
    plan = plan_query(condition(LATER), STREAMS)
    assert plan["result"] == {"begin": "s.rt.begin", "end": "s.rt.end + 5 min"}
    sentence = "A result Alarm begins at s.rt.begin and ends at s.rt.end + 5 min."
    assert [plan["sentences"][0], *plan["sentences"][2:]] == [
        sentence,
        "A result is final when Report has reached its end, and Smoke its end - 5 min.",
        "A Smoke event s is kept until Report has reached its end + 5 min, and Smoke its end.",
        "A Report event r is kept until Report has reached its end + 5 min, and Smoke its end.",
    ]
    assert plan["progress"]["function"] == (
        "progress(Alarm) = min(progress(smoke) + 5 min, progress(report))"
    )
    assert f">{sentence}<" in draw_constraints(condition(LATER), STREAMS)
    plain = plan_query(condition(ABSENCE), STREAMS)
    assert plain["result"] == {"begin": "s.rt.begin", "end": "s.rt.end"}
    assert len(plain["sentences"]) == len(plan["sentences"]) - 1
    both = condition(f"{PAIR}, Pair.rt.begin = f.rt.end, Pair.rt.end = f.rt.end")
    assert "A result Pair begins and ends at f.rt.end." in plan_query(both, STREAMS)["sentences"]


@pytest.mark.parametrize(
    ("text", "minutes", "horizons"),
    [
        (ABSENCE, 5, {"smoke": 5, "report": 5}),
        # A shifted time changes nothing.
        (LATER, 5, {"smoke": 5, "report": 5}),
        (PAIR, 0, {"smoke": 2, "fire": 0}),
        # The result waits for fires that have not come yet.
        (f"{PAIR}, Pair.rt.end = s.rt.end", 2, {"smoke": 2, "fire": 2}),
        (f"{PAIR}, Pair.rt.end = s.rt.end + 1 h", 2, {"smoke": 2, "fire": 2}),
        (f"{PAIR}, Pair.rt.end = min(s.rt.end, f.rt.end) - 1 ms", 2, {"smoke": 2, "fire": 2}),
    ],
)
def test_costs_count_from_the_last_end_of_the_events(
    text: str, minutes: int, horizons: dict[str, int]
) -> None:
    text = text.replace("- 1 ms", "- 1 ms, Pair.rt.begin = s.rt.end - 1 ms")
    derived = derive_costs(condition(text), STREAMS, Load({}))
    assert derived["worst_case_alarm_latency_us"] == minutes * MINUTE + SECOND
    assert derived["buffer_horizon_us"] == {
        name: by * MINUTE + SECOND for name, by in horizons.items()
    }


def explain(text: str, **given: GivenRecord) -> dict[str, Any]:
    return explain_combination(condition(text), STREAMS, given)


def test_explanation_has_the_time_and_the_progress_that_decides() -> None:
    answer = explain(LATER, s=event("s1", 7 * MINUTE))
    assert answer["time"] == 12 * MINUTE
    assert answer["decided_when"] == {"smoke": 7 * MINUTE, "report": 12 * MINUTE}
    found = {"s": event("s1", 7 * MINUTE), "f": event("f1", 8 * MINUTE)}
    answer = explain(f"{PAIR}, Pair.rt.end = s.rt.end", **found)
    assert answer["time"] == 7 * MINUTE
    assert answer["decided_when"] == {"smoke": 7 * MINUTE, "fire": 9 * MINUTE}


REVERSED = f"{PAIR},\n  Pair.rt.end = s.rt.end, Pair.rt.begin = f.rt.end"


def test_a_result_that_may_end_before_it_begins_is_refused_at_its_place() -> None:
    with pytest.raises(InvalidFieldError) as refused:
        check_streams(condition(REVERSED), STREAMS)
    (error,) = refused.value.problems
    assert error.place is not None
    assert (error.field, error.place.line, error.place.column) == ("query", 3, 3)
    assert error.problem.endswith("its begin is f.rt.end and its end is s.rt.end")
    assert error.remedy.startswith("add the relation `f.rt.end <= s.rt.end`")
    with pytest.raises(InvalidFieldError, match=r"^query\.where: a result Pair"):
        check_streams(condition(REVERSED, as_json=True), STREAMS)
    check_streams(condition(f"{REVERSED}, f.rt.end <= s.rt.end"), STREAMS)


def test_a_result_that_begins_after_its_usual_end_is_refused_there() -> None:
    with pytest.raises(InvalidFieldError) as refused:
        check_streams(condition(f"{ABSENCE}, Alarm.rt.begin = s.rt.end + 1 s"), STREAMS)
    assert_names(
        refused.value,
        "query: line 2, column 63: a result Alarm",
        "begin is s.rt.end + 1 s",
        "end is s.rt.end",
    )


def test_the_length_of_events_decides_on_the_order() -> None:
    text = f"{ABSENCE}, Alarm.rt.begin = s.rt.end, Alarm.rt.end = s.rt.begin + 1 h"
    lasting = EventMapping("lasting", begin_path=("begin",), end_path=("end",))
    smoke = replace(STREAMS["smoke"], mapping=lasting, max_length_us=60 * MINUTE)
    check_streams(condition(text), STREAMS | {"smoke": smoke})
    longer = replace(smoke, max_length_us=60 * MINUTE + 1)
    with pytest.raises(InvalidFieldError, match=naming("Alarm", "may end before")):
        check_streams(condition(text), STREAMS | {"smoke": longer})
