"""Watermarks: known progress, and values that must not be trusted too early."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.engine.heartbeats import (
    CLOSED,
    RESET,
    Heartbeat,
    heartbeat_from_record,
    heartbeat_to_record,
)
from correlation.engine.partition_watermark import MAX_WAITING
from correlation.engine.progress import Changes, Progress, Watermarks
from correlation.errors import InvalidFieldError
from correlation.limits import TIME_LIMIT_US, UNKNOWN_WATERMARK

U = UNKNOWN_WATERMARK
Step = Progress | Heartbeat


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # A partition of which nothing is known holds the stream back.
        ([Progress("s", 0, 1, 100)], [U]),
        ([Progress("s", 0, 1, 100), Progress("s", 1, 1, 50)], [U, 40]),
        # Never back.
        ([Progress("s", 0, 1, 100), Progress("s", 1, 1, 50), Progress("s", 1, 2, 20)], [U, 40, 40]),
        # Records without events say nothing.
        ([Progress("s", 0, 1, 100), Progress("s", 1, 1, None)], [U, U]),
        # A heartbeat counts for its partition, minus max_delay.
        ([Progress("s", 0, 1, 100), Heartbeat("s", 1, 70, None)], [U, 60]),
        ([Heartbeat("s", None, 70, None)], [60]),
        # With an offset it holds only once that much has been read.
        (
            [
                Progress("s", 0, 1, 100),
                Heartbeat("s", 1, 70, 3),
                Progress("s", 1, 2, 30),
                Progress("s", 1, 3, None),
            ],
            [U, U, 20, 60],
        ),
        ([Heartbeat("s", None, CLOSED, None)], [CLOSED]),
        # A partition that the topic does not have cannot hold the stream back.
        ([Heartbeat("s", None, 70, None), Heartbeat("s", 7, 20, None)], [60, 60]),
        ([Heartbeat("s", None, 70, None), Progress("s", 7, 1, 20)], [60, 60]),
        # Others are passed over.
        ([Heartbeat("other", None, CLOSED, None), Progress("other", 0, 1, 5)], [U, U]),
    ],
)
@pytest.mark.parametrize("stored", [False, True])
def test_p_watermark_moves_as_proved(
    steps: list[Step], expected: list[int], *, stored: bool
) -> None:
    watermarks = Watermarks({"s": 10}, {"s": 2})
    found = []
    for step in steps:
        if isinstance(step, Progress):
            watermarks.advance([step], [])
        else:
            watermarks.advance([], [step])
        if stored:
            dumped = watermarks.dump()
            watermarks = Watermarks({"s": 10}, {"s": 2})
            watermarks.load(dumped)
        found.append(watermarks.values()["s"])
    assert found == expected


def test_p_watermark_what_was_read_before_the_stream_came_counts() -> None:
    watermarks = Watermarks({"s": 10}, {"s": 1})
    watermarks.note_read("s", {0: 500, 7: 1})
    watermarks.advance([], [Heartbeat("s", 0, 70, 501), Heartbeat("s", 0, 50, 500)])
    assert watermarks.values()["s"] == 40
    watermarks.advance([Progress("s", 0, 501, None)], [])
    assert watermarks.values()["s"] == 60


def test_p_watermark_truncated_partition_has_to_be_read_again() -> None:
    watermarks = Watermarks({"s": 10}, {"s": 1})
    watermarks.advance([Progress("s", 0, 500, 30)], [])
    watermarks.note_read("s", {0: 400})
    watermarks.advance([], [Heartbeat("s", 0, 70, 450)])
    assert watermarks.values()["s"] == 20
    watermarks.advance([Progress("s", 0, 450, None)], [])
    assert watermarks.values()["s"] == 60


@pytest.mark.parametrize(
    "heartbeat",
    [
        Heartbeat("s", None, 5, None),
        Heartbeat("s", 3, -5, 7),
        Heartbeat("s", 0, CLOSED, None),
        Heartbeat("s", 1, RESET, 9),
    ],
)
def test_heartbeats_come_back_from_their_records(heartbeat: Heartbeat) -> None:
    assert heartbeat_from_record(heartbeat_to_record(heartbeat)) == heartbeat


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ([], "heartbeat"),
        ({"read_up_to": 1}, "stream"),
        ({"stream": 5, "read_up_to": 1}, "stream"),
        ({"stream": "No Name", "read_up_to": 1}, "stream"),
        ({"stream": "s"}, "read_up_to"),
        ({"stream": "s", "read_up_to": "soon"}, "read_up_to"),
        ({"stream": "s", "read_up_to": True}, "read_up_to"),
        ({"stream": "s", "read_up_to": 2**62}, "read_up_to"),
        ({"stream": "s", "read_up_to": 1, "partition": -1}, "partition"),
        ({"stream": "s", "read_up_to": 1, "offset": 4}, "partition"),
        ({"stream": "s", "read_up_to": 1, "v": 9}, "v"),
    ],
)
def test_a_wrong_heartbeat_names_its_field(record: object, field: str) -> None:
    with pytest.raises(InvalidFieldError) as invalid:
        heartbeat_from_record(record)  # type: ignore[arg-type]
    assert invalid.value.field == field


def test_heartbeats_of_a_stream_to_come_wait_for_it() -> None:
    """A stream is registered, sent and closed before the job has taken it up."""
    before = Watermarks({"other": 0}, {"other": 1})
    early = [Heartbeat("s", 0, CLOSED, 3), Heartbeat("s", 1, CLOSED, None), Heartbeat("s", 2, 9, 1)]
    before.advance([], early)
    assert before.values() == {"other": U}
    after = Watermarks({"other": 0, "s": 10}, {"other": 1, "s": 2})
    after.load(json.loads(json.dumps(before.dump())))
    after.advance([Progress("s", 0, 2, 50)], [])
    assert after.describe()["s"]["partitions"] == {"0": 40, "1": CLOSED}
    # A restart in between, and the third partition is added.
    later = Watermarks({"other": 0, "s": 10}, {"other": 1, "s": 3})
    later.load(json.loads(json.dumps(after.dump())))
    later.advance([Progress("s", 0, 3, 60), Progress("s", 2, 1, None)], [])
    assert later.describe()["s"]["partitions"] == {"0": CLOSED, "1": CLOSED, "2": -1}


def test_heartbeats_that_nobody_claims_are_bounded() -> None:
    watermarks = Watermarks({}, {})
    watermarks.advance([], [Heartbeat("s", 0, time, None) for time in range(5_000)])
    watermarks.advance([], [Heartbeat("wake-up", None, -TIME_LIMIT_US, None)])
    unclaimed = watermarks.dump()["unclaimed"]
    assert len(unclaimed) == 1_000
    assert unclaimed[-1] == ["s", 0, 4_999, None, None]


class UnboundedPartition:
    """The rule without a bound: every heartbeat waits until its offset is reached."""

    def __init__(self) -> None:
        self.watermark = U
        self.next_offset = 0
        self.waiting: list[tuple[int, int]] = []

    def advance(self, step: Step) -> bool:
        """Take in a step of one partition; return whether a heartbeat closed it."""
        if isinstance(step, Progress):
            self.next_offset = max(self.next_offset, step.next_offset)
            if step.max_latest is not None:
                self.watermark = max(self.watermark, step.max_latest)
        else:
            self.waiting.append((step.at_offset or 0, step.read_up_to_us))
        reached = [watermark for offset, watermark in self.waiting if offset <= self.next_offset]
        self.waiting = [entry for entry in self.waiting if entry[0] > self.next_offset]
        self.watermark = max([self.watermark, *reached])
        return CLOSED in reached


times = st.integers(0, 400) | st.just(CLOSED)
steps_of_a_partition = st.lists(
    st.builds(Heartbeat, st.just("s"), st.just(0), times, st.integers(0, 2_000))
    | st.builds(Progress, st.just("s"), st.just(0), st.integers(0, 500), st.integers(0, 200)),
    max_size=400,
)


def advance(watermarks: Watermarks, step: Step) -> Changes:
    """Take in one step."""
    if isinstance(step, Progress):
        return watermarks.advance([step], [])
    return watermarks.advance([], [step])


def waiting_of(watermarks: Watermarks) -> dict[int, int]:
    (partition,) = watermarks.dump()["streams"]["s"]["partitions"]
    return dict(partition[3])


@given(steps_of_a_partition)
def test_p_waiting_marks_are_those_of_all_heartbeats_until_too_many_wait(
    steps: Sequence[Step],
) -> None:
    bounded, unbounded, dropped = Watermarks({"s": 0}, {"s": 1}), UnboundedPartition(), False
    for step in steps:
        changes = advance(bounded, step)
        closed = unbounded.advance(step)
        dropped = dropped or len({offset for offset, _ in unbounded.waiting}) > MAX_WAITING
        assert bounded.values()["s"] <= unbounded.watermark
        # One more than the bound: the last one that closes the partition.
        assert len(waiting_of(bounded)) <= MAX_WAITING + 1
        if not dropped:
            assert bounded.values()["s"] == unbounded.watermark
            assert ("s" in changes.closed) == closed
    bounded.advance([Progress("s", 0, 2_000, None)], [])
    unbounded.advance(Progress("s", 0, 2_000, None))
    # The max watermark is never dropped, nor the heartbeat that closes the partition.
    assert bounded.values()["s"] == unbounded.watermark


def test_p_waiting_the_smallest_step_is_dropped() -> None:
    watermarks = Watermarks({"s": 0}, {"s": 1})
    steps = [Heartbeat("s", 0, 1_000 * number, 10 * number) for number in range(1, MAX_WAITING)]
    watermarks.advance([], steps)
    # It says little more than the one before, and the next one comes soon.
    watermarks.advance([], [Heartbeat("s", 0, 3_001, 38), Heartbeat("s", 0, 9_999_999, 10**12)])
    watermarks.advance([], [Heartbeat("s", 0, 500, 25)])
    waiting = waiting_of(watermarks)
    assert len(waiting) == MAX_WAITING
    assert {25, 38}.isdisjoint(waiting)
    assert 10**12 in waiting


MAX_SKEW = 1_000_000


@pytest.mark.parametrize(
    ("beat", "refused"),
    [
        # Whole milliseconds: the record came up to 999 µs after its timestamp.
        (Heartbeat("s", None, 5_000_000 + MAX_SKEW + 999, None, 5_000_000), False),
        (Heartbeat("s", None, 5_000_000 + MAX_SKEW + 1_000, None, 5_000_000), True),
        (Heartbeat("s", 0, 32_503_680_000_000_000, 7, 5_000_000), True),
        (Heartbeat("s", None, CLOSED, None, 5_000_000), True),
        (Heartbeat("s", None, RESET, None, 5_000_000), False),
        # Not from Kafka.
        (Heartbeat("s", None, CLOSED, None, None), False),
    ],
)
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("clock", ["live", "replay"])
def test_a_heartbeat_ahead_of_kafkas_clock_is_refused_on_a_live_stream(
    beat: Heartbeat, clock: str, *, refused: bool, known: bool
) -> None:
    skews = {"s": MAX_SKEW} if clock == "live" else {}
    before = Watermarks({"s": 10}, {"s": 1}, skews) if known else Watermarks({}, {})
    before.advance([], [beat])
    watermarks = Watermarks({"s": 10}, {"s": 1}, skews)
    watermarks.load(json.loads(json.dumps(before.dump())))
    watermarks.advance([Progress("s", 0, 7, None)], [])
    refused = refused and clock == "live"
    assert watermarks.describe()["s"]["refused_heartbeats"] == int(refused)
    nothing = refused or beat.read_up_to_us == RESET
    assert (watermarks.values()["s"] == U) == nothing


RESETS: dict[str, tuple[list[Step], list[int]]] = {
    "at once": (
        [
            Heartbeat("s", None, 900, None),
            Heartbeat("s", None, RESET, None),
            Progress("s", 0, 1, 50),
        ],
        [890, U, 40],
    ),
    "again at an offset, and the block that reaches it raises nothing": (
        [
            Progress("s", 0, 3, 900),
            Heartbeat("s", 0, RESET, 6),
            Progress("s", 0, 5, 901),
            Progress("s", 0, 7, 902),
            Progress("s", 0, 8, 60),
        ],
        [890, U, 891, U, 50],
    ),
    "heartbeats that wait are taken back": (
        [
            Heartbeat("s", 0, CLOSED, 5),
            Heartbeat("s", 0, RESET, 2),
            Progress("s", 0, 5, 60),
            Progress("s", 0, 6, 60),
        ],
        [U, U, U, 50],
    ),
    "heartbeats sent after it hold": (
        [
            Progress("s", 0, 3, 900),
            Heartbeat("s", 0, RESET, 6),
            Heartbeat("s", None, 80, None),
            Heartbeat("s", 0, 95, 7),
            Progress("s", 0, 6, 902),
            Progress("s", 0, 7, 50),
        ],
        [890, U, 70, 70, 70, 85],
    ),
    "a second one before the first is reached": (
        [
            Progress("s", 0, 3, 900),
            Heartbeat("s", 0, RESET, 5),
            Heartbeat("s", None, 800, None),
            Heartbeat("s", 0, RESET, 6),
            Heartbeat("s", 0, RESET, 8),
            Progress("s", 0, 5, 60),
            Progress("s", 0, 6, 700),
            Progress("s", 0, 7, 700),
            Progress("s", 0, 8, 700),
            Progress("s", 0, 9, 65),
        ],
        [890, U, 790, U, U, U, 690, 690, U, 55],
    ),
}


@pytest.mark.parametrize("name", RESETS)
@pytest.mark.parametrize("stored", [False, True])
def test_p_reset_marks_follow_from_what_comes_after(name: str, *, stored: bool) -> None:
    steps, expected = RESETS[name]
    watermarks = Watermarks({"s": 10}, {"s": 1})
    found = []
    for step in steps:
        before = watermarks.values()["s"]
        changes = advance(watermarks, step)
        found.append(watermarks.values()["s"])
        assert found[-1] >= before or changes.reset == {"s"}
        if stored:
            dumped = json.loads(json.dumps(watermarks.dump()))
            watermarks = Watermarks({"s": 10}, {"s": 1})
            watermarks.load(dumped)
    assert found == expected


def test_p_reset_of_one_partition_makes_the_stream_wait_for_it() -> None:
    watermarks = Watermarks({"s": 10}, {"s": 2})
    watermarks.advance([Progress("s", 0, 1, 100), Progress("s", 1, 1, 900)], [])
    watermarks.advance([], [Heartbeat("s", 1, RESET, 1)])
    assert watermarks.values()["s"] == U
    watermarks.advance([Progress("s", 1, 2, 70)], [])
    assert watermarks.values()["s"] == 60


def test_a_reset_of_a_stream_to_come_waits_for_it_in_its_place() -> None:
    before = Watermarks({}, {})
    beats = [Heartbeat("s", 0, 900, None), Heartbeat("s", 0, RESET, 4), Heartbeat("s", 0, 70, 9)]
    before.advance([], beats)
    after = Watermarks({"s": 10}, {"s": 1})
    after.load(json.loads(json.dumps(before.dump())))
    after.advance([Progress("s", 0, 6, 800)], [])
    assert after.values()["s"] == U
    after.advance([Progress("s", 0, 9, None)], [])
    assert after.values()["s"] == 60
