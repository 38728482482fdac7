"""Closure, progress and keep functions in sentences and as plain data."""

from __future__ import annotations

import json

import pytest

from correlation.event_query.language.parser import parse_query
from correlation.event_query.query import FALSE, And, EventPattern, Or, Query, Relation
from correlation.event_query.relevance.analysis import analyse_relevance
from correlation.event_query.relevance.closure import StreamTimes
from correlation.event_query.relevance.describe import describe_relevance
from correlation.event_query.relevance.shifts import format_shift, round_shift
from tests.support.event_queries import ALARM, ALARM_STREAMS, MINUTE, begin, end


def test_running_example_in_words_and_numbers() -> None:
    found = describe_relevance(analyse_relevance(ALARM, ALARM_STREAMS))
    assert found == {
        "satisfiable": True,
        "closure": [
            {"negated": None, "clauses": [[]], "further_clauses": 0},
            {
                "negated": "r",
                "clauses": [
                    [
                        "r.rt.end <= s.rt.end + 5 min",
                        "s.rt.end <= r.rt.end",
                    ]
                ],
                "further_clauses": 0,
            },
        ],
        "progress": {
            "function": "progress(Alarm) = min(progress(smoke), progress(report) - 5 min)",
            "leads_us": {"smoke": 0, "report": -5 * MINUTE},
        },
        "keep": [
            {
                "alias": "s",
                "type": "Smoke",
                "stream": "smoke",
                "negated": False,
                "function": "keep(s.rt.end) = progress(Alarm)",
                "offset_us": 0,
            },
            {
                "alias": "r",
                "type": "Report",
                "stream": "report",
                "negated": True,
                "function": "keep(r.rt.end) = progress(Alarm)",
                "offset_us": 0,
            },
        ],
        "sentences": [
            (
                "A Report event r stops a combination if the end of r is at or after the end of "
                "s and at most 5 min after it."
            ),
            "A result is final when Report has reached its end + 5 min, and Smoke its end.",
            "A Smoke event s is kept until Report has reached its end + 5 min, and Smoke its end.",
            "A Report event r is kept until Report has reached its end + 5 min, and Smoke its end.",
        ],
    }
    assert json.loads(json.dumps(found)) == found


def test_two_positive_events_and_a_negated_event_that_never_matters() -> None:
    events = (
        EventPattern("a", "Order", ()),
        EventPattern("b", "Payment", ()),
        EventPattern("r", "Refund", (), negated=True),
    )
    where = And(
        (
            Relation(end("a"), "<", begin("b")),
            Relation(begin("b"), "=", end("a", 90 * MINUTE)),
            Relation(end("r"), "<", end("a")),
            Relation(end("r"), ">", end("b")),
        )
    )
    types = {it.type: StreamTimes(it.type.lower(), 0, 0) for it in events}
    found = describe_relevance(analyse_relevance(Query("Done", (), events, where), types))
    assert found["closure"][0]["clauses"][0][-1] == "b.rt.end = a.rt.end + 90 min"
    assert found["progress"] == {
        "function": "progress(Done) = min(progress(order) + 90 min, progress(payment))",
        "leads_us": {"order": 90 * MINUTE, "payment": 0, "refund": None},
    }
    assert found["sentences"] == [
        "In a result, the end of b is exactly 90 min after the end of a.",
        (
            "A result is final when Payment has reached its last end, and Order its last end "
            "- 1 h 30 min."
        ),
        (
            "An Order event a is kept until Payment has reached its end + 1 h 30 min, and Order "
            "its end."
        ),
        (
            "A Payment event b is kept until Payment has reached its end, and Order its end "
            "- 1 h 30 min."
        ),
        "A Refund event r is not kept, because it can never stop a combination.",
    ]


def test_a_query_that_nothing_satisfies() -> None:
    query = Query("Never", (), (EventPattern("s", "Smoke"),), FALSE)
    found = describe_relevance(analyse_relevance(query, ALARM_STREAMS))
    assert found["sentences"] == [
        "No events can satisfy the relations: the query never has a result."
    ]
    assert found["progress"]["function"] == "progress(Never) = infinite"
    assert found["keep"][0]["function"] == "keep(s.rt.end) = infinite"


@pytest.mark.parametrize(
    ("shift_us", "text"),
    [
        (0, ""),
        (5 * MINUTE, " + 5 min"),
        (-90_000_000, " - 90 s"),
        (5 * MINUTE - 1, " + 5 min - 1 us"),
        (1 - 5 * MINUTE, " - 5 min + 1 us"),
        (-1, " - 1 us"),
        (1_500, " + 1500 us"),
        (48 * 60 * MINUTE, " + 2 d"),
    ],
)
def test_shifts_are_written_with_units_of_queries(shift_us: int, text: str) -> None:
    assert format_shift(shift_us) == text


@pytest.mark.parametrize(
    ("shift_us", "text"),
    [
        (0, ""),
        (-1, ""),
        (5 * MINUTE, " + 5 min"),
        (5 * MINUTE - 1, " + 5 min"),
        (-90_000_000, " - 1 min 30 s"),
        (92_499_998, " + 1 min 32.5 s"),
        (1_500, " + 2 ms"),
        (120_000, " + 120 ms"),
        (MINUTE + 7_000, " + 1 min 0.007 s"),
        (50 * 60 * MINUTE, " + 2 d 2 h"),
    ],
)
def test_shifts_in_sentences_are_rounded_up_to_milliseconds(shift_us: int, text: str) -> None:
    assert round_shift(shift_us) == text


def test_streams_with_the_same_delay_are_named_together() -> None:
    events = (EventPattern("a", "Order"), EventPattern("b", "Payment"))
    where = Relation(end("a"), "=", end("b"))
    types = {it.type: StreamTimes(it.type.lower(), 0, 0) for it in events}
    found = describe_relevance(analyse_relevance(Query("Done", (), events, where), types))
    assert found["sentences"][:2] == [
        "In a result, the end of b is at the end of a.",
        "A result is final when Order and Payment have reached its last end.",
    ]


def test_the_first_clauses_of_each_group_are_described_and_the_others_counted() -> None:
    events = (EventPattern("s", "Smoke"), EventPattern("r", "Report", negated=True))
    choices = tuple(Relation(end("r"), "=", end("s", shift)) for shift in range(20))
    query = Query("Done", (), events, Or(choices))
    found = describe_relevance(analyse_relevance(query, ALARM_STREAMS))
    closure = found["closure"]
    assert [len(group["clauses"]) for group in closure] == [1, 6]
    assert [group["further_clauses"] for group in closure] == [0, 14]
    assert found["sentences"][5:7] == [
        (
            "A Report event r also stops a combination if the end of r is exactly 5 us after the "
            "end of s."
        ),
        "Further alternatives of the negated event r: 14.",
    ]


def test_the_closure_has_one_sentence_per_group_and_alternative() -> None:
    query = parse_query(
        """DETECT A ON event s: Smoke event t: Smoke not event v: Visit not event r: Report
        WHERE (t.rt.end > s.rt.end + 1 min and t.rt.end < s.rt.end + 2 min) or t.rt.end = s.rt.end,
          v.rt.begin <= t.rt.end, t.rt.end < v.rt.end,
          r.rt.end < t.rt.end and r.rt.end >= t.rt.end - 5 min or r.rt.end = t.rt.end + 1 s END"""
    )
    types = {
        "Smoke": StreamTimes("smoke", 0, 0),
        "Visit": StreamTimes("visit", 0, 60 * MINUTE),
        "Report": StreamTimes("report", 0, 0),
    }
    sentences = describe_relevance(analyse_relevance(query, types))["sentences"]
    stops = "stops a combination if the"
    assert sentences[:2] == [
        (
            "In a result, the end of t is more than 1 min after the end of s and less than 2 min "
            "after it."
        ),
        "Or, in a result, the end of t is at the end of s.",
    ]
    assert sentences[3] == (
        f"A Visit event v also {stops} begin of v is less than 1 h before the end of s and at or "
        "before it, the end of v is after the end of s and at most 1 h after it, the begin of v is "
        "less than 1 h before the end of t and at or before it and the end of v is after the end "
        "of t and at most 1 h after it."
    )
    assert sentences[6] == (
        f"A Report event r also {stops} end of r is at most 5 min before the end of s and before "
        "it and the end of r is at most 5 min before the end of t and before it."
    )
