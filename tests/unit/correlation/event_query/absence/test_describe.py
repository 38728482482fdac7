"""Facts of a decision about absence."""

from __future__ import annotations

import json
from decimal import Decimal

from correlation.event_query.absence.describe import NamedInstant, describe_absence
from correlation.event_query.absence.windows import Interval
from correlation.resources.histogram import WHOLE_MASS, Bucket, Histogram


def uniform(lo: int, hi: int) -> Histogram:
    return Histogram.from_interval(lo, hi)


def test_description_has_windows_candidates_and_probabilities() -> None:
    half = WHOLE_MASS // 2
    parts = Histogram((Bucket(60, 62, half), Bucket(62, 70, half)))
    found = describe_absence(
        uniform(0, 10),
        {"r": (Interval(0, 50, open_lo=True),), "q": (Interval(None, -5),)},
        [
            NamedInstant("r", "r1", uniform(0, 10)),
            NamedInstant("r", "r2", uniform(80, 90)),
            NamedInstant("q", "q1", parts),
        ],
        Decimal("0.5"),
    )
    assert json.loads(json.dumps(found)) == found
    always = Interval(None, None)._asdict()
    assert found["positive"] == {"earliest_us": 0, "latest_us": 10, "buckets": None}
    assert found["windows"] == {
        "r": [
            {
                "lo_us": 0,
                "hi_us": 50,
                "open_lo": True,
                "open_hi": False,
                "first_us": 0,
                "last_us": 60,
                "negated": always,
                "positive": always,
            }
        ],
        "q": [
            {
                "lo_us": None,
                "hi_us": -5,
                "open_lo": False,
                "open_hi": False,
                "first_us": None,
                "last_us": 5,
                "negated": always,
                "positive": always,
            }
        ],
    }
    r1, r2, q1 = found["candidates"]
    assert (r1["alias"], r1["id"], r1["in_window_exact"], r1["place"]) == (
        *("r", "r1", "1/2", "uncertain"),
    )
    assert (r2["in_window"], r2["place"], q1["place"]) == (0.0, "outside", "outside")
    assert q1["buckets"] == parts.to_buckets()
    assert (found["probability"], found["probability_exact"]) == (0.5, "1/2")
    assert (found["threshold"], found["reported"]) == ("0.5", True)


def test_description_names_what_stops_the_event() -> None:
    found = describe_absence(
        uniform(0, 10),
        {"r": (Interval(-100, 100),)},
        [NamedInstant("r", "r1", uniform(3, 3))],
        Decimal("0.0000000001"),
    )
    assert [it["place"] for it in found["candidates"]] == ["inside"]
    assert (found["probability"], found["reported"]) == (0.0, False)


def test_description_without_candidates_reports() -> None:
    found = describe_absence(uniform(0, 0), {"r": (Interval(0, 5),)}, [], Decimal(1))
    assert (found["probability"], found["reported"], found["candidates"]) == (1.0, True, [])


def test_description_shows_no_long_fraction() -> None:
    found = describe_absence(
        uniform(0, 10**6),
        {"r": (Interval(0, None),)},
        [NamedInstant("r", "r1", uniform(1, 10**6 + 7))],
        Decimal("0.5"),
    )
    assert found["probability_exact"] is None
    assert not found["reported"]
