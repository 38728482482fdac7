"""Events with templates and histograms: timestamps, and reasons of dead letters."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given

from correlation.errors import InvalidFieldError, RejectedEventError
from correlation.limits import BUCKET_LIMIT, LENGTH_LIMIT_US, TEMPLATE_LIMIT, TIME_LIMIT_US
from correlation.parsing.event_reader import MappedEvent, compile_mapping
from correlation.reasons import Reason
from correlation.resources.histogram import WHOLE_MASS, Histogram
from correlation.resources.mapping import EventMapping
from correlation.resources.streams import Stream
from correlation.resources.template import Template
from correlation.resources.times import TimeFormat
from tests.support.messages import assert_names
from tests.unit.correlation.timing.histogram_strategies import described, large_histograms

DAY_2013 = 1_356_998_400_000_000  # 2013-01-01T00:00:00Z
# PTJ Example 3.
PHI = described((0, 20, "0.1"), (20, 30, "0.3"), (30, 40, "0.6"))
S1, S2 = Template("s1", PHI), Template("s2", described((0, 10, "0.5"), (10, 40, "0.5")))
FLAT = Template("flat", Histogram.from_interval(0, 15))
SHAPE = PHI.shape_bytes


def _stream(**changes: Any) -> Stream:  # noqa: ANN401 - as Stream
    declared = {
        "max_uncertainty_us": 40,
        "max_delay_us": 0,
        "templates": (S1, S2, FLAT),
        "histograms": True,
        **changes,
    }
    return Stream("s", "s", **declared)


def _detections(written: TimeFormat = "epoch_us", timezone: str = "UTC") -> Stream:
    mapping = EventMapping(
        "template",
        detected_path=("at",),
        template_path=("by", "kind"),
        format=written,
        timezone=timezone,
    )
    return _stream(mapping=mapping, histograms=False)


def _histograms(written: TimeFormat = "epoch_us") -> Stream:
    mapping = EventMapping("histogram", histogram_path=("when",), format=written)
    return _stream(mapping=mapping, templates=(), max_uncertainty_us=LENGTH_LIMIT_US)


def _read(stream: Stream, text: str, record_timestamp_us: int = 2 * TIME_LIMIT_US) -> MappedEvent:
    return compile_mapping(stream)(orjson.loads(text), text.encode(), b"k", record_timestamp_us)


@pytest.mark.parametrize(
    ("stream", "text", "expected"),
    [
        # H3 = φ1 + 170: detected at 210.
        (_stream(), '{"detected": 210, "template": "s1"}', (170, 210, SHAPE)),
        (_stream(), '{"detected": -5, "template": "s2"}', (-45, -5, S2.histogram.shape_bytes)),
        (_stream(), '{"detected": 100, "template": "flat"}', (85, 100, None)),
        (
            _stream(),
            '{"detected": "2013-01-01T00:00:00.0000001Z", "template": "s1"}',
            (DAY_2013 - 39, DAY_2013 + 1, SHAPE),
        ),
        (_stream(), '{"earliest": 3, "latest": 9}', (3, 9, None)),
        (_stream(), '{"time": 9, "template": null, "histogram": null}', (9, 9, None)),
        (
            _stream(),
            '{"histogram": [[170, 190, 0.1], [190, 200, 0.3], [200, 210, 0.6]]}',
            (170, 210, SHAPE),
        ),
        (
            _stream(),
            (
                '{"histogram": [{"lo": 170, "hi": 190, "p": "0.1"}, [190, 200, "0.3"], '
                '{"lo": 200, "hi": 210, "p": 0.6, "why": "more"}]}'
            ),
            (170, 210, SHAPE),
        ),
        (
            _stream(),
            '{"histogram": [["2013-01-01T00:00:00Z", "2013-01-01T01:00:00.00003+01:00", 1]]}',
            (DAY_2013, DAY_2013 + 30, None),
        ),
        (_stream(), '{"histogram": [[7, 7, 1]]}', (7, 7, None)),
        # Times of no mass at an end are not possible.
        (_stream(), '{"histogram": [[0, 90, 0], [90, 95, 1.0], [95, 400, 0]]}', (90, 95, None)),
        # The histogram counts before the template, the template before the interval.
        (
            _stream(),
            '{"earliest": 1, "latest": 2, "detected": 210, "template": "s1"}',
            (170, 210, SHAPE),
        ),
        (
            _stream(),
            '{"histogram": [[7, 8, 1]], "detected": 210, "template": "s1"}',
            (7, 8, None),
        ),
        # Forms that a stream does not declare are fields like others.
        (
            _stream(templates=(), histograms=False),
            '{"earliest": 1, "latest": 2, "template": "s1", "histogram": []}',
            (1, 2, None),
        ),
        (_detections(), '{"at": 210, "by": {"kind": "s1"}}', (170, 210, SHAPE)),
        (
            _detections("iso8601", timezone="America/New_York"),
            '{"at": "2012-12-31T19:00:00", "by": {"kind": "s1"}}',
            (DAY_2013 - 40, DAY_2013, SHAPE),
        ),
        (_detections("epoch_ns"), '{"at": 209001, "by": {"kind": "s1"}}', (170, 210, SHAPE)),
        (
            _histograms("epoch_s"),
            '{"when": [[1, 1.5, 0.25], {"lo": 1.5, "hi": 2, "p": 0.75}]}',
            (1_000_000, 2_000_000, described((0, 500_000, ".25"), (500_000, 10**6, ".75"))),
        ),
        # Inner bounds and the first are rounded down, the end of the support up.
        (
            _histograms("epoch_ns"),
            (
                '{"when": [[1, 20001, 0.1], [20001, 30999, 0.3], [30999, 39001, 0.6], '
                "[39001, 50001, 0]]}"
            ),
            (0, 40, SHAPE),
        ),
    ],
)
def test_record_becomes_a_timestamp(
    stream: Stream, text: str, expected: tuple[int, int, bytes | Histogram | None]
) -> None:
    earliest, latest, shape = expected
    if isinstance(shape, Histogram):
        shape = shape.shape_bytes
    assert _read(stream, text) == MappedEvent(None, b"k", earliest, latest, shape)


@pytest.mark.parametrize(
    ("stream", "text", "reason"),
    [
        (_stream(), '{"detected": 210, "template": "s3"}', Reason.UNKNOWN_TEMPLATE),
        (_stream(templates=()), '{"detected": 9, "template": "s1"}', Reason.UNKNOWN_TEMPLATE),
        (_stream(), '{"detected": 210, "template": 7}', Reason.WRONG_TYPE),
        (_stream(), '{"detected": 210, "template": ["s1"]}', Reason.WRONG_TYPE),
        (_stream(), '{"detected": 210}', Reason.MISSING_FIELD),
        (_stream(), '{"template": "s1"}', Reason.MISSING_FIELD),
        (_stream(), '{"detected": null, "template": "s1"}', Reason.WRONG_TYPE),
        (_stream(), '{"detected": "soon", "template": "s1"}', Reason.NOT_A_TIME),
        (_stream(), '{"detected": 9e30, "template": "s1"}', Reason.TIME_OUT_OF_RANGE),
        (
            _stream(),
            f'{{"detected": {5 - TIME_LIMIT_US}, "template": "s1"}}',
            Reason.TIME_OUT_OF_RANGE,
        ),
        (_stream(histograms=False), '{"histogram": [[0, 1, 1]]}', Reason.UNDECLARED_HISTOGRAM),
        (
            _stream(histograms=False, templates=()),
            '{"histogram": [[0, 1, 1]]}',
            Reason.UNDECLARED_HISTOGRAM,
        ),
        (_stream(), '{"histogram": [[0, 41, 1]]}', Reason.LONGER_THAN_DECLARED),
        (
            _stream(min_uncertainty_us=3, templates=()),
            '{"histogram": [[0, 2, 1]]}',
            Reason.SHORTER_THAN_DECLARED,
        ),
        (_stream(), '{"histogram": [[0, true, 1]]}', Reason.WRONG_TYPE),
        (_stream(), '{"histogram": [["noon", 5, 1]]}', Reason.NOT_A_TIME),
        (
            _stream(),
            f'{{"histogram": [[{2 * TIME_LIMIT_US}, {2 * TIME_LIMIT_US + 5}, 1]]}}',
            Reason.TIME_OUT_OF_RANGE,
        ),
        (_detections(), '{"at": 210, "by": "s1"}', Reason.MISSING_FIELD),
        (_detections(), '{"earliest": 1, "latest": 2}', Reason.MISSING_FIELD),
        (_detections(), '{"at": 210, "by": {"kind": "s9"}}', Reason.UNKNOWN_TEMPLATE),
        (_histograms(), '{"histogram": [[0, 1, 1]]}', Reason.MISSING_FIELD),
        (_histograms("iso8601"), '{"when": [[0, 1, 1]]}', Reason.WRONG_TYPE),
    ],
)
def test_what_is_no_timestamp_is_rejected_with_its_reason(
    stream: Stream, text: str, reason: Reason
) -> None:
    with pytest.raises(RejectedEventError) as rejected:
        _read(stream, text)
    assert rejected.value.reason is reason
    assert rejected.value.detail


@pytest.mark.parametrize(
    ("buckets", "place", "name"),
    [
        ("5", "", "a number"),
        ("{}", "", "an object"),
        ("[]", "", "got 0"),
        ("[[0, 1]]", "[0]", "not a valid bucket"),
        ('[{"lo": 0, "hi": 1}]', "[0].p", "missing"),
        ("[[0, 1, 0.4], [1, 2, 0.5]]", "", "exactly 1; got 0.9"),
        ("[[0, 1, 0.5], [1, 2, 0.50000000001]]", "[1].p", "0.50000000001 has too many"),
        ("[[0, 1, -0.5], [1, 2, 1.5]]", "[0].p", "-0.5"),
        ('[[0, 1, "much"]]', "[0].p", "must be a decimal"),
        ("[[0, 2, 0.5], [1, 3, 0.5]]", "[1].lo", "1 us, is below 2 us"),
        ("[[0, 1, 0.5], [2, 3, 0.5]]", "[1].lo", "2 us, is above"),
        ("[[2, 3, 0.5], [0, 2, 0.5]]", "[1].lo", "0 us, is below 3 us"),
        ("[[3, 2, 1]]", "[0].hi", "2 us is below lo, 3 us"),
        ("[[0, 0, 0.5], [0, 2, 0.5]]", "[0].hi", "empty"),
        (f"{[[n, n + 1, 0] for n in range(BUCKET_LIMIT + 1)]}", "", "got 101"),
    ],
)
def test_detail_of_a_bad_histogram_names_the_bucket(buckets: str, place: str, name: str) -> None:
    with pytest.raises(RejectedEventError) as rejected:
        _read(_stream(), f'{{"histogram": {buckets}}}')
    assert rejected.value.reason is Reason.BAD_HISTOGRAM
    assert rejected.value.detail.startswith(f"histogram{place}: ")
    assert_names(rejected.value.detail, name)


def test_histogram_event_of_the_future_is_a_dead_letter() -> None:
    text, skew = '{"detected": 2000000, "template": "s1"}', 1_000_000
    assert _read(_stream(), text, 2_000_000 - 40 - skew).latest == 2_000_000
    with pytest.raises(RejectedEventError) as rejected:
        _read(_stream(), text, 2_000_000 - 41 - skew)
    assert rejected.value.reason is Reason.FUTURE_DATED


@given(histogram=large_histograms)
def test_histogram_in_json_is_the_one_that_was_written(histogram: Histogram) -> None:
    stream = _histograms()
    masses = [Decimal(mass) / WHOLE_MASS for mass in histogram.masses]
    ends = [(bucket.lo_us, bucket.hi_us) for bucket in histogram.buckets]
    expected = MappedEvent(
        None, b"k", histogram.earliest_us, histogram.latest_us, histogram.shape_bytes
    )
    for write in (float, str):
        buckets = [[*pair, write(mass)] for pair, mass in zip(ends, masses, strict=True)]
        assert _read(stream, orjson.dumps({"when": buckets}).decode()) == expected


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"templates": (S1, S1)}, "templates"),
        ({"max_uncertainty_us": 39}, "max_uncertainty"),
        ({"min_uncertainty_us": 16}, "max_uncertainty"),
        (
            {"mapping": EventMapping("template", detected_path=("a",), template_path=("b",))}
            | {"templates": ()},
            "templates",
        ),
        ({"mapping": EventMapping("time", time_path=("t",)), "histograms": False}, "templates"),
        ({"mapping": EventMapping("time", time_path=("t",)), "templates": ()}, "histograms"),
        (
            {"mapping": EventMapping("histogram", histogram_path=("t",))}
            | {"templates": (), "histograms": False},
            "histograms",
        ),
        (
            {"templates": tuple(Template(f"t{n}", PHI) for n in range(TEMPLATE_LIMIT + 1))},
            "templates",
        ),
    ],
)
def test_stream_that_its_shapes_do_not_fit_names_the_field(
    changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidFieldError) as invalid:
        _stream(**changes)
    assert invalid.value.field == field
    assert invalid.value.remedy


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"form": "template", "detected_path": ("a",)}, "mapping.template"),
        ({"form": "template", "template_path": ("a",)}, "mapping.detected"),
        ({"form": "histogram"}, "mapping.histogram"),
        ({"form": "time", "time_path": ("t",), "histogram_path": ("h",)}, "mapping.histogram"),
        ({"form": "histogram", "histogram_path": ("",)}, "mapping.histogram"),
    ],
)
def test_a_wrong_mapping_of_shapes_names_its_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidFieldError) as invalid:
        EventMapping(**changes)
    assert invalid.value.field == field


def test_a_stream_may_have_a_thousand_templates() -> None:
    """The 500 of PTJ Example 5, and twice as many."""
    names = [f"t{n}" for n in range(1_000)]
    stream = _stream(templates=tuple(Template(name, PHI) for name in names))
    assert [it.name for it in stream.templates] == names
    again = (*stream.templates[1:], stream.templates[-1])
    with pytest.raises(InvalidFieldError, match="'t999' is repeated"):
        _stream(templates=again)


@pytest.mark.parametrize(
    ("count", "known"),
    [
        (2, "t0, t1"),
        (TEMPLATE_LIMIT, "1000 templates"),
    ],
)
def test_detail_of_an_unknown_template_stays_short(count: int, known: str) -> None:
    stream = _stream(templates=tuple(Template(f"t{n}", PHI) for n in range(count)))
    with pytest.raises(RejectedEventError) as rejected:
        _read(stream, '{"detected": 210, "template": "x"}')
    assert_names(rejected.value.detail, "template 'x'", known)
    assert len(rejected.value.detail) < 80
