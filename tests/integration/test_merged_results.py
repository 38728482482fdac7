"""The sink's transaction of merged results on a real Kafka: once per batch, wherever it ended."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from correlation.engine.blocks import Control
from correlation.kinds import topics_of
from correlation.operators import Share
from correlation.shares import MissingShareError
from correlation.topk.results import CHANGES, PRESENT
from spark_jobs.driver.stale_checkpoint import check_marks
from spark_jobs.errors import StaleCheckpointError
from spark_jobs.sink import batches
from spark_jobs.sink import merged as sink_merged
from spark_jobs.sink.batches import merge_target, target_of
from spark_jobs.sink.kept_shares import KeptShares
from spark_jobs.sink.options import SinkOptions
from spark_jobs.sink.sink import KafkaWriter, Written
from spark_jobs.worker.shares import SlotShares
from tests.support.claims import claim
from tests.support.kafka import Sent, create_topics, produce, read_committed
from tests.support.records import built_in_checker
from tests.support.topk import GridSlots, Tagged, make_tag_block, topk_control

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.datasource import WriterCommitMessage

    from correlation.engine.blocks import Outcome
    from spark_jobs.settings import Properties

pytestmark = pytest.mark.kafka

QUERY = "q"
SLOTS = 3


class Merger:
    """The end of a job's batches: commit messages of its tasks, and the sink's `commit`."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.bootstrap, self.prefix = bootstrap, prefix
        self.topics = topics_of(prefix)
        channels = [self.topics.of(it) for it in self.topics.channels]
        own = [self.topics.config, self.topics.state, self.topics.metrics]
        create_topics(bootstrap, dict.fromkeys([*channels, *own], 1))
        properties: Properties = {"bootstrap.servers": bootstrap}
        self.writer = KafkaWriter(
            SinkOptions(prefix, properties, claim(self.topics, properties), {})
        )
        self.query = QUERY
        self.slots = GridSlots(2, SLOTS)
        self.rng = random.Random(3)  # noqa: S311 - a reproducible choice, no secret
        self.sent = 0

    def evaluate(self) -> list[WriterCommitMessage | None]:
        """Evaluate a block; return the messages of two tasks, of which one serves two slots."""
        controls = [] if self.sent else [topk_control(0, {"window_us": 100})]
        return self.messages(self.slots.outcomes(make_tag_block(self.draw(), controls)))

    def draw(self) -> list[Tagged]:
        """Return the next sets."""
        begin = self.sent
        self.sent += 10
        return [
            Tagged(
                it, it, frozenset(self.rng.sample("abcdef", 3)), partition=it % 2, offset=it // 2
            )
            for it in range(begin, self.sent)
        ]

    def messages(self, outcomes: Sequence[Outcome]) -> list[WriterCommitMessage | None]:
        """Return the messages of two tasks, of which one serves all slots but the first."""
        blobs = [
            SlotShares(slot, SLOTS, self.sent, it.shares).to_bytes()
            for slot, it in enumerate(outcomes)
        ]
        first, second = tuple(blobs[:1]), tuple(blobs[1:])
        return [Written(0), Written(4, self.query, first), Written(0, self.query, second)]

    def of_query(
        self, messages: Sequence[WriterCommitMessage | None]
    ) -> list[WriterCommitMessage | None]:
        """Return the messages as those of tasks of the present query."""
        found = [it for it in messages if isinstance(it, Written)]
        return [replace(it, query=self.query) for it in found]

    def keep(self, messages: list[WriterCommitMessage | None], batch: int) -> dict[bytes, bytes]:
        """Return the records of the state topic in which tasks have kept their shares."""
        found = {}
        for partition, message in enumerate(messages):
            if isinstance(message, Written) and message.shares:
                owner = self.writer.options.owner
                target = target_of(self.prefix, self.query, partition, owner, {})
                ahead = self.writer.options.ahead or ""
                record = KeptShares(self.query, batch, message.shares, ahead).to_record(target)
                built_in_checker().find_type("state", record.value, {})
                found[record.key or b""] = record.value or b""
        return found

    def renew(self) -> None:
        """Forget what a new process does not know."""
        batches._producers.clear()  # noqa: SLF001 - see above
        sink_merged._known.clear()  # noqa: SLF001 - see above

    def metrics(self) -> dict[str, Any]:
        """Return the newest metrics of merged results."""
        *_, newest = read_committed(self.bootstrap, self.topics.metrics)
        assert newest.key == b"merged"
        built_in_checker().find_type("metrics", newest.value, {})
        found: dict[str, Any] = json.loads(newest.value or b"")
        return found

    def check_totals(self) -> None:
        """Check that the counters are the numbers of records, and the gauge is in the list."""
        found = self.metrics()
        changes = read_committed(self.bootstrap, self.topics.of(CHANGES))
        written = Counter(json.loads(it.value or b"")["condition"] for it in changes)
        for name in ("alarms_total", "topk_changes_total"):
            counted = {
                labels["condition"]: value
                for counter, labels, value in found["counters"]
                if counter == name
            }
            assert counted == written, name
        *_, present = read_committed(self.bootstrap, self.topics.of(PRESENT))
        last = json.loads(present.value or b"")["items"][-1]
        assert found["gauges"] == [["topk_last_value", {"condition": "t"}, last["similarity"]]]
        assert found["last_alarm_at"] == {"t": found["at"]}

    def keep_in_kafka(self, kept: dict[bytes, bytes]) -> None:
        """Write the records that tasks have kept."""
        sent = [Sent(value, key) for key, value in kept.items()]
        produce(self.bootstrap, self.topics.state, sent)

    def check_changes(self) -> None:
        """Check that the changes lead to the present list."""
        found: list[tuple[str, str]] = []
        for record in read_committed(self.bootstrap, self.topics.of(CHANGES)):
            it = json.loads(record.value or b"")
            pair = it["older"]["id"], it["newer"]["id"]
            assert (pair in found) == (it["change"] != "entered")
            if it["change"] != "entered":
                found.remove(pair)
            if it["change"] != "left":
                found.append(pair)
        *_, present = read_committed(self.bootstrap, self.topics.of(PRESENT))
        items = json.loads(present.value or b"")["items"]
        assert {(it["older"]["id"], it["newer"]["id"]) for it in items} == {*found}

    def written(self) -> list[tuple[str, str]]:
        """Return topic and id of all records of the topics of lists."""
        return [
            (topic, record.headers["ce_id"].decode())
            for topic in map(self.topics.of, self.topics.channels)
            for record in read_committed(self.bootstrap, topic)
        ]


@pytest.fixture
def merger(kafka_bootstrap: str, topic_prefix: str) -> Merger:
    return Merger(kafka_bootstrap, topic_prefix)


def test_repeated_batch_is_merged_once_by_the_same_and_by_another_process(merger: Merger) -> None:
    messages = merger.evaluate()
    merger.writer.commit(messages, 4)
    once = merger.written()
    assert {topic for topic, _ in once} == {
        f"{merger.prefix}.topk",
        f"{merger.prefix}.topk.current",
    }
    merger.check_totals()
    merger.writer.commit(messages, 4)
    merger.renew()
    merger.writer.commit(messages, 4)
    assert merger.written() == once
    merger.check_totals()
    merger.writer.commit(merger.evaluate(), 5)
    twice = merger.written()
    assert len(twice) > len(once)
    assert len(set(twice)) == len(twice)
    merger.check_totals()


def test_totals_continue_in_another_process_and_in_another_query(merger: Merger) -> None:
    for batch in range(3):
        merger.writer.commit(merger.evaluate(), batch)
        merger.check_totals()
        merger.renew()
    # The totals of another process are newer than those that this process remembers.
    merger.writer.commit(merger.evaluate(), 3)
    producers, totals = dict(batches._producers), dict(sink_merged._known)  # noqa: SLF001 - see above
    merger.renew()
    merger.writer.commit(merger.evaluate(), 4)
    merger.renew()
    batches._producers.update(producers)  # noqa: SLF001 - see above
    sink_merged._known.update(totals)  # noqa: SLF001 - see above
    merger.writer.commit(merger.evaluate(), 5)
    merger.check_totals()
    merger.query = "r"
    for batch in range(2):
        merger.writer.commit(merger.evaluate(), batch)
        merger.check_totals()


def test_removed_condition_has_no_totals(merger: Merger) -> None:
    merger.writer.commit(merger.evaluate(), 0)
    before = merger.metrics()
    assert before["counters"] != []
    removed = tuple(
        SlotShares(slot, SLOTS, 98, [Share("", "unknown", 0, b"")]).to_bytes()
        for slot in range(SLOTS)
    )
    merger.writer.commit([Written(0, QUERY, removed)], 1)
    assert merger.metrics() == before
    # The list is withdrawn before.
    merger.slots.outcomes(make_tag_block([], [topk_control(8, {}, 2, paused=True)]))
    outcomes = merger.slots.outcomes(make_tag_block([], [Control(9, b"condition/t", None)]))
    merger.renew()
    merger.writer.commit(merger.messages(outcomes), 2)
    found = merger.metrics()
    assert found["counters"] == found["gauges"] == found["histograms"] == []
    assert found["last_alarm_at"] == {}


def test_mark_of_a_later_batch_shows_an_old_checkpoint(merger: Merger) -> None:
    target = merge_target(merger.prefix, QUERY, merger.writer.options.owner, {})
    first, second = merger.evaluate(), merger.evaluate()
    merger.writer.commit(first, 4)
    merger.writer.commit(second, 6)
    properties = merger.writer.options.properties
    check_marks(6, [target], properties)
    with pytest.raises(StaleCheckpointError) as raised:
        check_marks(5, [target], properties)
    assert (raised.value.newest, raised.value.written) == (5, 6)
    with pytest.raises(StaleCheckpointError) as raised:
        merger.writer.commit(first, 4)
    assert (raised.value.newest, raised.value.written) == (4, 6)


def test_batch_without_shares_writes_nothing(merger: Merger) -> None:
    merger.writer.commit([Written(3, QUERY), None], 4)
    assert merger.written() == []


def test_missing_share_of_a_slot_fails_the_batch(merger: Merger) -> None:
    *_, last = merger.evaluate()
    with pytest.raises(MissingShareError, match="condition t, version 1: 2 of 3 slots"):
        merger.writer.commit([last], 4)
    assert merger.written() == []


def test_kept_shares_are_merged_once_by_a_job_without_checkpoint(merger: Merger) -> None:
    merger.writer.commit(merger.evaluate(), 4)
    first = merger.written()
    messages = merger.evaluate()
    kept = merger.keep(messages, 5)
    assert len(kept) == len(messages) - 1
    merger.renew()
    options = merger.writer.options
    checkpoints = {options.owner.checkpoint}
    # The present query repeats its batch itself.
    sink_merged.write_kept(kept, options, checkpoints, merger.query)
    # Another job has continued with another checkpoint.
    sink_merged.write_kept(kept, options, {"other"}, None)
    # The mark of the former query is beyond the batch, or the present query has replaced it.
    for query, present in ((QUERY, None), ("present", "present")):
        group = merge_target(merger.prefix, query, options.owner, {}).group
        mark = orjson.dumps({"v": 1, "group": group, "next_batch": 6})
        sink_merged.write_kept({**kept, b"mark": mark}, options, checkpoints, present)
    assert merger.written() == first
    sink_merged.write_kept(kept, options, checkpoints, None)
    merged = merger.written()
    assert len(merged) > len(first)
    merger.check_totals()
    # Killed before its query began, the job finds the same records.
    merger.renew()
    sink_merged.write_kept(kept, options, checkpoints, None)
    merger.writer.commit(messages, 5)
    assert merger.written() == merged
    # The committed offset is the mark of later batches, too.
    merger.writer.commit(merger.evaluate(), 6)
    later = merger.written()
    merger.renew()
    sink_merged.write_kept(kept, options, checkpoints, None)
    assert merger.written() == later


@pytest.mark.parametrize("losses", [1, 2])
def test_shares_of_slots_that_were_a_batch_ahead_are_merged_with_the_first_batch(
    losses: int, merger: Merger, caplog: pytest.LogCaptureFixture
) -> None:
    """The task of the first slot has written batch 5; the job and its checkpoint are lost."""
    merger.writer.commit(merger.evaluate(), 4)
    before = merger.written()
    _, first, second = merger.evaluate()
    options = merger.writer.options
    checkpoints = {options.owner.checkpoint}
    kept = merger.keep([None, first], 5)
    merger.renew()
    assert sink_merged.write_kept(kept, options, checkpoints, None) == QUERY
    assert merger.written() == before
    merger.keep_in_kafka(kept)
    # The second task evaluates batch 5 as the first batch of the new query.
    merger.query = "r"
    merger.writer = KafkaWriter(options._replace(ahead=QUERY))
    messages = merger.of_query([Written(3, "r"), second])
    if losses == 1:
        for _ in range(2):
            merger.writer.commit(messages, 0)
            merger.renew()
    else:
        # The job is killed again before it merges, and the checkpoint is lost.
        kept |= merger.keep(messages, 0)
        for _ in range(2):
            assert sink_merged.write_kept(kept, options, checkpoints, None) == ""
            merger.renew()
    assert len(set(merger.written())) == len(merger.written()) > len(before)
    assert caplog.records == []
    merger.check_totals()
    merger.check_changes()
    merger.writer = KafkaWriter(options)
    merger.writer.commit(merger.evaluate(), 1)
    merger.check_totals()
    merger.check_changes()


def test_kept_shares_that_are_too_large_are_not_merged(
    merger: Merger, caplog: pytest.LogCaptureFixture
) -> None:
    merger.writer.commit(merger.evaluate(), 4)
    before = merger.written()
    kept = merger.keep(merger.evaluate(), 5)
    key, value = kept.popitem()
    shortened = {name: it for name, it in orjson.loads(value).items() if name != "shares"}
    kept[key] = orjson.dumps({**shortened, "error": "too_large"})
    merger.renew()
    options = merger.writer.options
    assert sink_merged.write_kept(kept, options, {options.owner.checkpoint}, None) == ""
    assert merger.written() == before
    assert [it.levelname for it in caplog.records] == ["WARNING"]


def test_kept_shares_of_which_one_lacks_a_condition_are_not_merged(
    merger: Merger, caplog: pytest.LogCaptureFixture
) -> None:
    _, first, second = merger.evaluate()
    assert isinstance(first, Written)
    without = SlotShares(0, SLOTS, 1, [Share("", "unknown", 0, b"")]).to_bytes()
    kept = merger.keep([None, replace(first, shares=(without,)), second], 5)
    options = merger.writer.options
    assert sink_merged.write_kept(kept, options, {options.owner.checkpoint}, None) == ""
    assert merger.written() == []
    assert [it.levelname for it in caplog.records] == ["WARNING"]


def test_slots_that_begin_apart_may_lack_shares_in_the_first_batch(merger: Merger) -> None:
    *_, last = merger.evaluate()
    options = merger.writer.options
    with pytest.raises(MissingShareError, match="2 of 3 slots"):
        merger.writer.commit([last], 0)
    KafkaWriter(options._replace(ahead="")).commit([last], 0)
    assert merger.written() == []
