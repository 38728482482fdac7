"""Files beside Spark's checkpoint, and slot keys, with a Spark session."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from correlation.errors import UnknownRecordVersionError
from kafka_client.partition_offsets import Place
from spark_jobs.driver.checkpoint import Checkpoint, parse_offsets
from spark_jobs.driver.config_topic import ConfigTopic
from spark_jobs.driver.layout import (
    check_layout,
    is_outdated,
    make_layout,
    open_layout,
    write_layout,
)
from spark_jobs.driver.losses import LossCounter
from spark_jobs.driver.replanning import Replanning
from spark_jobs.driver.session import open_session
from spark_jobs.errors import CheckpointMismatchError, CheckpointStoreError, ConfigTopicError
from spark_jobs.settings import Settings
from spark_jobs.worker.blob_files import BlobFiles
from spark_jobs.worker.slots import slot_keys
from tests.support.messages import assert_names, naming

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    session = open_session(Settings(spark_master="local[2]"))
    yield session
    session.stop()


@pytest.fixture
def checkpoint(session: SparkSession, tmp_path: Path) -> Checkpoint:
    return Checkpoint(session, str(tmp_path / "job"))


@pytest.mark.parametrize(("slots", "partitions"), [(1, 1), (2, 2), (7, 3), (16, 8)])
def test_slot_keys_land_where_the_slots_belong(
    session: SparkSession, slots: int, partitions: int
) -> None:
    keys = slot_keys(session, slots, partitions)
    assert len(set(keys)) == slots
    frame = session.createDataFrame([(key,) for key in keys], "key int")
    placed = frame.repartition(partitions, "key").selectExpr("key", "spark_partition_id()")
    found = {row[0]: row[1] for row in placed.collect()}
    assert [found[key] for key in keys] == [slot % partitions for slot in range(slots)]


def test_file_is_read_as_it_was_written_last(checkpoint: Checkpoint) -> None:
    assert checkpoint.read("streams.json") is None
    checkpoint.write("streams.json", b"one")
    checkpoint.write("streams.json", b"two\xff")
    assert checkpoint.read("streams.json") == b"two\xff"


def test_error_of_the_store_says_where_and_what_to_do(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    checkpoint.write("streams.json", b"one")
    (tmp_path / "job").rename(tmp_path / "away")
    (tmp_path / "job").write_bytes(b"")
    with pytest.raises(CheckpointStoreError) as raised:
        checkpoint.write("streams.json", b"two")
    assert raised.value.cause.startswith("FileExistsError: ")
    assert raised.value.location == str(tmp_path / "job")
    assert_names(raised.value, raised.value.cause, raised.value.location, "check permissions")
    (tmp_path / "job").unlink()
    (tmp_path / "away").rename(tmp_path / "job")
    assert checkpoint.read("streams.json") == b"one"
    (tmp_path / "job/streams.json").unlink()
    (tmp_path / "job/streams.json").mkdir()
    with pytest.raises(CheckpointStoreError, match=r"the checkpoint's store: FileNotFound"):
        checkpoint.read("streams.json")


def test_full_disk_is_named_and_the_file_stays_as_it_was(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    checkpoint.write("streams.json", b"one")
    unfinished = tmp_path / "job/.streams.json.new"
    # A device on which no space is left, under the name that the content is written to first.
    unfinished.symlink_to("/dev/full")
    with pytest.raises(CheckpointStoreError) as raised:
        checkpoint.write("streams.json", b"two")
    assert raised.value.cause == f"OSError: {os.strerror(errno.ENOSPC)}"
    assert checkpoint.read("streams.json") == b"one"
    unfinished.unlink()
    checkpoint.write("streams.json", b"two")
    assert checkpoint.read("streams.json") == b"two"


def test_file_is_whole_after_a_kill_at_any_step(
    checkpoint: Checkpoint, session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As Spark writes its files: with a checksum beside them.
    jvm: Any = session._jvm  # noqa: SLF001 - Spark's Python API has no files
    path = jvm.org.apache.hadoop.fs.Path(str(tmp_path / "job" / "offsets"))
    stream = path.getFileSystem(jvm.org.apache.hadoop.conf.Configuration()).create(path)
    stream.write(b"one")
    stream.close()
    assert (tmp_path / "job" / ".offsets.crc").exists()

    class KilledError(BaseException):
        pass

    def end(*_: object, **__: object) -> None:
        raise KilledError

    for step in ("unlink", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(Path, step, end)
            with pytest.raises(KilledError):
                checkpoint.write("offsets", b"two, and longer")
        assert checkpoint.read("offsets") == b"one"
    checkpoint.write("offsets", b"two, and longer")
    assert checkpoint.read("offsets") == b"two, and longer"


def test_checkpoint_that_vanished_is_not_taken_for_an_empty_one(
    checkpoint: Checkpoint, session: SparkSession, tmp_path: Path
) -> None:
    layout = open_layout(checkpoint, session, 3)
    check_layout(checkpoint, layout)
    (tmp_path / "job").rename(tmp_path / "away")
    for _ in range(2):
        with pytest.raises(CheckpointStoreError, match=naming("layout.json", "missing")):
            check_layout(checkpoint, layout)
        # Another one in its place.
        open_layout(checkpoint, session, 3)


def begin_batch(checkpoint: Checkpoint, batch: int, *, is_complete: bool = False) -> None:
    """Write the files of a batch, as Spark does; its state has version `batch + 1`."""
    offsets = json.dumps({"events": {"0": 16_000 * (batch + 1)}})
    checkpoint.write(f"query/offsets/{batch}", f"v1\n{{}}\n{offsets}".encode())
    for name in (f"{batch + 1}.changelog", f"{batch + 1}.zip"):
        checkpoint.write(f"query/state/0/1/{name}", b"state")
    if is_complete:
        checkpoint.write(f"query/commits/{batch}", b"v1\n{}")


def files_of(folder: Path) -> set[str]:
    return {str(it.relative_to(folder)) for it in folder.rglob("*") if it.is_file()}


def test_unfinished_batch_is_removed_with_its_state_if_nothing_was_written(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    for batch in range(3):
        begin_batch(checkpoint, batch, is_complete=batch < 2)
    checkpoint.write("query/state/0/1/13.changelog", b"of another version")
    before = files_of(tmp_path / "job" / "query")
    Replanning(checkpoint, 5_000).discard_unwritten(2)
    assert files_of(tmp_path / "job" / "query") == before
    Replanning(checkpoint, 5_000).discard_unwritten(1)
    removed = {"offsets/2", "state/0/1/3.changelog", "state/0/1/3.zip"}
    assert files_of(tmp_path / "job" / "query") == before - removed
    assert not checkpoint.has_unfinished_batch()


def test_first_batch_is_removed_with_the_whole_state(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    begin_batch(checkpoint, 0)
    checkpoint.write("query/state/0/_metadata/v2/0", b"of the operator")
    Replanning(checkpoint, 5_000).discard_unwritten(-1)
    assert files_of(tmp_path / "job" / "query") == set()


def fail_batch(checkpoint: Checkpoint, batch: int, max_records: int) -> Replanning:
    """Begin a batch and start the job again."""
    begin_batch(checkpoint, batch)
    replanning = Replanning(checkpoint, max_records)
    replanning.discard_unwritten(batch - 1)
    return replanning


def test_batches_are_smaller_after_repeated_failures(checkpoint: Checkpoint) -> None:
    begin_batch(checkpoint, 0, is_complete=True)
    limits = [fail_batch(checkpoint, 1, 100_000).max_records for _ in range(5)]
    # The failed batch had 16,000 records.
    assert limits == [100_000, 2_000, 250, 100, 100]
    replanning = Replanning(checkpoint, 100_000)
    assert not replanning.complete(50)
    assert replanning.complete(49)
    assert replanning.max_records == Replanning(checkpoint, 100_000).max_records == 100_000
    # A batch limit below the smallest one stays as it is.
    fail_batch(checkpoint, 1, 10)
    assert fail_batch(checkpoint, 1, 10).max_records == 10


def test_reduced_batches_grow_again_while_records_are_unread(checkpoint: Checkpoint) -> None:
    begin_batch(checkpoint, 0, is_complete=True)
    for _ in range(4):
        replanning = fail_batch(checkpoint, 1, 10_000)
    limits = []
    while replanning.max_records < 10_000:
        limits.append(replanning.max_records)
        grows = [replanning.complete(limits[-1]) for _ in range(20)]
        assert grows == [*[False] * 19, True]
        assert Replanning(checkpoint, 10_000).max_records == replanning.max_records
    assert limits == [100, 800, 6_400]
    assert checkpoint.read("replanned.json") is None


def test_losses_are_counted_once_and_kept(checkpoint: Checkpoint) -> None:
    reported: list[Mapping[Place, int]] = []
    first, second = ("events", 0), ("events", 1)
    losses = LossCounter(checkpoint, reported.append)
    losses.note_read({first: 12, second: 5}, 0)
    losses.look({first: 20, second: 5}, {})
    # The query has not passed over the gap when it starts again, in this job or in the next.
    losses.look({first: 20}, {})
    losses = LossCounter(checkpoint, reported.append)
    losses.look({first: 20}, {})
    losses.note_read({first: 12, second: 6}, 1)
    losses.look({first: 23, second: 9}, {})
    losses.note_read({first: 50, second: 9}, 2)
    losses.look({first: 23, second: 9}, {})
    assert reported == [{}, {first: 8}, {first: 8}, {first: 11, second: 3}]


def test_records_gone_before_the_job_ever_read_the_topic_are_no_loss(
    checkpoint: Checkpoint,
) -> None:
    reported: list[Mapping[Place, int]] = []
    LossCounter(checkpoint, reported.append).look({("events", 0): 20}, {("events", 0): 30})
    assert reported == [{}]


def test_losses_of_a_topic_created_anew_are_counted_from_its_beginning(
    checkpoint: Checkpoint,
) -> None:
    reported: list[Mapping[Place, int]] = []
    place = ("events", 0)
    losses = LossCounter(checkpoint, reported.append)
    losses.note_read({place: 90}, 0)
    losses.look({place: 100}, {})
    losses.forget({"events"})
    losses.note_read({place: 4}, 1)
    losses.look({place: 7}, {})
    losses.look({place: 7}, {})
    assert reported == [{}, {place: 10}, {place: 13}]


def test_losses_that_cannot_be_kept_are_counted_when_they_can(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    reported: list[Mapping[Place, int]] = []
    place = ("events", 0)
    (tmp_path / "job").write_bytes(b"")
    losses = LossCounter(checkpoint, reported.append)
    losses.note_read({place: 12}, 0)
    with pytest.raises(CheckpointStoreError):
        losses.look({place: 20}, {})
    (tmp_path / "job").unlink()
    losses.look({place: 20}, {})
    assert reported == [{}, {place: 8}]


def test_layout_stays_until_the_state_is_distributed(
    checkpoint: Checkpoint, session: SparkSession
) -> None:
    layout = open_layout(checkpoint, session, 3)
    assert layout.shuffle_partitions == 2
    assert open_layout(checkpoint, session, 3) == layout
    assert open_layout(checkpoint, session, 4) == layout
    other = make_layout(session, 4, layout.id, layout.generation + 1)
    assert len(set(other.slot_keys)) == 4
    write_layout(checkpoint, other)
    assert open_layout(checkpoint, session, 3) == other


def test_layout_of_a_version_without_generations_is_read(
    checkpoint: Checkpoint, session: SparkSession
) -> None:
    layout = open_layout(checkpoint, session, 1)
    stored = json.loads(checkpoint.read("layout.json") or b"")
    del stored["generation"]
    checkpoint.write("layout.json", json.dumps(stored).encode())
    assert open_layout(checkpoint, session, 1) == layout


def test_files_and_folders_are_removed(checkpoint: Checkpoint, tmp_path: Path) -> None:
    checkpoint.write("a.json", b"{}")
    checkpoint.write("query/offsets/0", b"v1")
    for name in ("a.json", "query", "missing"):
        checkpoint.remove(name)
    assert checkpoint.read("a.json") is None
    assert [*(tmp_path / "job").iterdir()] == []


def test_layout_of_another_version_is_refused(
    checkpoint: Checkpoint, session: SparkSession
) -> None:
    """In version 2 the sources of a batch had another order, by which Spark stores their ends."""
    open_layout(checkpoint, session, 1)
    stored = json.loads(checkpoint.read("layout.json") or b"")
    for version, expected in ((4, False), (3, True)):
        checkpoint.write("layout.json", json.dumps(stored | {"v": version}).encode())
        assert is_outdated(checkpoint) is expected
        assert open_layout(checkpoint, session, 1).id == stored["id"]
    checkpoint.write("layout.json", json.dumps(stored | {"v": 2}).encode())
    with pytest.raises(CheckpointMismatchError, match="has version 2, this software reads 4"):
        open_layout(checkpoint, session, 1)


def test_unfinished_batch_is_one_begun_and_not_completed(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    begun, completed = tmp_path / "job/query/offsets", tmp_path / "job/query/commits"
    assert not checkpoint.has_unfinished_batch()
    assert checkpoint.completed_offsets() == {}
    for folder, numbers in ((begun, (8, 9, 10)), (completed, (8, 9))):
        folder.mkdir(parents=True)
        for number in numbers:
            config = f'{{"config":{{"0":{number + 1}}}}}'
            offsets = f'{{"events":{{"0":{number},"12":7}}}}'
            (folder / str(number)).write_text(f"v1\n{{}}\n{config}\n{offsets}")
            (folder / f".{number}.crc").write_bytes(b"")
    assert checkpoint.has_unfinished_batch()
    assert checkpoint.completed_offsets() == {
        ("config", 0): 10,
        ("events", 0): 9,
        ("events", 12): 7,
    }
    (completed / "10").write_text("v1\n{}")
    assert not checkpoint.has_unfinished_batch()


def test_query_begins_although_a_job_was_killed_while_it_wrote_the_first_offsets(
    checkpoint: Checkpoint, session: SparkSession, tmp_path: Path
) -> None:
    for name in ("offsets/.0.8f74e7f0.tmp", "commits/.0.8f74e7f0.tmp", "state/0/1/1.changelog"):
        left = tmp_path / "job/query" / name
        left.parent.mkdir(parents=True)
        left.write_bytes(b"")

    def run() -> None:
        writer = session.readStream.format("rate").load().writeStream.format("noop")
        query = writer.trigger(availableNow=True).start(
            checkpointLocation=checkpoint.query_location
        )
        query.awaitTermination()

    with pytest.raises(StreamingQueryException, match="CHECKPOINT_LOCATION_NOT_EMPTY"):
        run()
    checkpoint.remove_unbegun()
    run()
    assert checkpoint.newest_batch() == checkpoint.completed_batch() == 0
    before = files_of(tmp_path / "job")
    checkpoint.remove_unbegun()
    assert files_of(tmp_path / "job") == before


def write_batches(folder: Path, begun: int, completed: int) -> None:
    """Write batches as Spark does: the first source has the config topic, the second events."""
    for name, count in (("offsets", begun), ("commits", completed)):
        (folder / "job/query" / name).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            events = f'{{"a":{{"0":{number * 10},"1":4}},"b":{{"0":7}}}}'
            config = f'{{"config":{{"0":{number}}}}}'
            text = f"v1\n{{}}\n{config}\n{events}"
            (folder / "job/query" / name / str(number)).write_text(text)


def test_offsets_of_topics_that_changed_are_left_out_or_taken_back(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    # Nothing was begun: there is nothing to change.
    checkpoint.change_offsets({"a"})
    assert checkpoint.begun_offsets() == {}
    assert not (tmp_path / "job/query").exists()
    write_batches(tmp_path, begun=3, completed=2)
    checkpoint.change_offsets({"b", "config"}, {("a", 0): 15, ("a", 1): 9})
    # A partition that has grown since it was read is not read further.
    assert checkpoint.begun_offsets() == {("a", 0): 15, ("a", 1): 4}
    assert checkpoint.completed_offsets() == {
        ("config", 0): 1,
        ("a", 0): 10,
        ("a", 1): 4,
        ("b", 0): 7,
    }
    assert (tmp_path / "job/query/offsets/2").read_text().splitlines()[:3] == ["v1", "{}", "{}"]


def test_config_topic_of_another_id_is_refused_until_it_is_accepted(
    checkpoint: Checkpoint,
) -> None:
    def opened(found: str | None, accepted: str | None = None) -> ConfigTopic:
        return ConfigTopic(checkpoint, "p.config", found, accepted)

    # The first id is that of the checkpoint; a broker without ids changes nothing.
    assert not opened(None).is_accepting
    topic = opened("one")
    topic.check("one")
    topic.check(None)
    with pytest.raises(ConfigTopicError, match=naming("id one", "id two", "--from-beginning")):
        topic.check("two")
    for accepted in (None, "one", "three"):
        with pytest.raises(ConfigTopicError, match="COINCIDE_ACCEPT_CONFIG_TOPIC=two"):
            opened("two", accepted)
    # Until the acceptance is stored, every start begins it again.
    for _ in range(2):
        topic = opened("two", "two")
        assert (topic.is_accepting, topic.epoch) == (True, 0)
    topic.accept()
    assert (topic.is_accepting, topic.epoch) == (False, 1)
    # The setting may stay, and accepts no other.
    again = opened("two", "two")
    assert (again.is_accepting, again.epoch) == (False, 1)
    with pytest.raises(ConfigTopicError, match="three"):
        again.check("three")
    with pytest.raises(ConfigTopicError, match="three"):
        opened("three", "two")


def test_config_topic_of_another_version_is_refused(checkpoint: Checkpoint) -> None:
    checkpoint.write("config_topic-0.json", b'{"v":2}')
    with pytest.raises(UnknownRecordVersionError, match="version 2"):
        ConfigTopic(checkpoint, "p.config", "one", None)


def test_cache_of_a_local_checkpoint_lies_in_it(checkpoint: Checkpoint, tmp_path: Path) -> None:
    BlobFiles(checkpoint.cache_folder).put("blob", b"1")
    assert (tmp_path / "job/cache/blob").read_bytes() == b"1"


@pytest.mark.parametrize("text", [None, "", "null", "-", "{}"])
def test_source_that_says_nothing_has_no_offsets(text: str | None) -> None:
    assert parse_offsets(text) == {}
