"""Histograms and templates as values: accepted input, and error messages."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given

from correlation.errors import InvalidFieldError
from correlation.limits import BUCKET_LIMIT, LENGTH_LIMIT_US, TIME_LIMIT_US
from correlation.resources.histogram import WHOLE_MASS, Bucket, Histogram
from correlation.resources.template import Template
from tests.support.messages import assert_names
from tests.unit.correlation.timing.histogram_strategies import described, large_histograms

TENTH = WHOLE_MASS // 10


def bucket(lo: object, hi: object, p: object) -> dict[str, object]:
    return {"lo": lo, "hi": hi, "p": p}


@pytest.mark.parametrize(
    ("buckets", "field", "problem"),
    [
        (None, "buckets", "must be a list"),
        ("[]", "buckets", "must be a list"),
        ([], "buckets", "got 0 buckets"),
        ([bucket(i, i + 1, 0) for i in range(BUCKET_LIMIT + 1)], "buckets", "got 101 buckets"),
        ([5], "buckets[0]", "not a valid bucket"),
        (["0,1"], "buckets[0]", "not a valid bucket"),
        ([[0, 10]], "buckets[0]", "not a valid bucket"),
        ([[0, 10, 1, 1]], "buckets[0]", "not a valid bucket"),
        ([["0", 10, 1]], "buckets[0].lo", "whole number"),
        ([{"lo": 0, "hi": 10}], "buckets[0].p", "is missing"),
        ([bucket("0", 10, 1)], "buckets[0].lo", "whole number"),
        ([bucket(0, 10.0, 1)], "buckets[0].hi", "whole number"),
        ([{"lo": True, "hi": 10, "p": 1}], "buckets[0].lo", "whole number"),
        ([bucket(0, 10, "half")], "buckets[0].p", "must be a decimal"),
        ([bucket(0, 10, None)], "buckets[0].p", "must be a decimal"),
        ([{"lo": 0, "hi": 10, "p": True}], "buckets[0].p", "must be a decimal"),
        ([bucket(0, 10, "nan")], "buckets[0].p", "must be a decimal"),
        ([bucket(0, 10, "inf")], "buckets[0].p", "must be a decimal"),
        ([bucket(0, 10, -0.1)], "buckets[0].p", "is -0.1"),
        ([bucket(0, 10, "1.1")], "buckets[0].p", "is 1.1"),
        ([bucket(0, 10, "0.12345678901")], "buckets[0].p", "0.12345678901 has too many"),
        ([bucket(0, 10, "1e-999999999")], "buckets[0].p", "1e-999999999 has too many"),
        ([bucket(0, 10, "1" + "0" * 50 + "1e-51")], "buckets[0].p", None),
        ([bucket(0, 10, "0.5" + "0" * 40 + "1")], "buckets[0].p", None),
        ([bucket(0, 10, 0.9)], "buckets", "exactly 1; got 0.9"),
        ([bucket(0, 10, 0.7), bucket(10, 20, "0.3000000001")], "buckets", None),
        ([bucket(10, 0, 1)], "buckets[0].hi", "0 us is below lo, 10 us"),
        ([bucket(0, 10, 0.5), bucket(10, 10, 0.5)], "buckets[1].hi", "the bucket is empty"),
        ([bucket(0, 0, 0), bucket(0, 10, 1)], "buckets[0].hi", "the bucket is empty"),
        ([bucket(0, 10, 0.5), bucket(9, 20, 0.5)], "buckets[1].lo", None),
        ([bucket(0, 10, 0.5), bucket(11, 20, 0.5)], "buckets[1].lo", None),
        ([bucket(10, 20, 0.5), bucket(0, 10, 0.5)], "buckets[1].lo", None),
        ([bucket(0, LENGTH_LIMIT_US + 1, 1)], "buckets", f"span {LENGTH_LIMIT_US + 1} us"),
        ([bucket(TIME_LIMIT_US, TIME_LIMIT_US + 1, 1)], "buckets[0].hi", None),
        ([bucket(-TIME_LIMIT_US - 1, 0, 1)], "buckets[0].lo", None),
    ],
)
def test_histogram_refuses_buckets(buckets: object, field: str, problem: str | None) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        Histogram.from_buckets(buckets)
    assert caught.value.field == field
    if problem is not None:
        assert_names(caught.value.problem, problem)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("buckets", "fields"),
    [
        ([["a", 5.0, "x"], bucket(5, "b", "2")], "[0].lo [0].hi [0].p [1].hi [1].p"),
        ([{"lo": 0}, [0, 5]], "[0].hi [0].p [1]"),
        # Bounds are compared with those of neighbours that can be read.
        ([[0, 5, "x"], [6, 9, 0.5], [8, 7, 0.5]], "[0].p [2].hi [2].lo"),
        ([[5, 0, 0.5], [6, 9, 0.5]], "[0].hi [1].lo"),
    ],
)
def test_histogram_names_every_problem(buckets: object, fields: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        Histogram.from_buckets(buckets)
    assert [it.field.removeprefix("buckets") for it in caught.value.problems] == fields.split()


def test_histogram_refuses_negative_masses_that_sum_to_one() -> None:
    with pytest.raises(InvalidFieldError, match=r"buckets\[1\]\.p: must not be negative"):
        Histogram((Bucket(0, 10, 11 * TENTH), Bucket(10, 20, -TENTH)))


@pytest.mark.parametrize(
    ("mass", "units"),
    [
        ("0.15", 1_500_000_000),
        (0.15, 1_500_000_000),
        (1, WHOLE_MASS),
        ("1.000000000000", WHOLE_MASS),
        ("1e-10", 1),
        (1e-10, 1),
        ("0e99", 0),
    ],
)
def test_histogram_holds_masses_as_written(mass: object, units: int) -> None:
    rest = Decimal(WHOLE_MASS - units).scaleb(-10)
    made = Histogram.from_buckets([bucket(0, 1, mass), bucket(1, 2, rest)])
    assert made.masses == tuple(part for part in (units, WHOLE_MASS - units) if part)


def test_histogram_drops_ends_without_mass_and_keeps_gaps() -> None:
    made = described((0, 5, "0"), (5, 10, "0.5"), (10, 20, "0"), (20, 30, "0.5"), (30, 99, "0"))
    assert made.edges_us == (5, 10, 20, 30)
    assert made.masses == (5 * TENTH, 0, 5 * TENTH)
    assert (made.earliest_us, made.latest_us, made.length_us) == (5, 30, 25)


def test_histogram_of_an_interval_is_one_bucket() -> None:
    assert Histogram.from_interval(3, 8) == described((3, 8, "1"))
    assert Histogram.from_interval(3, 3).length_us == 0


def test_histogram_moves_within_the_range_of_times() -> None:
    made = described((0, 20, "0.1"), (20, 30, "0.9"))
    assert made.moved(170).edges_us == (170, 190, 200)
    assert made.shape().edges_us == (-30, -10, 0)
    with pytest.raises(InvalidFieldError) as caught:
        made.moved(TIME_LIMIT_US)
    assert caught.value.field == "buckets[0].hi"


@given(histogram=large_histograms)
def test_histogram_reads_what_it_writes(histogram: Histogram) -> None:
    written = json.loads(json.dumps(histogram.to_buckets()))
    assert Histogram.from_buckets(written) == histogram
    assert Histogram.from_buckets([list(it.values()) for it in written]) == histogram


@given(histogram=large_histograms)
def test_shape_bytes_come_back(histogram: Histogram) -> None:
    written = histogram.shape_bytes
    assert (written is None) == (len(histogram.buckets) == 1)
    if written is not None:
        assert Histogram.from_shape_bytes(written) == histogram.shape()
        assert histogram.moved(-17).shape_bytes == written


def test_template_is_held_relative_to_its_latest_time() -> None:
    # PTJ Example 3: the histogram of sensor s1, an event that it detects at 210.
    phi = described((0, 20, "0.1"), (20, 30, "0.3"), (30, 40, "0.6"))
    template = Template("s1", phi)
    assert template.histogram.edges_us == (-40, -20, -10, 0)
    assert template.at(210) == phi.moved(170)
    assert template == Template("s1", phi.moved(1_000))


@pytest.mark.parametrize("name", ["", "S1", "a b", "x" * 64])
def test_template_refuses_name(name: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        Template(name, Histogram.from_interval(0, 1))
    assert caught.value.field == "name"
