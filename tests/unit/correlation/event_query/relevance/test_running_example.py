"""All worked figures of the source (Novoseltsev 2013): smoke, and no report within 5 minutes."""

from __future__ import annotations

import pytest

from correlation.event_query.relevance.analysis import analyse_relevance
from correlation.event_query.relevance.closure import StreamTimes
from tests.oracle.event_queries import Event, results, time_of
from tests.support.event_queries import ALARM, ALARM_STREAMS, MINUTE, judged

RELEVANCE = analyse_relevance(ALARM, ALARM_STREAMS)
JUDGED = judged(ALARM, ALARM_STREAMS)


def smoke(minute: float, area: str = "a") -> Event:
    return at("smoke", minute, area)


def report(minute: float, area: str = "a") -> Event:
    return at("report", minute, area)


def at(stream: str, minute: float, area: str) -> Event:
    time = round(minute * MINUTE)
    return Event(stream, time, time, (("area", area),))


def bound_at(smoke_minute: float, report_minute: float) -> float:
    progress = {"smoke": smoke_minute * MINUTE, "report": report_minute * MINUTE}
    return RELEVANCE.progress.value(progress) / MINUTE


@pytest.mark.parametrize(
    ("smoke_minute", "report_minute", "alarm_minute"),
    [(12, 12, 7), (12, 20, 12), (0, 100, 0), (100, 3, -2), (12, 17, 12)],
)
def test_upper_bound_of_alarm_is_the_min_of_smoke_and_of_report_minus_5_min(
    smoke_minute: float, report_minute: float, alarm_minute: float
) -> None:
    assert RELEVANCE.leads == {"s": 0, "r": -5 * MINUTE}
    assert bound_at(smoke_minute, report_minute) == alarm_minute


def test_keep_functions_of_smoke_and_report_are_the_bound_of_alarm() -> None:
    assert {name: keep.offsets for name, keep in RELEVANCE.keeps.items()} == {
        "s": {"Alarm": 0},
        "r": {"Alarm": 0},
    }


def test_at_bound_7_min_smoke_and_reports_until_7_min_are_dropped() -> None:
    assert RELEVANCE.keep_values(7 * MINUTE) == {"smoke": 7 * MINUTE, "report": 7 * MINUTE}


def test_alarm_a4_waits_until_report_has_passed_the_window() -> None:
    read = [smoke(1), report(3), smoke(6), smoke(9)]
    # The naive evaluation at 12 min raises the alarm of the smoke at 9 min.
    assert minutes(results(JUDGED, read)) == [6, 9]
    assert released(read, before=-5, now=bound_at(12, 12)) == [6]
    read.append(report(13))
    assert released(read, before=7, now=bound_at(14, 14)) == []
    assert released(read, before=9, now=bound_at(1_000, 1_000)) == []


def test_progress_alone_releases_the_alarm() -> None:
    read = [smoke(9)]
    assert released(read, before=7, now=bound_at(14, 14 - 1e-3)) == []
    assert released(read, before=7, now=bound_at(14, 14)) == [9]


def test_reports_that_last_delay_the_alarm_by_their_max_length() -> None:
    streams = ALARM_STREAMS | {"Report": StreamTimes("report", 0, 2 * MINUTE)}
    found = analyse_relevance(ALARM, streams)
    assert found.leads == {"s": 0, "r": -7 * MINUTE}
    assert found.keep_values(0) == {"smoke": 0, "report": 0}


def test_uncertain_instants_widen_progress_and_keep_values_by_their_uncertainty() -> None:
    streams = {
        "Smoke": StreamTimes("smoke", 0, 0, uncertainty_us=2),
        "Report": StreamTimes("report", 0, 0, uncertainty_us=3),
    }
    found = analyse_relevance(ALARM, streams)
    # The last possible time of r is at most 3 us after r, so 5 min + 3 us after s.
    assert found.leads == {"s": 0, "r": -5 * MINUTE - 3}
    # The last possible time of s is at most 2 us after s, so 2 us after r.
    assert found.keep_values(0) == {"smoke": 0, "report": -2}


def minutes(found: set[tuple[Event, ...]]) -> list[float]:
    return sorted(time_of(JUDGED, it) / MINUTE for it in found)


def released(read: list[Event], *, before: float, now: float) -> list[float]:
    """Return the minutes of the results after the earlier bound, up to the bound now."""
    return [minute for minute in minutes(results(JUDGED, read)) if before < minute <= now]
