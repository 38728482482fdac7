"""The registry is a fold of records over a dict: tables of records in their order."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from correlation.config_records import Unreadable
from correlation.errors import InvalidFieldError, UnknownRecordVersionError
from correlation.newest_records import deletion_headers
from correlation.resources.records import Resource, stream_to_document
from correlation.resources.streams import Stream
from service.checks import checked_condition
from service.errors import (
    DependedUponError,
    InvalidDocumentError,
    TemplateInUseError,
)
from service.log import LogRecord
from service.registry import Registry
from tests.support.messages import assert_names, naming

STREAM = {"topic": "t", "max_uncertainty_us": 200_000, "max_delay_us": 1_000_000}
PAIR = {"kind": "mutual_deadline", "a": "x", "b": "y", "window_us": 5, "threshold": "0.5"}


def stream(name: str, version: int = 1, **changes: object) -> Resource:
    return Resource("stream", name, version, 0, STREAM | changes)


def condition(name: str, version: int = 1, **changes: object) -> Resource:
    return Resource("condition", name, version, 0, PAIR | changes)


def template(name: str, version: int = 1, middle: int = 5) -> Resource:
    buckets = [[0, middle, "0.5"], [middle, 9, "0.5"]]
    return Resource("template", name, version, 0, {"buckets": buckets})


def fold(*entries: Resource | bytes, limit: int = 10**9) -> Registry:
    """Apply resources, and deletions given by their key."""
    registry = Registry(limit)
    for offset, entry in enumerate(entries):
        if isinstance(entry, bytes):
            registry.apply(LogRecord(offset, entry, None, 0))
        else:
            value = orjson.dumps(entry.to_record())
            registry.apply(LogRecord(offset, entry.key, value, 0))
    return registry


def names(registry: Registry, kind: str) -> list[tuple[str, int]]:
    assert kind in {"stream", "condition"}
    found, _ = registry.page("stream" if kind == "stream" else "condition", 100, "")
    return [(it.resource.name, it.offset) for it in found]


@pytest.mark.parametrize(
    ("entries", "streams", "conditions"),
    [
        ((), [], []),
        ((stream("x"),), [("x", 0)], []),
        ((stream("x"), stream("x", 2)), [("x", 1)], []),
        ((stream("y"), stream("x")), [("x", 1), ("y", 0)], []),
        ((stream("x"), b"stream/x"), [], []),
        ((stream("x"), b"stream/x", stream("x", 2)), [("x", 2)], []),
        ((b"stream/x", b"", b"template/x", b"stream/\xff"), [], []),
        ((stream("x"), condition("x")), [("x", 0)], [("x", 1)]),
        ((stream("x"), condition("x"), b"stream/x"), [], [("x", 1)]),
    ],
)
def test_fold_keeps_the_newest_record_of_every_key(
    entries: tuple[Resource | bytes, ...],
    streams: list[tuple[str, int]],
    conditions: list[tuple[str, int]],
) -> None:
    registry = fold(*entries)
    assert names(registry, "stream") == streams
    assert names(registry, "condition") == conditions


@pytest.mark.parametrize("is_following", [False, True])
@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (b"stream/x", b"{", "is not valid JSON"),
        (b"stream/x", b"\xff", "is not valid JSON"),
        (b"stream/x", b"[]", "not a JSON object"),
        (b"stream/x", b"{}", "v: must be 1"),
        (b"planet/x", b"{}", "must be kind/name"),
        (b"\xff", b"{}", "must be kind/name"),
        (None, b"{}", "must be kind/name"),
    ],
)
def test_record_that_cannot_be_read_takes_its_resource_out_of_force(
    key: bytes | None, value: bytes, problem: str, *, is_following: bool
) -> None:
    registry = fold(stream("z"), stream("x"))
    if is_following:
        registry.follow()
    registry.apply(LogRecord(7, key, value, 0))
    if not is_following:
        registry.follow()
    (found,) = registry.unreadable()
    assert (found.key, found.offset) == (key or b"", 7)
    assert problem in found.problem
    names_left = [("z", 0)] if key == b"stream/x" else [("x", 1), ("z", 0)]
    assert names(registry, "stream") == names_left

    registry.apply(LogRecord(8, key, None, 0))
    assert registry.unreadable() == []


def test_newer_record_heals_one_that_cannot_be_read() -> None:
    registry = fold(stream("x"))
    registry.apply(LogRecord(7, b"stream/x", b"{", 0))
    # Its version may have been any up to its offset + 1: versions begin at 1, offsets at 0.
    assert registry.next_version("stream", "x") == 9
    healed = orjson.dumps(stream("x", 8).to_record())
    registry.apply(LogRecord(8, b"stream/x", healed, 0))
    assert registry.unreadable() == []
    assert names(registry, "stream") == [("x", 8)]
    assert registry.next_version("stream", "x") == 9


def test_order_of_reading_does_not_decide_what_is_in_force() -> None:
    """Compaction leaves the newest record of a key; a fold of it alone is the same."""
    long, compacted = fold(stream("x"), condition("c")), Registry(10**9)
    for registry in (long, compacted):
        registry.apply(LogRecord(7, b"stream/x", b"{", 0))
    assert long.unreadable() == compacted.unreadable()
    assert [it.key for it in long.unreadable()] == [b"stream/x"]
    assert long.get("stream", "x") is compacted.get("stream", "x") is None
    assert long.next_version("stream", "x") == compacted.next_version("stream", "x")


NEWER = orjson.dumps(stream("x").to_record() | {"v": 2})


@pytest.mark.parametrize("after", [None, orjson.dumps(stream("x", 3).to_record()), b"{"])
def test_record_of_a_newer_version_is_no_reason_to_stop_once_it_is_replaced(
    after: bytes | None,
) -> None:
    registry = fold(stream("x"))
    registry.apply(LogRecord(7, b"stream/x", NEWER, 0))
    with pytest.raises(UnknownRecordVersionError, match=r"offset 7 .*stream/x: .* version 2"):
        registry.follow()
    registry.apply(LogRecord(8, b"stream/x", after, 0))
    registry.follow()
    with pytest.raises(UnknownRecordVersionError, match="offset 9"):
        registry.apply(LogRecord(9, b"stream/x", NEWER, 0))


def test_key_of_a_record_that_cannot_be_read_is_shown_escaped() -> None:
    assert Unreadable(b"stream/\xff\n\x1b", 3, "").shown_key == r"stream/\xff\n\x1b"


def test_next_version_counts_on_after_a_delete() -> None:
    registry = fold(stream("x"), stream("x", 2), b"stream/x")
    assert registry.next_version("stream", "x") == 3
    assert registry.next_version("stream", "new") == 1


def test_page_goes_on_after_a_name() -> None:
    registry = fold(*(stream(name) for name in "dacb"))
    seen, after = [], ""
    for _ in range(2):
        found, following = registry.page("stream", 2, after)
        seen.append([it.resource.name for it in found])
        after = following or ""
    assert seen == [["a", "b"], ["c", "d"]]
    assert registry.page("stream", 2, "b")[1] is None
    assert registry.page("stream", 2, "zz") == ([], None)


def test_check_unused_lists_the_conditions() -> None:
    registry = fold(stream("x"), stream("y"), condition("c2"), condition("c1", b="x"))
    with pytest.raises(DependedUponError, match="c1, c2") as caught:
        registry.check_unused("x", "no")
    assert [it.field for it in caught.value.problems] == ["conditions.c1", "conditions.c2"]
    with pytest.raises(DependedUponError, match=": c2 read"):
        registry.check_unused("y", "no")
    registry.check_unused("z", "no")


def test_check_stream_refuses_another_partitioning_when_conditions_read_it() -> None:
    grid = stream("x", partitioning={"by": "grid", "groups": 1}).to_stream()
    fold(stream("x"), stream("y")).checks().check_stream(grid)
    with pytest.raises(DependedUponError, match="partitioning"):
        fold(stream("x"), stream("y"), condition("c")).checks().check_stream(grid)
    two, three = (stream("x", partitioning={"by": "grid", "groups": groups}) for groups in (2, 3))
    self_correlation = condition("c", b="x")
    fold(two, self_correlation).checks().check_stream(two.to_stream())
    with pytest.raises(DependedUponError, match="partitioning"):
        fold(two, self_correlation).checks().check_stream(three.to_stream())
    fold(stream("x"), condition("c")).checks().check_stream(
        stream("x", max_uncertainty_us=7).to_stream()
    )


@pytest.mark.parametrize(
    ("streams", "changes", "fields"),
    [
        (("x", "y"), {}, []),
        (("x",), {"b": "x"}, []),
        (("x",), {}, ["b"]),
        (("y",), {}, ["a"]),
        ((), {}, ["a", "b"]),
    ],
)
def test_check_condition_names_the_streams_that_are_missing(
    streams: tuple[str, ...], changes: dict[str, object], fields: list[str]
) -> None:
    registry = fold(*(stream(name) for name in streams))
    if not fields:
        assert registry.check_condition("c", 4, PAIR | changes).version == 4
        return
    with pytest.raises(InvalidDocumentError) as caught:
        registry.check_condition("c", 1, PAIR | changes)
    assert [it.field for it in caught.value.problems] == fields


def test_factored_output_is_refused_for_streams_with_histograms() -> None:
    plain = Stream("x", "tx", 200_000, 0)
    with_histograms = Stream("y", "ty", 200_000, 0, histograms=True)
    factored = PAIR | {"output": "factored"}
    assert checked_condition("c", 1, factored, {"x": plain, "y": replace(plain, name="y")})
    with pytest.raises(InvalidDocumentError, match=r"histograms, .* stream y") as caught:
        checked_condition("c", 1, factored, {"x": plain, "y": with_histograms})
    (problem,) = caught.value.problems
    assert (problem.field, problem.remedy) == ("output", "use output pairs")


def test_check_condition_needs_equal_partitioning() -> None:
    registry = fold(stream("x"), stream("y", partitioning={"by": "grid"}))
    with pytest.raises(InvalidDocumentError, match=naming("grid with 1 group", "by key")) as caught:
        registry.check_condition("c", 1, PAIR)
    assert [it.field for it in caught.value.problems] == ["b"]


def test_check_condition_needs_equal_groups() -> None:
    three, two = ({"by": "grid", "groups": groups} for groups in (3, 2))
    registry = fold(stream("x", partitioning=three), stream("y", partitioning=two))
    with pytest.raises(InvalidDocumentError, match=naming("with 2 groups", "with 3 groups")):
        registry.check_condition("c", 1, PAIR)
    same = fold(stream("x", partitioning=three), stream("y", partitioning=three))
    assert same.check_condition("c", 1, PAIR).name == "c"


@pytest.mark.parametrize("emit", ["best", "unmatched"])
def test_check_condition_refuses_to_judge_an_event_that_is_in_several_cells(emit: str) -> None:
    grids = [{"by": "grid", "groups": groups} for groups in (1, 2)]
    one, two = (fold(*(stream(name, partitioning=it) for name in "xy")) for it in grids)
    assert one.check_condition("c", 1, PAIR | {"emit": emit}).name == "c"
    with pytest.raises(InvalidDocumentError) as caught:
        two.check_condition("c", 1, PAIR | {"emit": emit})
    (problem,) = caught.value.problems
    assert problem.field == "emit"
    assert_names(problem.remedy, "emit pairs", "grid of 1 group")


@pytest.mark.parametrize(
    ("output_topic", "refused"),
    # u: of a stream that the condition does not read; alarms may become its events.
    [("tx", True), ("ty", True), ("tu", False), ("other", False), (None, False)],
)
def test_condition_does_not_write_among_the_events_it_reads(
    output_topic: str | None,
    refused: bool,  # noqa: FBT001  a column of the table
) -> None:
    registry = fold(*(stream(name, topic=f"t{name}") for name in "xyu"))
    document = PAIR | {"output_topic": output_topic}
    if not refused:
        registry.check_condition("c", 1, document)
        return
    with pytest.raises(InvalidDocumentError) as caught:
        registry.check_condition("c", 1, document)
    assert [it.field for it in caught.value.problems] == ["output_topic"]


def test_self_correlation_names_its_output_topic_once() -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        fold(stream("x")).check_condition("c", 1, PAIR | {"b": "x", "output_topic": "t"})
    assert [it.field for it in caught.value.problems] == ["output_topic"]


def test_stream_does_not_move_to_where_its_conditions_write() -> None:
    registry = fold(stream("x"), stream("y"), condition("c", output_topic="out"))
    with pytest.raises(InvalidDocumentError, match="condition c") as caught:
        registry.checks().check_stream(stream("x", topic="out").to_stream())
    assert [it.field for it in caught.value.problems] == ["topic"]
    registry.checks().check_stream(stream("z", topic="out").to_stream())


def test_check_condition_passes_on_what_a_value_type_refuses() -> None:
    with pytest.raises(InvalidFieldError, match="threshold"):
        fold(stream("x"), stream("y")).check_condition("c", 1, PAIR | {"threshold": "1.5"})


def test_deletion_alone_remembers_the_version_that_it_deleted() -> None:
    """After compaction nothing else is left of the name."""
    registry = Registry(10**9)
    key = condition("x").key
    registry.apply(LogRecord(9, key, None, 0, deletion_headers(7)))
    assert registry.next_version("condition", "x") == 8
    # One that says nothing, written by other means, takes nothing away.
    registry.apply(LogRecord(10, key, None, 0))
    assert registry.next_version("condition", "x") == 8


def test_version_never_goes_back() -> None:
    """A backup that was written back has versions above its offsets."""
    registry = fold(condition("x", 37))
    registry.apply(LogRecord(9, b"condition/x", b"{", 0))
    assert registry.next_version("condition", "x") == 38
    registry.apply(LogRecord(10, b"condition/x", None, 0, deletion_headers(10)))
    assert registry.next_version("condition", "x") == 38
    registry.apply(LogRecord(11, b"condition/x", None, 0, (("coincide.version", b"9" * 5_000),)))
    assert registry.next_version("condition", "x") == 38


def test_first_record_of_the_topic_may_have_had_version_1() -> None:
    registry = Registry(10**9)
    registry.apply(LogRecord(0, b"condition/x", b"{", 0))
    assert registry.next_version("condition", "x") == 2


def test_deep_record_takes_its_resource_out_of_force() -> None:
    registry = fold(condition("x"))
    value = b'{"v":%s}' % (b"[" * 1_000 + b"]" * 1_000)
    registry.apply(LogRecord(7, b"condition/x", value, 0))
    assert [it.key for it in registry.unreadable()] == [b"condition/x"]


def test_stream_takes_the_templates_that_it_names_as_they_are_now() -> None:
    registry = fold(template("t"), template("u"), template("t", 2, middle=3))
    found = registry.checks().read_stream("x", STREAM | {"templates": ["u", "t"]})
    assert [(it.name, it.version) for it in found.templates] == [("u", 1), ("t", 2)]
    assert found.templates[1].histogram.edges_us == (-9, -6, 0)
    # A stream keeps the shape that it has taken, whatever becomes of the template.
    kept = Resource("stream", "x", 1, 0, stream_to_document(found))
    registry = fold(template("t"), template("t", 2, middle=3), kept, template("t", 3))
    assert registry.streams() == {"x": found}
    assert registry.template_users("t") == {"x": 2}


def test_stream_that_names_unknown_templates_is_refused_for_each() -> None:
    with pytest.raises(InvalidDocumentError) as refused:
        fold(template("t")).checks().read_stream("x", STREAM | {"templates": ["a", "t", "b"]})
    assert [(it.field, it.remedy) for it in refused.value.problems] == [
        ("templates[0]", "register it first: PUT /v1/templates/a"),
        ("templates[2]", "register it first: PUT /v1/templates/b"),
    ]


def test_name_of_a_similar_resource_is_suggested() -> None:
    with pytest.raises(InvalidDocumentError) as refused:
        fold(template("morning")).checks().read_stream("x", STREAM | {"templates": ["mornign"]})
    (problem,) = refused.value.problems
    assert problem.remedy == "did you mean morning? register it first: PUT /v1/templates/mornign"


def test_template_in_use_is_kept_for_its_streams() -> None:
    registry = fold(template("t"))
    document = stream_to_document(registry.checks().read_stream("x", STREAM | {"templates": ["t"]}))
    registry = fold(template("t"), *(Resource("stream", it, 1, 0, document) for it in "yx"))
    with pytest.raises(TemplateInUseError) as refused:
        registry.check_template_unused("t")
    assert [it.field for it in refused.value.problems] == ["streams.x", "streams.y"]
    registry.check_template_unused("another")
