"""Progress, keep values and order of results whose time is stated, and refusals of such queries."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from correlation.errors import InvalidFieldError
from correlation.event_query.language.parser import parse_query
from correlation.event_query.query import And, Query, Relation
from correlation.event_query.relevance.analysis import (
    Relevance,
    analyse_relevance,
    may_end_before_it_begins,
)
from correlation.event_query.relevance.closure import StreamTimes
from correlation.event_query.relevance.inputs import read_inputs
from correlation.event_query.relevance.split import split_formula
from tests.oracle.event_queries import results, times_of
from tests.support.event_queries import MINUTE, events_at, judged, solution
from tests.support.messages import assert_names
from tests.unit.correlation.event_query.relevance.test_attained import FAR, bounded_queries

INSTANTS = {it: StreamTimes(it.lower(), 0, 0) for it in ("Smoke", "Report", "Fire")}
REPORT = "s.rt.end <= r.rt.begin, r.rt.begin <= s.rt.end + 5 min"
ABSENCE = f"DETECT Alarm ON event s: Smoke not event r: Report WHERE {REPORT}"
PAIR = """DETECT Pair ON event s: Smoke event f: Fire
    WHERE s.rt.end <= f.rt.end, f.rt.end <= s.rt.end + 2 min"""


def analysed(text: str, **types: StreamTimes) -> Relevance:
    return analyse_relevance(parse_query(f"{text} END"), INSTANTS | types)


@pytest.mark.parametrize(
    ("text", "leads", "keeps"),
    [
        # UB(Alarm) = min(UB(Smoke) + 5 min, UB(Report)).
        (f"{ABSENCE}, Alarm.rt.end = s.rt.end + 5 min", (5, 0), (-5, -5)),
        (f"{ABSENCE}, Alarm.rt.end = s.rt.begin", (0, -5), (0, 0)),
        (f"{PAIR}", (0, 0), (-2, 0)),
        # A fire that may still come makes results up to 2 min before it.
        (f"{PAIR}, Pair.rt.end = s.rt.end", (0, -2), (0, 0)),
        (f"{PAIR}, Pair.rt.end = f.rt.end", (0, 0), (-2, 0)),
        (f"{PAIR}, Pair.rt.end = min(s.rt.end, f.rt.end)", (0, -2), (0, 0)),
        (f"{PAIR}, Pair.rt.end = min(s.rt.end + 3 min, f.rt.end)", (0, 0), (-2, 0)),
        (f"{PAIR}, Pair.rt.end = max(s.rt.end + 1 min, f.rt.end)", (1, 0), (-2, -1)),
    ],
)
def test_progress_and_keep_values_follow_the_time_of_the_result(
    text: str, leads: tuple[int, int], keeps: tuple[int, int]
) -> None:
    found = analysed(text)
    assert tuple(by / MINUTE for by in found.leads.values()) == leads
    assert tuple(it.value({found.result: 0}) / MINUTE for it in found.keeps.values()) == keeps


def test_a_result_with_the_begin_of_an_event_needs_the_max_length_of_its_stream() -> None:
    lasting = StreamTimes("smoke")
    with pytest.raises(InvalidFieldError) as refused:
        analysed(f"{ABSENCE}, Alarm.rt.end = s.rt.begin", Smoke=lasting)
    (error,) = refused.value.problems
    assert_names(error.problem, "event s of stream smoke", "at any time")
    assert_names(error.remedy, "s.rt.end <= s.rt.begin + C", "max_length of stream smoke")
    mended = f"{ABSENCE}, s.rt.end <= s.rt.begin + 3 min, Alarm.rt.end = s.rt.begin"
    assert analysed(mended, Smoke=lasting).leads["s"] == -3 * MINUTE
    # The end bounds the later one of both.
    analysed(f"{ABSENCE}, Alarm.rt.end = max(s.rt.begin + 1 h, s.rt.end)", Smoke=lasting)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ABSENCE, False),
        (f"{ABSENCE}, Alarm.rt.end = s.rt.end + 5 min", False),
        (f"{ABSENCE}, Alarm.rt.end = s.rt.end - 5 min", True),
        (f"{ABSENCE}, Alarm.rt.begin = s.rt.end + 1 ms", True),
        (f"{PAIR}, Pair.rt.end = s.rt.end", False),
        (f"{PAIR}, Pair.rt.begin = s.rt.end, Pair.rt.end = f.rt.end", False),
        (f"{PAIR}, Pair.rt.begin = f.rt.end, Pair.rt.end = s.rt.end", True),
        (f"{PAIR}, Pair.rt.begin = f.rt.end, Pair.rt.end = s.rt.end + 2 min", False),
        (f"{PAIR}, Pair.rt.begin = f.rt.end, Pair.rt.end = s.rt.end + 119999 ms", True),
    ],
)
@pytest.mark.parametrize("uncertainty_us", [0, 2])
def test_order_of_begin_and_end(text: str, uncertainty_us: int, *, expected: bool) -> None:
    types = INSTANTS | {"Smoke": StreamTimes("smoke", 0, 0, uncertainty_us)}
    assert may_end_before_it_begins(parse_query(f"{text} END"), types) is expected


@given(bounded_queries())
def test_p_query_time_a_result_may_end_before_it_begins_iff_the_judge_finds_one(
    drawn: tuple[Query, dict[str, StreamTimes], Relevance],
) -> None:
    query, types, _ = drawn
    among = split_formula(query).positive
    alone = replace(query, events=query.positive, where=among)
    asked = judged(alone, types)
    reverse = replace(alone, where=And((among, Relation(query.end, "<", query.begin))))
    found = set()
    for tried in (reverse, alone):
        inputs = tuple(read_inputs(tried, types))
        for closure in inputs[0].closures:
            if closure.contradictory:
                continue
            for it in inputs:
                for highest in (True, False):
                    times = solution(closure, it.stamp, 0, highest=highest, within=FAR)
                    for result in results(asked, events_at(inputs, times)):
                        begin, end = times_of(asked, result)
                        found.add(end < begin)
    assert (True in found) is may_end_before_it_begins(query, types)
