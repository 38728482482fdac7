"""Low marks: what is known to have passed, and what must not be believed too early."""

from __future__ import annotations

import json

import pytest

from correlation.errors import InvalidFieldError
from correlation.limits import TIME_LIMIT_US, UNKNOWN_MARK
from correlation.progress import CLOSED, Heartbeat, LowMarks, Progress
from correlation.records import heartbeat_from_record, heartbeat_to_record

U = UNKNOWN_MARK
Step = Progress | Heartbeat


@pytest.mark.parametrize(
    ("steps", "marks"),
    [
        # A partition of which nothing is known holds the stream back.
        ([Progress("s", 0, 1, 100)], [U]),
        ([Progress("s", 0, 1, 100), Progress("s", 1, 1, 50)], [U, 40]),
        # Never back.
        ([Progress("s", 0, 1, 100), Progress("s", 1, 1, 50), Progress("s", 1, 2, 20)], [U, 40, 40]),
        # Records without events say nothing.
        ([Progress("s", 0, 1, 100), Progress("s", 1, 1, None)], [U, U]),
        # A heartbeat counts for its partition, less the longest delay.
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
def test_p_low_mark_moves_as_proved(steps: list[Step], marks: list[int], *, stored: bool) -> None:
    low_marks = LowMarks({"s": 10}, {"s": 2})
    found = []
    for step in steps:
        if isinstance(step, Progress):
            low_marks.advance([step], [])
        else:
            low_marks.advance([], [step])
        if stored:
            dumped = low_marks.dump()
            low_marks = LowMarks({"s": 10}, {"s": 2})
            low_marks.load(dumped)
        found.append(low_marks.values()["s"])
    assert found == marks


def test_p_low_mark_what_was_read_before_the_stream_came_counts() -> None:
    low_marks = LowMarks({"s": 10}, {"s": 1})
    low_marks.note_read("s", {0: 500, 7: 1})
    low_marks.advance([], [Heartbeat("s", 0, 70, 501), Heartbeat("s", 0, 50, 500)])
    assert low_marks.values()["s"] == 40
    low_marks.advance([Progress("s", 0, 501, None)], [])
    assert low_marks.values()["s"] == 60


def test_p_low_mark_truncated_partition_has_to_be_read_again() -> None:
    low_marks = LowMarks({"s": 10}, {"s": 1})
    low_marks.advance([Progress("s", 0, 500, 30)], [])
    low_marks.note_read("s", {0: 400})
    low_marks.advance([], [Heartbeat("s", 0, 70, 450)])
    assert low_marks.values()["s"] == 20
    low_marks.advance([Progress("s", 0, 450, None)], [])
    assert low_marks.values()["s"] == 60


@pytest.mark.parametrize(
    "heartbeat",
    [
        Heartbeat("s", None, 5, None),
        Heartbeat("s", 3, -5, 7),
        Heartbeat("s", 0, CLOSED, None),
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
    before = LowMarks({"other": 0}, {"other": 1})
    early = [Heartbeat("s", 0, CLOSED, 3), Heartbeat("s", 1, CLOSED, None), Heartbeat("s", 2, 9, 1)]
    before.advance([], early)
    assert before.values() == {"other": U}
    after = LowMarks({"other": 0, "s": 10}, {"other": 1, "s": 2})
    after.load(json.loads(json.dumps(before.dump())))
    after.advance([Progress("s", 0, 2, 50)], [])
    assert after.partition_values("s") == {0: 40, 1: CLOSED}
    # A restart in between, and the third partition is added.
    later = LowMarks({"other": 0, "s": 10}, {"other": 1, "s": 3})
    later.load(json.loads(json.dumps(after.dump())))
    later.advance([Progress("s", 0, 3, 60), Progress("s", 2, 1, None)], [])
    assert later.partition_values("s") == {0: CLOSED, 1: CLOSED, 2: -1}


def test_heartbeats_that_nobody_claims_are_bounded() -> None:
    low_marks = LowMarks({}, {})
    low_marks.advance([], [Heartbeat("s", 0, time, None) for time in range(5_000)])
    low_marks.advance([], [Heartbeat("wake-up", None, -TIME_LIMIT_US, None)])
    unclaimed = low_marks.dump()["unclaimed"]
    assert len(unclaimed) == 1_000
    assert unclaimed[-1] == ["s", 0, 4_999, None]
