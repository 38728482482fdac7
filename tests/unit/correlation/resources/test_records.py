"""Records of the config topic: round trips of documents, and errors that name the field."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.errors import InvalidFieldError, UnknownRecordVersionError
from correlation.kinds import KINDS, condition_from_document
from correlation.resources.attributes import Attribute
from correlation.resources.durations import format_duration, parse_duration_us
from correlation.resources.filters import read_filter
from correlation.resources.histogram import Histogram
from correlation.resources.mapping import EventMapping
from correlation.resources.partitioning import Partitioning
from correlation.resources.records import (
    Resource,
    stream_from_document,
    stream_to_document,
    template_to_document,
)
from correlation.resources.streams import Stream
from correlation.resources.template import Template
from correlation.timing.conditions import TimingCondition
from tests.support.messages import assert_names

NEAR: dict[str, Any] = {
    "kind": "mutual_deadline",
    "a": "x",
    "b": "y",
    "window_us": 5,
    "threshold": "0.7",
}

LASTING = EventMapping("lasting", begin_path=("b",), end_path=("a", "e"), format="epoch_s")
ATTRIBUTES = (
    Attribute("rule", ("alert", "rule.id")),
    Attribute("level", ("level",), "integer"),
    Attribute("ratio", ("ratio",), "number"),
    Attribute("at", ("$offset",), "integer"),
)
HALVES = Template("a", Histogram.from_buckets([[0, 5, "0.5"], [5, 9, "0.5"]]), 3)


@pytest.mark.parametrize(
    "stream",
    [
        Stream("s", "t", 10, 5),
        Stream("s", "t", 10, 5, partitioning=Partitioning("grid"), clock="replay"),
        Stream("s", "t", 10, 5, 2, EventMapping(id_path=("a", "b"), key_path=("c.d",))),
        Stream(
            "s",
            "t",
            10,
            5,
            mapping=EventMapping("time", time_path=("t",), after_us=9, timezone="Asia/Tokyo"),
        ),
        Stream(
            "s",
            "t",
            10,
            5,
            mapping=EventMapping(
                "range", earliest_path=("f",), latest_path=("t",), format="epoch_ms"
            ),
            max_skew_us=7,
        ),
        Stream("s", "t", 10, 5, templates=(HALVES, replace(HALVES, name="b", version=7))),
        Stream(
            "s",
            "t",
            10,
            5,
            mapping=EventMapping("template", detected_path=("a", "b"), template_path=("c.d",)),
            templates=(HALVES,),
        ),
        Stream(
            "s",
            "t",
            10,
            5,
            mapping=EventMapping("histogram", histogram_path=("h",), timezone="Asia/Tokyo"),
            histograms=True,
        ),
        Stream("s", "t", 0, 5, mapping=LASTING),
        Stream("s", "t", 0, 5, mapping=LASTING, min_length_us=0, max_length_us=7),
        Stream("s", "t", 0, 5, attributes=ATTRIBUTES),
        Stream(
            "s",
            "t",
            0,
            5,
            attributes=ATTRIBUTES,
            where=read_filter(
                {"rule": ["A-1", "Süd"], "level": {"min": 3, "not": 5}, "ratio": {"max": 0.5}},
                ATTRIBUTES,
            ),
        ),
    ],
)
def test_streams_come_back_from_their_documents(stream: Stream) -> None:
    document = json.loads(json.dumps(stream_to_document(stream)))
    assert stream_from_document("s", document) == stream


def test_stream_of_before_there_were_shapes_has_none() -> None:
    document = stream_to_document(Stream("s", "t", 10, 5))
    del document["templates"], document["histograms"]
    assert stream_from_document("s", document) == Stream("s", "t", 10, 5)


def test_stream_of_before_there_were_attributes_has_none() -> None:
    document = stream_to_document(Stream("s", "t", 10, 5))
    del document["attributes"], document["where"]
    assert stream_from_document("s", document) == Stream("s", "t", 10, 5)


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ({"mapping": {"begin": "b"}}, {"mapping.end": "is missing"}),
        ({"mapping": {"begin": "b", "end": ""}}, {"mapping.end": "has an empty part"}),
        (
            {"mapping": {"begin": "b", "end": "e", "time": "t"}},
            {
                "mapping.begin": "cannot be combined",
                "mapping.end": "cannot be combined",
            },
        ),
        (
            {"mapping": {"begin": "b", "end": "e"}, "max_uncertainty_us": 5},
            {"max_uncertainty": "events last"},
        ),
        ({"max_length_us": 5}, {"max_length": "no begin and end"}),
        (
            {"mapping": {"begin": "b", "end": "e"}, "min_length_us": 5, "max_length_us": 4},
            {"min_length": "5us exceeds max_length (4us)"},
        ),
        (
            {"mapping": {"begin": "b", "end": "e"}, "max_length_us": -1, "max_delay_us": -1},
            {
                "max_delay": "got -1us",
                "max_length": "got -1us",
            },
        ),
        (
            {"mapping": {"begin": "b", "end": "e"}, "histograms": True},
            {"histograms": "does not read histograms"},
        ),
        (
            {"attributes": {"A": "a", "b": {"type": "text"}, "c": {"path": "$key", "size": 3}}},
            {
                "attributes.A": "not a valid name",
                "attributes.b.path": "is missing",
                "attributes.b.type": "'text' is unknown",
                "attributes.c.size": "is unknown",
                "attributes.c.path": "'$key' is unknown",
            },
        ),
        ({"attributes": {"a": 3}}, {"attributes.a": "not a valid path"}),
        (
            {"attributes": {"a": {"path": "a", "type": None}}},
            {"attributes.a.type": "got null"},
        ),
        ({"attributes": ["a"]}, {"attributes": "got a list"}),
        ({"where": {"rule": 3}}, {"where.rule": "not an attribute"}),
        # The types of the filter's constants are only checked if all attributes are valid.
        (
            {"attributes": {"A": "a"}, "where": {"A": 3, "b": {"least": 1}}},
            {"attributes.A": "not a valid name", "where.b.least": "is unknown"},
        ),
    ],
)
def test_a_faulty_stream_names_every_field(
    changes: dict[str, Any], problems: dict[str, str]
) -> None:
    lasting = "mapping" in changes
    uncertainty = {} if lasting else {"max_uncertainty_us": 10}
    with pytest.raises(InvalidFieldError) as invalid:
        stream_from_document("s", {"topic": "t", "max_delay_us": 5} | uncertainty | changes)
    found = {it.field: it.problem for it in invalid.value.problems}
    assert found.keys() == problems.keys()
    for field, name in problems.items():
        assert_names(found[field], name)


def test_template_comes_back_from_its_resource() -> None:
    resource = Resource("template", "a", 3, 17, template_to_document(HALVES))
    record = json.loads(json.dumps(resource.to_record()))
    assert resource.document == {
        "buckets": [{"lo": -9, "hi": -4, "p": "0.5"}, {"lo": -4, "hi": 0, "p": "0.5"}]
    }
    assert Resource.from_record(record).to_template() == HALVES
    assert (resource.key, record.get("paused")) == (b"template/a", None)


def test_template_without_buckets_names_them() -> None:
    with pytest.raises(InvalidFieldError) as invalid:
        Resource("template", "a", 1, 0, {}).to_template()
    assert invalid.value.field == "buckets"


@pytest.mark.parametrize(
    ("document", "bounds"),
    [
        (NEAR, (-5, 5, None, None)),
        ({**NEAR, "kind": "within", "lower_us": -3, "upper_us": 9}, (-3, 9, None, None)),
        ({**NEAR, "kind": "deadline", "deadline_us": 9, "horizon_us": 20}, (None, 9, -20, None)),
        ({**NEAR, "kind": "delay", "delay_us": 9, "horizon_us": 20}, (9, None, None, 20)),
    ],
)
def test_predicates_are_windows(document: dict[str, Any], bounds: tuple[object, ...]) -> None:
    condition = condition_from_document("c", 3, document)
    assert isinstance(condition, TimingCondition)
    window = condition.window
    assert (window.lower_us, window.upper_us, window.floor_us, window.ceiling_us) == bounds
    assert window.threshold == Fraction(7, 10)
    assert (condition.streams, condition.version) == (("x", "y"), 3)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"kind": "seance"}, "kind"),
        ({"a": "No Name"}, "a"),
        ({"threshold": "0"}, "threshold"),
        ({"threshold": "1.0001"}, "threshold"),
        ({"threshold": "NaN"}, "threshold"),
        ({"threshold": "much"}, "threshold"),
        ({"threshold": "0.12345678901"}, "threshold"),
        ({"window_us": -1}, "window"),
        ({"window_us": 2**51}, "window"),
        ({"algorithm": "magic"}, "algorithm"),
        ({"emit": "everything"}, "emit"),
        ({"output": "zip"}, "output"),
        ({"output": "factored", "emit": "best"}, "emit"),
        ({"output": "factored", "emit": "unmatched"}, "emit"),
        ({"output": "factored", "algorithm": "indexed"}, "algorithm"),
        ({"output": "factored", "b": NEAR["a"]}, "output"),
        ({"output_topic": "no/slash"}, "output_topic"),
        ({"kind": "within", "lower_us": 3, "upper_us": 2}, "upper"),
        ({"kind": "within", "lower_us": 3}, "upper_us"),
        ({"kind": "deadline", "deadline_us": -9, "horizon_us": 5}, "horizon"),
        ({"kind": "delay", "delay_us": 9, "horizon_us": 5}, "horizon"),
    ],
)
def test_a_wrong_condition_names_its_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidFieldError) as invalid:
        condition_from_document("c", 1, {**NEAR, **changes})
    assert invalid.value.field == field
    assert invalid.value.remedy


def test_a_threshold_stays_the_decimal_the_user_wrote() -> None:
    condition = condition_from_document("c", 1, {**NEAR, "threshold": 0.1})
    assert isinstance(condition, TimingCondition)
    assert condition.window.threshold == Fraction(1, 10)
    assert str(condition.threshold) == "0.1"


@pytest.mark.parametrize("paused", [False, True])
def test_resources_come_back_from_their_records(*, paused: bool) -> None:
    resource = Resource("condition", "c", 4, 17, NEAR, paused)
    assert Resource.from_record(resource.to_record()) == resource
    assert resource.key == b"condition/c"


@pytest.mark.parametrize(
    "record",
    [{}, {"v": 2, "kind": "stream"}, {"v": 1, "kind": "planet"}, {"v": 1, "kind": "stream"}, "x"],
)
def test_a_record_of_another_version_stops_the_reader(record: Any) -> None:  # noqa: ANN401 - any JSON
    with pytest.raises(UnknownRecordVersionError):
        Resource.from_record(record)


def test_every_kind_has_an_example_that_is_a_condition_once_normalised() -> None:
    for kind in KINDS.values():
        document = {
            (f"{name}_us" if any(f.name == name and f.type == "duration" for f in kind.fields)
             else name): (
                parse_duration_us(value)
                if any(f.name == name and f.type == "duration" for f in kind.fields)
                else value
            )
            for name, value in kind.example.items()
        }  # fmt: skip
        assert condition_from_document("c", 1, document).kind == kind.name


@given(duration_us=st.integers(-(10**15), 10**15))
def test_durations_come_back_from_their_text(duration_us: int) -> None:
    assert parse_duration_us(format_duration(duration_us)) == duration_us


@pytest.mark.parametrize(
    ("text", "duration_us"),
    [("2s", 2_000_000), ("250ms", 250_000), ("1.5 s", 1_500_000), ("5min", 300_000_000)],
)
def test_durations_are_read_exactly(text: str, duration_us: int) -> None:
    assert parse_duration_us(text) == duration_us


@pytest.mark.parametrize("text", ["", "2", "s", "2 weeks", "0.5us", "1e3s", "٣s", "9" * 30 + "s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidFieldError, match="d: "):
        parse_duration_us(text, "d")
