"""The moment of a job, from the files of its checkpoint and the offsets of its output."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from correlation.resources.topics import Topics
from tests.crash.faults import Moment
from tests.crash.moments import Observer

if TYPE_CHECKING:
    from pathlib import Path

BEGUN, STORED, COMPLETED = "offsets/7", "state/0/1/8.changelog", "commits/7"


class Offsets(Observer):
    """An observer whose broker answers with given sums of offsets."""

    answer: tuple[int | None, int | None] = (10, 10)

    def _ends(self) -> tuple[int | None, int | None]:
        return self.answer


@pytest.fixture
def observer(tmp_path: Path) -> Offsets:
    for name in ("offsets/6", "commits/6", "state/0/0/7.changelog", "state/0/1/7.changelog"):
        write(tmp_path, name)
    return Offsets("127.0.0.1:1", Topics("crash"), tmp_path / "checkpoint", tmp_path / "job.log")


def write(folder: Path, name: str, text: str = "") -> None:
    path = folder / "checkpoint" / "query" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_moments_of_a_batch_follow_each_other(observer: Offsets, tmp_path: Path) -> None:
    steps = [
        (None, (10, 10), Moment.IDLE),
        (BEGUN, (10, 10), Moment.BEFORE_STATE),
        (STORED, (10, 10), Moment.AFTER_STATE),
        (None, (10, 12), Moment.IN_TRANSACTION),
        (None, (13, 13), Moment.AFTER_TRANSACTION),
        (COMPLETED, (13, 13), Moment.IDLE),
    ]
    for name, observer.answer, moment in steps:
        if name is not None:
            write(tmp_path, name)
        assert observer.moment(observer.look()) is moment


def test_broker_that_does_not_answer_leaves_the_files(observer: Offsets, tmp_path: Path) -> None:
    observer.answer = None, None
    write(tmp_path, BEGUN)
    write(tmp_path, STORED)
    assert observer.moment(observer.look()) is Moment.AFTER_STATE


def test_restart_lasts_until_the_next_batch_begins(observer: Offsets, tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("the streams or their topics have changed; the query restarts\n")
    observer.begin()
    assert observer.moment(observer.look()) is Moment.IDLE
    with log.open("a") as lines:
        lines.write("the streams or their topics have changed; the query restarts\n")
    assert observer.moment(observer.look()) is Moment.RESTARTING
    write(tmp_path, BEGUN)
    write(tmp_path, COMPLETED)
    assert observer.moment(observer.look()) is Moment.IDLE


def test_rebuild_lasts_until_its_first_batch_is_completed(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    observer = Offsets("127.0.0.1:1", Topics("crash"), checkpoint, tmp_path / "job.log")
    write(tmp_path, "offsets/0")
    (checkpoint / "rebuild.json").write_text("{}")
    assert observer.moment(observer.look()) is Moment.REBUILDING
    write(tmp_path, "commits/0")
    assert observer.moment(observer.look()) is Moment.IDLE


def test_offset_is_that_of_the_newest_completed_batch(observer: Offsets, tmp_path: Path) -> None:
    for batch, offset in ((6, 30), (7, 40)):
        lines = ["v1", json.dumps({"batchWatermarkMs": 0}), json.dumps({"t": {"0": offset}})]
        write(tmp_path, f"offsets/{batch}", "\n".join(lines))
    assert observer.read_up_to("t") == 30
    assert observer.read_up_to("another") == 0
