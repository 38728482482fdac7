"""When the number of slots is changed, and how the job reports a change that is not possible."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from correlation.engine.program import Program
from correlation.engine.published import Published
from correlation.resources.streams import Stream
from spark_jobs.driver import planning, rescaling
from spark_jobs.driver.layout import Layout
from spark_jobs.driver.rescaling import Attempt, Rescaling
from spark_jobs.driver.streams_in_force import StreamsInForce
from spark_jobs.errors import RescaleRefusedError, UnequalSlotsError
from spark_jobs.worker.slot_records import SlotRecord
from tests.support.messages import assert_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.driver.parts import Parts
    from spark_jobs.driver.rebuild import Plan
    from spark_jobs.driver.rebuilding import Rebuilding

STREAM = Stream("s", "topic", 10, 10)
IN_FORCE = StreamsInForce({"s": STREAM}, {"s": 1}, {"s": "id"})
GENERATION = 3
State = dict[bytes, bytes]


def slot(position: int, **fields: object) -> SlotRecord:
    """Return the published state of one of two slots."""
    published = Program({"s": STREAM}, {"s": 1}).publish()
    facts = {**published.position, "topic_ids": {"s": "id"}, "sources": {"s": []}, **fields}
    positions = {"topic": {0: position}}
    return SlotRecord("c", 2, "config", positions, Published(facts, published.totals))


def state(*slots: SlotRecord, generation: int = GENERATION) -> State:
    return {
        it.key or b"": it.value or b""
        for number, found in enumerate(slots)
        for it in found.to_records("state", generation, number, with_totals=True)
    }


LEVEL = state(slot(5), slot(5))
APART = state(slot(5), slot(6))
HELD = state(slot(5), slot(5, held_by=["blocks"]))


class World:
    """A job with two slots, its clock, and what it reads and reports."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, wanted: int = 4) -> None:
        self.now = 100.0
        self.state: State | Exception = LEVEL
        self.reads = 0
        self.reported: tuple[int, int, str | None] | None = None
        self.batch = 7
        monkeypatch.setattr(rescaling, "read_state", self._read)
        monkeypatch.setattr(planning, "make_layout", _layout)
        self.parts = SimpleNamespace(
            wanted_slots=wanted,
            session=None,
            settings=SimpleNamespace(client={}, topics=SimpleNamespace(state="state")),
            offsets=SimpleNamespace(begins=lambda _: {("topic", 0): 0}),
            reporter=SimpleNamespace(slots=self._report),
            checkpoint=SimpleNamespace(completed_batch=lambda: self.batch),
        )
        rebuilding = SimpleNamespace(
            slots=2, layout=Layout(1, (0, 1), "c", GENERATION), adopt=self._adopt
        )
        self._rebuilding = rebuilding
        self.rescaling = Rescaling(
            cast("Parts", self.parts), cast("Rebuilding", rebuilding), lambda: self.now
        )

    def _read(self, *_: object) -> State:
        self.reads += 1
        if isinstance(self.state, Exception):
            raise self.state
        return self.state

    def _report(self, present: int, wanted: int, problem: str | None) -> None:
        self.reported = present, wanted, problem

    def _adopt(self, plan: Plan) -> None:
        self._rebuilding.slots, self._rebuilding.layout = len(plan.slots), plan.layout

    def may_change(self) -> bool:
        return self.rescaling.is_possible(IN_FORCE)

    def attempt(self) -> Attempt:
        return self.rescaling.attempt(IN_FORCE)

    def complete_batch(self, after: State) -> None:
        self.batch += 1
        self.state = after

    def hold(self, held: State = HELD) -> None:
        """Make the job know that a batch does not help against these different states."""
        self.state = held
        assert self.rescaling.is_due
        assert self.attempt() is Attempt.BATCH_FIRST
        self.complete_batch(held)
        assert self.attempt() is Attempt.REFUSED


def _layout(_: SparkSession, slots: int, identity: str, generation: int) -> Layout:
    return Layout(1, tuple(range(slots)), identity, generation)


def test_nothing_is_read_while_the_number_is_the_wanted_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch, wanted=2)
    assert not world.rescaling.is_due
    assert not world.may_change()
    assert world.reads == 0
    assert world.reported == (2, 2, None)


def test_state_is_distributed_at_once_when_the_slots_are_level(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch)
    assert world.may_change()
    assert world.attempt() is Attempt.PLANNED
    assert not world.rescaling.is_due
    assert world.reported == (4, 4, None)


def test_a_batch_comes_first_when_the_slots_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    for before in (
        APART,
        {},
        state(slot(5), generation=GENERATION),
        HELD,
        state(slot(5), slot(5), generation=2),
    ):
        world.state = before
        assert world.may_change()
        assert world.attempt() is Attempt.BATCH_FIRST
        world.complete_batch(LEVEL)
        assert world.attempt() is Attempt.PLANNED
        world = World(monkeypatch)


def test_job_goes_on_when_a_batch_does_not_help(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.hold(APART)
    assert not world.rescaling.is_due
    assert world.reported is not None
    assert world.reported[:2] == (2, 4)
    assert_names(world.reported[2], "slots", "the same batch")


def test_batch_that_failed_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.state = HELD
    assert world.rescaling.is_due
    for _ in range(3):
        # It was planned again, as one that does not evaluate waiting events.
        assert world.attempt() is Attempt.BATCH_FIRST
    world.complete_batch(LEVEL)
    assert world.attempt() is Attempt.PLANNED


def test_states_that_remain_different_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.hold(state(slot(5), slot(5, held_by=["reset"])))
    # Evaluating the waiting events would be in vain.
    world.state, world.now = state(slot(5), slot(5, held_by=["blocks", "reset"])), world.now + 60
    assert not world.may_change()
    assert world.reported is not None
    assert_names(world.reported[2], "condition reset")
    world.state, world.now = HELD, world.now + 60
    assert world.may_change()
    assert world.attempt() is Attempt.BATCH_FIRST
    world.complete_batch(LEVEL)
    assert world.attempt() is Attempt.PLANNED


def test_batch_of_an_earlier_wish_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.state = HELD
    assert world.rescaling.is_due
    assert world.attempt() is Attempt.BATCH_FIRST
    for wanted in (2, 4):
        world.parts.wanted_slots = wanted
        assert world.rescaling.is_due == (wanted != 2)
        # A batch in which events wait.
        world.complete_batch(HELD)
    assert world.attempt() is Attempt.BATCH_FIRST
    world.complete_batch(LEVEL)
    assert world.attempt() is Attempt.PLANNED


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (KafkaException(KafkaError(KafkaError._TIMED_OUT)), "timed out"),  # noqa: SLF001 - librdkafka's code
        (LEVEL | {b"3/0": b'{"v":1,"slots":2,"error":"too_large"}'}, "exceeded max.message.bytes"),
        (state(slot(5, sources={"s": None}), slot(5)), "cannot be read again"),
    ],
)
def test_refused_change_is_reported_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, found: State | Exception, problem: str
) -> None:
    world = World(monkeypatch)
    world.state = found
    assert not world.may_change()
    assert not world.rescaling.is_due
    assert world.reported is not None
    assert problem in str(world.reported[2]).lower()
    pauses = []
    for _ in range(8):
        reads, began = world.reads, world.now
        while world.reads == reads:
            world.now += 1.0
            assert not world.may_change()
        pauses.append(world.now - began)
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    assert world.attempt() is Attempt.REFUSED
    # Another number is tried at once.
    world.state, world.parts.wanted_slots = LEVEL, 3
    assert world.may_change()
    assert world.reported == (2, 3, None)
    assert world.attempt() is Attempt.PLANNED


def test_present_number_ends_the_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.hold()
    world.now += 60
    assert not world.may_change()
    world.parts.wanted_slots = 2
    assert not world.rescaling.is_due
    assert world.reported == (2, 2, None)


def test_refusal_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "make_layout", _layout)
    layout = Layout(1, (0, 1), "c", GENERATION)
    session = cast("SparkSession", None)
    with pytest.raises(UnequalSlotsError, match=r"condition blocks, because .*; wait until"):
        planning.plan_rescale(session, layout, HELD, 3, lambda _: [])
    with pytest.raises(RescaleRefusedError, match="topic-0: gone; wait until"):
        planning.plan_rescale(session, layout, HELD, 3, lambda _: ["topic-0: gone"])
    with pytest.raises(RescaleRefusedError, match="topic-0: gone; wait until"):
        planning.plan_rescale(session, layout, LEVEL, 3, lambda _: ["topic-0: gone"])
    plan = planning.plan_rescale(session, layout, LEVEL, 3, lambda _: [])
    assert plan is not None
    assert (plan.layout.generation, len(plan.slots)) == (GENERATION + 1, 3)


def test_queries_of_generations_have_different_folders() -> None:
    assert [Layout(1, (0,), "c", it).query for it in range(3)] == ["query", "query-1", "query-2"]
