"""The registry is a fold of records over a dict: tables of records in their order."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from correlation.errors import InvalidFieldError, UnknownRecordVersionError
from correlation.records import Resource
from correlation.streams import Stream
from service.errors import DependedUponError, InvalidDocumentError, UnreadableRecordError
from service.log import LogRecord
from service.registry import Registry, checked_condition, deletion_headers

STREAM = {"topic": "t", "longest_us": 200_000, "max_delay_us": 1_000_000}
PAIR = {"kind": "mutual_deadline", "a": "x", "b": "y", "window_us": 5, "threshold": "0.5"}


def stream(name: str, version: int = 1, **changes: object) -> Resource:
    return Resource("stream", name, version, 0, STREAM | changes)


def condition(name: str, version: int = 1, **changes: object) -> Resource:
    return Resource("condition", name, version, 0, PAIR | changes)


def fold(*entries: Resource | bytes) -> Registry:
    """Apply resources, and deletions given by their key."""
    registry = Registry()
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


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        (b"stream/x", b"{", UnreadableRecordError),
        (b"stream/x", b"\xff", UnreadableRecordError),
        (b"stream/x", b"", UnreadableRecordError),
        (b"stream/x", b"[]", UnknownRecordVersionError),
        (b"stream/x", b"{}", UnknownRecordVersionError),
        (b"stream/x", b'{"v":2}', UnknownRecordVersionError),
        (b"stream/x", b'{"v":1,"kind":"stream"}', UnknownRecordVersionError),
        (b"stream/y", orjson.dumps(stream("x").to_record()), UnreadableRecordError),
        (None, orjson.dumps(stream("x").to_record()), UnreadableRecordError),
        (b"stream/X", orjson.dumps(stream("X").to_record()), UnreadableRecordError),
        (b"stream/x", orjson.dumps(stream("x", longest_us="1").to_record()), UnreadableRecordError),
        (
            b"condition/c",
            orjson.dumps(condition("c", kind="of_the_future").to_record()),
            UnreadableRecordError,
        ),
        (
            b"template/x",
            orjson.dumps(stream("x").to_record() | {"kind": "template"}),
            UnknownRecordVersionError,
        ),
    ],
)
def test_apply_refuses_a_record_it_cannot_read(
    key: bytes | None, value: bytes, error: type[Exception]
) -> None:
    registry = fold(stream("z"))
    with pytest.raises(error, match="offset 7"):
        registry.apply(LogRecord(7, key, value, 0))
    assert names(registry, "stream") == [("z", 0)]


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
    fold(stream("x"), stream("y")).check_stream(grid)
    with pytest.raises(DependedUponError, match="partitioning"):
        fold(stream("x"), stream("y"), condition("c")).check_stream(grid)
    fold(stream("x"), condition("c")).check_stream(stream("x", longest_us=7).to_stream())


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
    shaped = Stream("y", "ty", 200_000, 0, histograms=True)
    factored = PAIR | {"output": "factored"}
    assert checked_condition("c", 1, factored, {"x": plain, "y": replace(plain, name="y")})
    with pytest.raises(InvalidFieldError, match="stream y may carry histograms") as caught:
        checked_condition("c", 1, factored, {"x": plain, "y": shaped})
    assert (caught.value.field, caught.value.remedy) == ("output", "use output pairs")


def test_check_condition_needs_equal_partitioning() -> None:
    registry = fold(stream("x"), stream("y", partitioning={"by": "grid"}))
    with pytest.raises(InvalidDocumentError, match="b: is not partitioned like a"):
        registry.check_condition("c", 1, PAIR)


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
    with pytest.raises(InvalidDocumentError, match="topic: condition c reads the stream"):
        registry.check_stream(stream("x", topic="out").to_stream())
    registry.check_stream(stream("z", topic="out").to_stream())


def test_check_condition_passes_on_what_a_value_type_refuses() -> None:
    with pytest.raises(InvalidFieldError, match="threshold"):
        fold(stream("x"), stream("y")).check_condition("c", 1, PAIR | {"threshold": "1.5"})


def test_deletion_alone_remembers_the_version_that_it_deleted() -> None:
    """After compaction nothing else is left of the name."""
    registry = Registry()
    key = condition("x").key
    registry.apply(LogRecord(9, key, None, 0, deletion_headers(condition("x", version=7))))
    assert registry.next_version("condition", "x") == 8
    # One that says nothing, written by other means, takes nothing away.
    registry.apply(LogRecord(10, key, None, 0))
    assert registry.next_version("condition", "x") == 8
