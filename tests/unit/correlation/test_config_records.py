"""Records of the config topic that hold a resource: one rule for service and job."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.config_records import parse_config_record, read_config_record
from correlation.errors import UnknownRecordVersionError, UnreadableRecordError
from correlation.resources.records import Resource

STREAM = {"topic": "t", "max_uncertainty_us": 200_000, "max_delay_us": 1_000_000}
PAIR = {"kind": "mutual_deadline", "a": "x", "b": "y", "window_us": 5, "threshold": "0.5"}
RECORD = Resource("stream", "x", 1, 0, STREAM).to_record()
CONDITION = Resource("condition", "c", 1, 0, PAIR).to_record()


def test_resource_comes_back_from_its_record() -> None:
    for resource in (
        Resource("stream", "x", 3, 17, STREAM),
        Resource("condition", "c", 2, 5, PAIR, paused=True),
    ):
        value = json.dumps(resource.to_record()).encode()
        assert parse_config_record(resource.key, value, json.loads) == resource


@pytest.mark.parametrize(
    ("key", "record", "problem"),
    [
        (b"", RECORD, "kind/name"),
        (b"stream", RECORD, "kind/name"),
        (b"stream/", RECORD, "kind/name"),
        (b"stream/X", RECORD | {"name": "X"}, "kind/name"),
        (b"stream/x/y", RECORD, "kind/name"),
        (b"planet/x", RECORD | {"kind": "planet"}, "kind/name"),
        (b"stream/\xff", RECORD, "kind/name"),
        (b"stream/y", RECORD, "different resources"),
        (b"condition/x", RECORD, "different resources"),
        (b"stream/x", [RECORD], "not a JSON object"),
        (b"stream/x", "", "not a JSON object"),
        (b"stream/x", RECORD | {"v": 0}, "v: must be 1"),
        (b"stream/x", RECORD | {"v": True}, "v: must be 1"),
        (b"stream/x", RECORD | {"v": 1.0}, "v: must be 1"),
        (b"stream/x", RECORD | {"v": "9" * 99}, "v: must be 1"),
        (b"stream/x", {"v": 1, "kind": "stream"}, "is not a stream"),
        (b"stream/x", RECORD | {"version": 0}, "version: .*at least 1"),
        (b"stream/x", RECORD | {"version": None}, "version: .*at least 1"),
        (b"stream/x", RECORD | {"updated_at": "now"}, "updated_at"),
        (b"stream/x", RECORD | {"document": []}, "document"),
        (b"stream/x", RECORD | {"document": {}}, "topic: is missing"),
        (
            b"stream/x",
            RECORD | {"document": STREAM | {"max_uncertainty_us": "1"}},
            "not a stream",
        ),
        (b"stream/x", RECORD | {"document": STREAM | {"mapping": 1}}, "not a stream"),
        (b"condition/c", CONDITION | {"paused": 1}, "paused"),
        (b"condition/c", CONDITION | {"document": PAIR | {"kind": "later"}}, "kind: .* is unknown"),
        (b"condition/c", CONDITION | {"document": PAIR | {"threshold": "x"}}, "not a cond"),
        (b"template/x", RECORD | {"kind": "template"}, "buckets: is missing"),
    ],
)
def test_record_that_is_not_a_resource_is_unreadable(
    key: bytes,
    record: Any,  # noqa: ANN401  any JSON
    problem: str,
) -> None:
    with pytest.raises(UnreadableRecordError, match=problem):
        read_config_record(key, record)


DEEP = b"[" * 1_000 + b"]" * 1_000


@pytest.mark.parametrize("field", ["v", "kind", "name", "version", "updated_at", "paused", "more"])
def test_record_of_any_depth_is_unreadable(field: str) -> None:
    value = orjson.dumps(CONDITION | {field: 0})[:-1] + b',"%s":%s}' % (field.encode(), DEEP)
    with pytest.raises(UnreadableRecordError, match="nested deeper than 100 levels"):
        parse_config_record(b"condition/c", value, orjson.loads)


@pytest.mark.parametrize("value", [b'{"v":2,"more":%s}' % DEEP, DEEP, b"[" * 99_999])
def test_deep_value_is_unreadable_whatever_its_version_and_parser(value: bytes) -> None:
    for loads in (orjson.loads, json.loads):
        with pytest.raises(UnreadableRecordError):
            parse_config_record(b"condition/c", value, loads)


def test_problem_is_short_however_long_the_value_is() -> None:
    document = PAIR | {"threshold": "x" * 100_000}
    with pytest.raises(UnreadableRecordError) as caught:
        read_config_record(b"condition/c", CONDITION | {"document": document})
    assert len(str(caught.value)) <= 300


@pytest.mark.parametrize("value", [b"", b"{", b"\xff"])
def test_value_that_is_not_json_is_unreadable(value: bytes) -> None:
    with pytest.raises(UnreadableRecordError, match="not valid JSON"):
        parse_config_record(b"stream/x", value, json.loads)


@pytest.mark.parametrize("record", [{"v": 2}, RECORD | {"v": 9}])
def test_newer_version_is_told_apart_where_the_key_names_a_resource(record: Any) -> None:  # noqa: ANN401  any JSON
    with pytest.raises(UnknownRecordVersionError, match="the record has version"):
        read_config_record(b"stream/x", record)
    with pytest.raises(UnreadableRecordError):
        read_config_record(b"planet/x", record)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(
    name=st.sampled_from(["stream", "condition"]),
    field=st.sampled_from([*RECORD, "paused", *(f"document.{it}" for it in (*STREAM, *PAIR))]),
    value=ANY,
)
def test_any_change_of_a_record_leaves_it_readable_or_not(
    name: str,
    field: str,
    value: Any,  # noqa: ANN401  any JSON
) -> None:
    record = json.loads(json.dumps(RECORD if name == "stream" else CONDITION))
    above, _, last = field.rpartition(".")
    (record[above] if above else record)[last] = value
    key = f"{name}/{'x' if name == 'stream' else 'c'}".encode()
    try:
        found = read_config_record(key, record)
    except (UnreadableRecordError, UnknownRecordVersionError):
        return
    assert found.key == key
