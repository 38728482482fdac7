"""Event queries that state the time of their result: release, changes, resets and late events.

The random queries of `test_event_queries` and of the tests of late events, of sharing and of
uncertain instants state times, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from correlation.event_query.evaluation.result_time import Bounds, ResultTime
from correlation.event_query.evaluation.search import Search
from correlation.event_query.language.document_reader import query_from_document
from correlation.event_query.language.documents import query_to_document
from correlation.event_query.language.parser import parse_query
from correlation.event_query.query import Extreme, Query, Term
from tests.conformance.test_event_queries import cases, run
from tests.conformance.test_event_query_changes import alarm, control, pair, reset
from tests.support.event_queries import begin, end
from tests.support.mutations import assert_caught
from tests.support.query_slots import AlarmSlot, counters_of
from tests.support.slots import read_alarms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from correlation.event_query.evaluation.tables import Table


def ending(query: Query, time: Term | None, *, start: Term | None = None) -> Query:
    """Return a query that states the end, and perhaps the begin, of its result."""
    return replace(query, result_begin=start, result_end=time)


OVERDUE = ending(alarm(10), end("s", 10))


def spans_of(slot: AlarmSlot) -> list[tuple[int, int]]:
    """Return begin and end of the results of the last block."""
    return [(it["begin"], it["end"]) for it in read_alarms(slot.last)]


def test_a_shifted_time_delays_no_result_and_keeps_no_event_longer() -> None:
    slots = [AlarmSlot(control(query)) for query in (alarm(10), OVERDUE)]
    for events, marks in (
        ([("smoke", 100, "x"), ("smoke", 101, "y")], {"smoke": 100, "report": 110}),
        ([("report", 110, "y"), ("smoke", 104, "z")], {"smoke": 101, "report": 111}),
        ([], {"smoke": 400, "report": 113}),
        ([], {"report": 114}),
        ([], {"report": 115}),
    ):
        plain, overdue = (slot.send(*events, marks=marks) for slot in slots)
        assert plain == overdue
        assert slots[0].buffered() == slots[1].buffered()
        assert counters_of(slots[0].last) == counters_of(slots[1].last)
    assert plain == [(("s104z",), False)]


def test_a_result_has_its_stated_times_and_is_ready_with_its_last_event() -> None:
    slot = AlarmSlot(control(ending(alarm(10), end("s", 10), start=begin("s", -1))))
    slot.send(("smoke", 100, "x"), marks={"smoke": 101, "report": 110})
    assert slot.send(marks={"report": 111}) == [(("s100x",), False)]
    assert spans_of(slot) == [(99, 110)]
    (result,) = slot.last.results
    assert result.ready_us().tolist() == [100]


def test_a_result_with_the_time_of_its_first_event_waits_for_all_that_may_be_second() -> None:
    slot = AlarmSlot(control(ending(pair(10), end("s"))))
    events = [("smoke", 100, "x"), ("smoke", 103, "x"), ("smoke", 108, "x")]
    assert slot.send(*events, marks={"smoke": 110}) == []
    # Until 110 a second event may come.
    assert slot.send(marks={"smoke": 111}) == [
        (("s100x", "s103x"), False),
        (("s100x", "s108x"), False),
    ]
    assert slot.send(marks={"smoke": 113}) == []
    assert slot.send(marks={"smoke": 114}) == [(("s103x", "s108x"), False)]
    assert spans_of(slot) == [(103, 103)]
    assert slot.send(marks={"smoke": 300}) == []
    assert slot.buffered() == {"smoke": 0, "report": 0}


def test_late_events_are_decided_by_the_stated_time() -> None:
    # Another query keeps the events.
    slot = AlarmSlot(control(OVERDUE), control(alarm(500), 1, "wide"))
    slot.rebuilds = False  # the mark `late` is checked
    slot.send(("report", 105, "x"), marks={"smoke": 200, "report": 200})
    # The results up to 199, of smoke up to 189, are published.
    assert slot.send(("smoke", 100, "x"), ("smoke", 101, "y"), ("smoke", 191, "y")) == [
        (("s101y",), True)
    ]
    assert slot.send(marks={"report": 202}) == [(("s191y",), True)]
    assert counters_of(slot.last)["query_undecided_total"] == 0


def test_a_late_pair_is_compared_with_the_stated_time() -> None:
    first = Extreme("min", (end("s", 3), end("t")))
    slot = AlarmSlot(control(ending(pair(10), first)), control(alarm(500), 1, "wide"))
    slot.rebuilds = False  # the mark `late` is checked
    assert slot.send(("smoke", 100, "x"), ("smoke", 108, "x"), marks={"smoke": 110}) == []
    # The progress is 109 - 7.
    assert slot.send(("smoke", 97, "x"), ("smoke", 101, "x")) == [
        (("s97x", "s100x"), True),
        (("s97x", "s101x"), True),
        (("s100x", "s101x"), True),
    ]
    assert slot.send(marks={"smoke": 300}) == [
        (("s100x", "s108x"), False),
        (("s101x", "s108x"), True),
    ]


@pytest.mark.parametrize("back", [False, True])
def test_a_version_with_a_shifted_time_continues(*, back: bool) -> None:
    first, second = (OVERDUE, alarm(10)) if back else (alarm(10), OVERDUE)
    slot = AlarmSlot(control(alarm(500), 0, "keeper"), control(first, 1))
    events = [("smoke", 90, "x"), ("smoke", 100, "y"), ("smoke", 120, "x")]
    assert slot.send(*events, marks={"smoke": 200, "report": 107}) == [(("s90x",), False)]
    changed = slot.send(controls=[control(second, 2)], marks={"report": 108})
    changed += slot.send(marks={"report": 600})
    assert changed == [(("s100y",), False), (("s120x",), False)]


def test_a_version_with_another_time_begins_anew_and_a_renamed_event_does_not() -> None:
    slot = AlarmSlot(control(alarm(500), 0, "keeper"), control(pair(10), 1))
    events = [("smoke", 90, "x"), ("smoke", 95, "x"), ("smoke", 99, "x")]
    assert len(slot.send(*events, marks={"smoke": 104})) == 3
    # The results up to 103 are published; those of the new version up to 93 would be.
    slot.send(controls=[control(ending(pair(10), end("s")), 2)])
    assert slot.send(marks={"smoke": 106}) == [(("s95x", "s99x"), False)]
    state = slot.program.snapshot().manifest["operators"]["q"]
    time = json.loads(bytes.fromhex(state).partition(b" ")[2])["time"]
    assert time.startswith("e0.rt.end of smoke, smoke with ")
    # Equal but for the names of the events: nothing up to 95 is published again.
    document = json.dumps(query_to_document(ending(pair(10), end("s")))).replace('"s"', '"u"')
    slot.send(controls=[control(query_from_document(json.loads(document)), 3)])
    assert slot.send(marks={"smoke": 300}) == []


def test_a_version_with_another_event_at_the_place_of_the_time_begins_again() -> None:
    def version(events: str, time: str) -> Query:
        return parse_query(
            f"DETECT P ON {events} WHERE s.rt.end <= t.rt.end + 10 min, "
            "t.rt.end <= s.rt.end + 10 min, P.rt.begin = min(s.rt.begin, t.rt.begin) - 20 min, "
            f"P.rt.end = {time}.rt.end END"
        )

    by_smoke = version("event s: Smoke event t: Report", "s")
    by_report = version("event t: Report event s: Smoke", "t")
    minute = 60_000_000
    for former, newer, last, other in (
        (by_smoke, by_report, "smoke", "report"),
        (by_report, by_smoke, "report", "smoke"),
    ):
        slot = AlarmSlot(control(former, 1))
        # Results up to 125 min are final; those of the newer version up to 115 min are.
        events = (last, 126 * minute, "x"), (other, 120 * minute, "x")
        assert slot.send(*events, marks={last: 125 * minute, other: 300 * minute}) == []
        assert slot.send(controls=[control(newer, 2)]) == []
        assert len(slot.send(marks={last: 300 * minute})) == 1


def test_a_state_without_a_stated_time_is_as_before() -> None:
    slot = AlarmSlot(control(alarm(10)))
    state = bytes.fromhex(slot.program.snapshot().manifest["operators"]["q"])
    assert json.loads(state.partition(b" ")[2]).keys() == {"streams", "published", "sealed"}


def test_p_reset_a_result_after_its_last_event_is_not_repeated() -> None:
    slot = AlarmSlot(control(OVERDUE), control(alarm(9_000), 1, "keeper"))
    slot.send(("smoke", 100, "x"), marks={"smoke": 90, "report": 90})
    # Wrong watermarks: the result is published too early.
    assert slot.send(marks={"smoke": 3_000, "report": 3_000}) == [(("s100x",), False)]
    assert slot.send(beats=reset("smoke", "report"), marks={"smoke": 99, "report": 99}) == []
    assert slot.send(("smoke", 100, "y"), marks={"report": 110}) == []
    assert slot.send(marks={"smoke": 112, "report": 112}) == [(("s100y",), False)]
    state = next(iter(slot.program._conditions.values())).dump()  # noqa: SLF001 - stored state
    assert b'"sealed": {"smoke": []}' in state


def wrong_between(it: ResultTime, place: int, first: int, last: int) -> Bounds:
    """Return a wrong range: its first microsecond is missing."""
    low, high = BETWEEN(it, place, first, last)
    return low + 1, high


def wrong_until(it: ResultTime, place: int, last: int) -> int:
    """Return a wrong bound: its last microsecond is missing."""
    return UNTIL(it, place, last) - 1


def unfiltered(it: Search, tables: Iterator[Table], *_: int) -> Iterator[Table]:  # noqa: ARG001 - as the method
    """Yield wrong combinations: their times are not compared."""
    return tables


BETWEEN, UNTIL = ResultTime.between, ResultTime.until


@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [
        (ResultTime, "between", wrong_between),
        (ResultTime, "until", wrong_until),
        (Search, "_within", unfiltered),
    ],
)
def test_a_mutation_of_the_range_of_times_is_caught(
    owner: type, name: str, wrong: Callable[..., object]
) -> None:
    stated = cases().filter(lambda it: it.query.result_end is not None)
    assert_caught(stated, run, owner, name, wrong)
