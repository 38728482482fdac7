"""Replacing the query of a checkpoint: what remains, even when the job is killed meanwhile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import orjson
import pytest

from correlation.engine.program import Program
from correlation.engine.published import Published
from correlation.resources.streams import Stream
from spark_jobs.driver import planning
from spark_jobs.driver.checkpoint import Checkpoint
from spark_jobs.driver.config_topic import ConfigTopic
from spark_jobs.driver.layout import Layout, open_layout, write_layout
from spark_jobs.driver.planning import prepare_layout, replace_query
from spark_jobs.driver.rebuild import Plan, read_plan
from spark_jobs.errors import CheckpointMismatchError, RebuildError
from spark_jobs.worker.slot_records import SlotRecord
from tests.support.messages import naming

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    from spark_jobs.settings import Settings, WithoutCheckpoint

STREAM = Stream("s", "topic", 10, 10)
SESSION = cast("SparkSession", None)
NEVER = 1_000
State = dict[bytes, bytes]


class KilledError(BaseException):
    """The process ends here."""


class Files(Checkpoint):
    """A checkpoint in memory; the job is killed before a change of a file."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.query = "query"
        self.changes_left = NEVER

    def naming_store(self) -> AbstractContextManager[None]:
        raise NotImplementedError

    def _change(self) -> None:
        if not self.changes_left:
            raise KilledError
        self.changes_left -= 1

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def write(self, name: str, content: bytes) -> None:
        self._change()
        self.files[name] = content

    def remove(self, name: str) -> None:
        self._change()
        self.files = {it: found for it, found in self.files.items() if not _is_in(it, name)}

    def _newest(self, folder: str) -> int:
        begin = f"{self.query}/{folder}/"
        found = [it.removeprefix(begin) for it in self.files if it.startswith(begin)]
        return max(map(int, found), default=-1)


def _is_in(name: str, folder: str) -> bool:
    return name == folder or name.startswith(f"{folder}/")


def used() -> Files:
    """Return a checkpoint with an unfinished batch."""
    checkpoint = Files()
    write_layout(checkpoint, Layout(1, (0, 1), "former", 0))
    checkpoint.write("config_topic-0.json", b'{"v":1,"id":"config"}')
    checkpoint.write("losses.json", b"{}")
    checkpoint.write("query/metadata", b'{"id":"q"}')
    for batch in (0, 1):
        checkpoint.write(f"query/offsets/{batch}", b"v1\n{}\n{}")
    checkpoint.write("query/commits/0", b"v1\n{}")
    return checkpoint


def state(first: int, second: int, checkpoint: str = "former") -> State:
    """Return the state of two slots, by the positions up to which they have written."""
    published = Program({"s": STREAM}, {"s": 1}).publish()
    records = {
        slot: SlotRecord(checkpoint, 2, "config", {"topic": {0: position}}, published_of(published))
        for slot, position in enumerate((first, second))
    }
    return {
        it.key or b"": it.value or b""
        for slot, record in records.items()
        for it in record.to_records("state", 0, slot, with_totals=True)
    }


def published_of(found: Published) -> Published:
    return Published({**found.position, "sources": {"s": [[0, 1, 3, 0]]}}, found.totals)


@pytest.fixture
def removed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return the keys whose records are removed from the topics of state and metrics."""
    found: list[bytes] = []
    monkeypatch.setattr(planning, "remove_records", lambda _, __, keys: found.extend(keys))

    def make_layout(_: SparkSession, slots: int, identity: str, generation: int) -> Layout:
        return Layout(1, tuple(range(slots)), identity, generation)

    monkeypatch.setattr(planning, "make_layout", make_layout)
    return found


def settings(without_checkpoint: WithoutCheckpoint = "rebuild") -> Settings:
    topics = SimpleNamespace(state="p.state", metrics="p.metrics")
    return cast(
        "Settings",
        SimpleNamespace(
            prefix="p", client={}, topics=topics, without_checkpoint=without_checkpoint
        ),
    )


def replace(
    checkpoint: Files,
    start: WithoutCheckpoint,
    values: Mapping[bytes, bytes],
    problems: list[str] | None = None,
    find_written: Callable[[], Collection[str]] = tuple,
) -> Layout:
    """Start as ordered, with three wanted slots."""
    stored = open_layout(checkpoint, SESSION, 2)
    layout = Layout(stored.shuffle_partitions, stored.slot_keys, "new", stored.generation)

    def missing(plan: Plan) -> list[str]:
        sources = [it.published.position["sources"]["s"] for it in plan.slots if it is not None]
        return problems or [] if any(sources) else []

    return replace_query(
        checkpoint, SESSION, layout, settings(), values, 3, start, missing, find_written
    )


def names(checkpoint: Files) -> set[str]:
    return {it for it in checkpoint.files if it.startswith("query")}


@pytest.mark.usefixtures("removed")
def test_rebuild_continues_what_the_slots_have_written_and_keeps_other_files() -> None:
    checkpoint = used()
    assert replace(checkpoint, "rebuild", state(7, 5)) == Layout(1, (0, 1), "new", 0)
    plan = read_plan(checkpoint)
    assert plan is not None
    # One slot has written the unfinished batch, and the number of slots stays.
    assert plan.starts == {"topic": {0: 5}}
    assert plan.written == ({"topic": {0: 7}}, {"topic": {0: 5}})
    assert names(checkpoint) == set()
    assert {"losses.json", "config_topic-0.json"} <= checkpoint.files.keys()


@pytest.mark.usefixtures("removed")
def test_rebuild_takes_the_wanted_number_of_slots_if_all_have_written_the_same() -> None:
    checkpoint = used()
    assert replace(checkpoint, "rebuild", state(7, 7)) == Layout(1, (0, 1, 2), "new", 1)
    assert checkpoint.query == "query-1"


@pytest.mark.usefixtures("removed")
def test_rebuild_that_is_not_possible_leaves_the_checkpoint_as_it_was() -> None:
    checkpoint = used()
    before = dict(checkpoint.files)
    with pytest.raises(RebuildError, match=naming("not changed", "cannot be rebuilt: gone")):
        replace(checkpoint, "rebuild", state(7, 7), ["gone"])
    for start in ("rebuild", "now"):
        with pytest.raises(RebuildError, match=r"is not in p\.state"):
            replace(checkpoint, start, {})
    assert checkpoint.files == before


@pytest.mark.usefixtures("removed")
def test_new_installation_begins_whatever_is_ordered() -> None:
    for start in ("rebuild", "now", "beginning"):
        checkpoint = Files()
        write_layout(checkpoint, Layout(1, (0, 1), "former", 0))
        layout = replace(checkpoint, start, {})
        assert open_layout(checkpoint, SESSION, 2) == layout
        assert layout.id == "new"


@pytest.mark.usefixtures("removed")
def test_results_without_state_are_not_written_again_unless_ordered() -> None:
    checkpoint = Files()

    def written() -> set[str]:
        return {"p.alarms"}

    write_layout(checkpoint, Layout(1, (0, 1), "former", 0))
    layout = open_layout(checkpoint, SESSION, 2)
    before = dict(checkpoint.files)
    for without in ("rebuild", "now"):
        with pytest.raises(RebuildError, match=r"p\.state, although .* p\.alarms"):
            prepare_layout(checkpoint, SESSION, layout, settings(without), {}, 2, written)
        with pytest.raises(RebuildError, match=r"p\.state, although .* p\.alarms"):
            replace(checkpoint, without, {}, find_written=written)
    assert checkpoint.files == before
    found = prepare_layout(checkpoint, SESSION, layout, settings("beginning"), {}, 2, written)
    assert found == layout
    # Of this query, only the first batch was begun, and then removed.
    begun = Files()
    write_layout(begun, layout)
    begun.write("query/metadata", b'{"id":"q"}')
    assert prepare_layout(begun, SESSION, layout, settings(), {}, 2, written) == layout
    assert replace(checkpoint, "beginning", {}, find_written=written).id == "new"


def test_start_from_now_gives_up_the_buffered_events(removed: list[bytes]) -> None:
    checkpoint = used()
    replace(checkpoint, "now", state(7, 7), ["gone"])
    plan = read_plan(checkpoint)
    assert plan is not None
    assert plan.starts == {"topic": {0: 7}}
    assert all(it and it.published.position["sources"] == {"s": []} for it in plan.slots)
    assert removed == []


def test_start_from_the_beginning_forgets_state_and_config_topic(removed: list[bytes]) -> None:
    checkpoint, values = used(), state(7, 5)
    checkpoint.write("config_topic-1.json", b'{"v":1,"id":"accepted"}')
    checkpoint.write("rebuild.json", b"of an earlier rebuild")
    layout = replace(checkpoint, "beginning", values)
    assert layout == Layout(1, (0, 1, 2), "new", 1)
    assert removed == list(values)
    # Totals of merged results, and what the metrics topic says of them.
    removed.clear()
    merged = {b"p.sink.merged.totals": b"{}", **values}
    replace(used(), "beginning", merged)
    assert removed == [b"merged", *merged]
    assert read_plan(checkpoint) is None
    assert names(checkpoint) == set()
    # Another config topic belongs to the checkpoint now.
    assert ConfigTopic(checkpoint, "p.config", "another", None).id == "another"


@pytest.mark.usefixtures("removed")
@pytest.mark.parametrize("positions", [(7, 5), (7, 7)])
def test_killed_start_has_a_plan_or_has_changed_nothing(positions: tuple[int, int]) -> None:
    values = state(*positions)
    steps = 0
    while True:
        checkpoint = used()
        before = dict(checkpoint.files)
        checkpoint.changes_left = steps
        try:
            replace(checkpoint, "rebuild", values)
            break
        except KilledError:
            steps += 1
        checkpoint.changes_left = NEVER
        stored = open_layout(checkpoint, SESSION, 2)
        layout = prepare_layout(checkpoint, SESSION, stored, settings(), values, 3)
        if read_plan(checkpoint) is None:
            assert checkpoint.files == before
        else:
            assert layout.id == "new"
            assert open_layout(checkpoint, SESSION, 2) == layout
            assert names(checkpoint) == set()
    assert steps > 4


@pytest.mark.usefixtures("removed")
def test_copy_of_the_former_checkpoint_is_refused() -> None:
    copy = used()
    written_since = state(9, 9, checkpoint="new")
    with pytest.raises(CheckpointMismatchError, match="start once with --rebuild"):
        prepare_layout(copy, SESSION, open_layout(copy, SESSION, 2), settings(), written_since, 2)
    assert orjson.loads(copy.files["layout.json"])["id"] == "former"
