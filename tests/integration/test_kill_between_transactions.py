"""A job that dies when its tasks have written a batch, but the merged list is not written."""

from __future__ import annotations

import json
import random
import shutil
import signal
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from correlation.engine.progress import Progress
from correlation.resources.records import Resource
from correlation.topk.results import CHANGES, PRESENT
from tests.oracle.topk import TokenSet, ranked_pairs
from tests.support.command import is_commit_worker, process_tree, send_signal
from tests.support.hanging import stop_processes
from tests.support.job import MANY_BATCHES, JobUnderTest, total
from tests.support.kafka import Sent, create_topics, produce
from tests.support.topk import (
    DELAY,
    GridSlots,
    Tagged,
    make_tag_block,
    make_tag_streams,
    topk_control,
)
from tests.support.workload import stream_resource

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

SLOTS, K, WINDOW_US = 2, 3, 12
BURST, SPACING_US = 12, 2
# Number of sets of a burst that have not taken effect, because the watermark has not passed them.
BEHIND = 1 + DELAY // SPACING_US
FIELDS = {"k": K, "window_us": WINDOW_US, "report": "every"}
Named = tuple[str, str]
NOTHING, CHECKPOINT, SLOT = "nothing", "checkpoint", "checkpoint and slot"
# Parts of the keys of a slot and of its task, before and after its number.
_STATES_OF_A_SLOT = (("/", ""), ("/", "/totals"), (".sink.", ""), (".", ".shares"))


def draw_sets(count: int) -> list[Tagged]:
    """Return sets in the order of their times, with similar ones among them.

    The last set of a burst that takes effect equals the one before, so that it changes the list.
    """
    rng = random.Random(11)  # noqa: S311 - a reproducible choice, no secret
    found: list[Tagged] = []
    for it in range(count):
        tokens = frozenset(rng.sample("abcdef", rng.choice([2, 3, 4])))
        if it % BURST == BURST - 1 - BEHIND:
            tokens = found[-1].tokens
        found.append(Tagged(it, SPACING_US * it, tokens, offset=it))
    return found


def changes_of_one_cell(sets: Sequence[Tagged]) -> list[dict[str, Any]]:
    """Return the changes that a grid with one group writes, without the time of detection."""
    block = make_tag_block(sets, [topk_control(0, FIELDS)])
    # The reference has two partitions, of which the second has reached the same time.
    reached = Progress("left", 1, 1, sets[-1].time)
    outcome = GridSlots(1, 1).advance(replace(block, progress=[*block.progress, reached]))
    return [
        without_detection(record.value)
        for result in outcome.results
        if result.heading(0).channel == CHANGES.name
        for record in result.records(0)
    ]


def without_detection(value: bytes | None) -> dict[str, Any]:
    """Return the object of a record without the time at which the job found it."""
    found: dict[str, Any] = json.loads(value or b"")
    del found["detected_at"]
    return found


def list_at(sets: Sequence[Tagged], as_of_us: int) -> list[Named]:
    """Return the list at a time by comparing all pairs."""
    valid = [
        TokenSet(it.id, it.time, frozenset(map(ord, it.tokens)))
        for it in sets
        if as_of_us - WINDOW_US <= it.time <= as_of_us
    ]
    pairs = ranked_pairs("jaccard", valid, crossed=False)[:K]
    return [(str(it.older.number), str(it.newer.number)) for it in pairs]


class Sets:
    """A job with a list over a grid with two groups, and the records that it has written."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        prefix = f"between{uuid.uuid4().hex[:10]}"
        # Batches are due to events alone, so that no batch follows unexpectedly.
        settings = MANY_BATCHES | {
            "COINCIDE_HEARTBEAT_SECONDS": "86400",
            "COINCIDE_SLOTS": str(SLOTS),
            # Each slot has a transaction of its own.
            "COINCIDE_SPARK_MASTER": f"local[{SLOTS}]",
        }
        self.job = JobUnderTest(bootstrap, prefix, folder, settings, own_java=True)
        # One partition: the watermark follows the events alone.
        self.stream = replace(
            make_tag_streams(keyed=False, groups=2)["left"], topic=f"{prefix}-left"
        )
        create_topics(bootstrap, {self.stream.topic: 1})
        condition = topk_control(0, FIELDS).record
        assert isinstance(condition, dict)
        self.job.register(stream_resource(self.stream), Resource.from_record(condition))

    def send(self, sets: Sequence[Tagged]) -> None:
        """Send sets in their order."""
        events = (
            {"id": str(it.id), "time": it.time, "color": it.color, "tags": sorted(it.tokens)}
            for it in sets
        )
        produce(
            self.job.bootstrap, self.stream.topic, [Sent(json.dumps(it).encode()) for it in events]
        )

    def wait_for_tasks(self, before: Tagged) -> None:
        """Wait until the tasks of all slots have written a batch with sets after one."""

        def reached(slots: list[dict[str, Any]]) -> bool:
            found = {it["watermarks"]["left"]["watermark"] for it in slots}
            return len(slots) == SLOTS and len(found) == 1 and min(found) > before.time - DELAY

        self.job.wait_for_slots(reached)

    def wait_for_list(self, last: Tagged) -> None:
        """Wait until the list is written in which all sets before the watermark are."""
        as_of_us, topic = last.time - DELAY - 1, self.job.topics.of(PRESENT)
        self.job.read(
            topic, lambda records: bool(records) and _as_of(records[-1].value) == as_of_us
        )

    def changes(self, count: int = 0) -> list[dict[str, Any]]:
        """Return all changes, once there are as many as given.

        Kafka ends a transaction in one topic after the other: a list may be visible before the
        changes that are written with it.
        """
        topic = self.job.topics.of(CHANGES)
        found = self.job.read(topic, lambda records: len(records) >= count)
        return [without_detection(it.value) for it in found]

    def state_of(self, slot: int) -> list[Sent]:
        """Return the newest records of the state topic that a slot and its task have written."""
        newest = {it.key or b"": it.value for it in self.job.read(self.job.topics.state)}
        ends = tuple(f"{it}{slot}{end}".encode() for it, end in _STATES_OF_A_SLOT)
        return [Sent(value, key) for key, value in newest.items() if key.endswith(ends)]

    def lists(self) -> list[tuple[int, list[Named]]]:
        """Return all lists: time and pairs."""
        found = []
        for record in self.job.read(self.job.topics.of(PRESENT)):
            value = json.loads(record.value or b"")
            named = [(it["older"]["id"], it["newer"]["id"]) for it in value["items"]]
            found.append((value["as_of"], named))
        return found


def _as_of(value: bytes | None) -> int:
    as_of: int = json.loads(value or b"")["as_of"]
    return as_of


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param(NOTHING, marks=pytest.mark.nightly),
        CHECKPOINT,
        SLOT,
    ],
)
def test_merged_records_are_written_once_when_the_job_dies_before_they_are(
    kafka_bootstrap: str, tmp_path: Path, lost: str
) -> None:
    """A slot that has not written the batch has its former state; its output is its share only."""
    sets = draw_sets(3 * BURST)
    first, second, third = sets[:BURST], sets[BURST:-BURST], sets[-BURST:]
    on = Sets(kafka_bootstrap, tmp_path)
    job = on.job
    try:
        job.start()
        on.send(first)
        on.wait_for_list(first[-1])
        known = on.changes(len(changes_of_one_cell(first)))
        before, state = (known, on.lists()), on.state_of(1)
        assert len(state) == len(_STATES_OF_A_SLOT)
        stopped = stop_processes(
            lambda: filter(is_commit_worker, process_tree(job.process.pid or 0))
        )
        assert stopped
        on.send(second)
        on.wait_for_tasks(first[-1])
        # The tasks have written the batch, and its merged records are missing.
        assert (on.changes(), on.lists()) == before
        job.kill()
        # Workers are not in the process group of the job.
        for it in stopped:
            send_signal(it, signal.SIGKILL)
        assert (on.changes(), on.lists()) == before
        if lost != NOTHING:
            shutil.rmtree(tmp_path / "checkpoint")
        if lost == SLOT:
            produce(job.bootstrap, job.topics.state, state)
        job.start()
        on.wait_for_list(second[-1])
        on.send(third)
        on.wait_for_list(third[-1])
        expected = changes_of_one_cell(sets)
        changes = on.changes(len(expected))
        assert changes == expected
        merged = job.wait_for_merged(lambda it: total([it], "alarms_total") >= len(changes))
        for name in ("alarms_total", "topk_changes_total"):
            assert total([merged], name) == len(changes), name
        slots = job.wait_for_slots(lambda found: len(found) == SLOTS)
        assert total(slots, "alarms_total") == total(slots, "topk_changes_total") == 0
        lists = on.lists()
        assert len({as_of_us for as_of_us, _ in lists}) == len(lists) >= 3
        assert lists == [(as_of_us, list_at(sets, as_of_us)) for as_of_us, _ in lists]
    finally:
        job.process.stop(5)
