"""Shares of slots are read from the state topic as they were written."""

from __future__ import annotations

from unittest.mock import patch

import orjson
import pytest

from correlation.resources.topics import Topics
from spark_jobs.sink.kept_shares import KeptShares, former_keys
from spark_jobs.sink.marker import read_marks
from spark_jobs.sink.options import Owner
from spark_jobs.sink.transactions import Target

BLOBS = (b"\x00one", b"two\xff")
CHECKPOINT = "checkpoint"


def record(
    partition: int,
    query: str,
    batch: int,
    *blobs: bytes,
    checkpoint: str = CHECKPOINT,
    ahead: str = "",
) -> dict[bytes, bytes]:
    """Return the record of a partition, by its key."""
    owner = Owner(1, checkpoint, "start", 2)
    target = Target(f"p.sink.{partition}", f"p.{query}.{partition}", Topics("p"), owner)
    written = KeptShares(query, batch, blobs, ahead).to_record(target)
    assert written.topic == Topics("p").state
    return {written.key or b"": written.value or b""}


def newest(values: dict[bytes, bytes], present: str | None = None) -> KeptShares | None:
    return KeptShares.newest(values, {CHECKPOINT}, present)


def test_shares_of_all_partitions_are_read() -> None:
    written = {**record(0, "q", 7, *BLOBS), **record(1, "q", 7, b"three")}
    assert newest(written) == KeptShares("q", 7, [*BLOBS, b"three"])
    assert newest({b"p.sink.0": b"{}", b"0/1": b"{}"}) is None


@pytest.mark.parametrize("former", [("q", 6), ("former", 90)])
def test_shares_of_a_former_batch_and_query_are_left_out(former: tuple[str, int]) -> None:
    written = {**record(1, *former, b"x"), **record(0, "q", 7, *BLOBS)}
    assert newest(written) == KeptShares("q", 7, [*BLOBS])


def test_shares_of_the_present_query_and_of_other_checkpoints_are_left_out() -> None:
    former, present = record(0, "q", 7, *BLOBS), record(0, "present", 3, *BLOBS)
    other = record(1, "another", 9, *BLOBS, checkpoint="other")
    assert newest({**former, **present, **other}, "present") == KeptShares("q", 7, [*BLOBS])
    assert newest({**present, **other}, "present") is None
    written = {**former, **present, b"0/1": b"{}"}
    assert former_keys(written, "present") == [*former]


def test_newest_query_is_the_one_that_no_other_follows_whatever_the_clocks() -> None:
    followed, last = record(0, "p", 7, b"one"), record(1, "q", 0, b"two", ahead="p")
    with patch("time.time_ns", lambda: 2 * 10**18):
        later = record(0, "p", 7, b"one")
    assert newest({**later, **last}) == newest({**followed, **last})
    assert newest({**later, **last}) == KeptShares("q", 0, [b"two"], "p")


def test_shares_of_a_first_batch_follow_those_of_the_former_queries() -> None:
    written = {
        **record(0, "p", 5, b"zero"),
        **record(0, "q", 0, b"one", ahead="p"),
        **record(1, "r", 0, b"two", ahead="q"),
        **record(0, "s", 1, b"three"),
    }
    found = KeptShares.of_query(written, "r")
    assert found == KeptShares("r", 0, [b"two"], "q")
    assert [it.query for it in found.chain(written)] == ["p", "q", "r"]
    later = KeptShares.of_query(written, "s")
    assert later is not None
    assert later.chain(written) == [later]
    assert KeptShares.of_query(written, "unknown") is None


@pytest.mark.parametrize("before", ["q", "gone"])
def test_chain_of_shares_ends(before: str) -> None:
    written = record(0, "q", 0, b"one", ahead=before)
    found = KeptShares.of_query(written, "q")
    assert found is not None
    assert found.chain(written) == [found]


def test_shares_are_a_mark_of_their_batch() -> None:
    assert read_marks(record(0, "q", 7, *BLOBS)) == {"p.q.0": 8}


def test_shares_that_are_too_large_or_of_another_format_are_missing() -> None:
    first, second = record(0, "q", 7, *BLOBS), record(1, "q", 7, *BLOBS)
    ((key, value),) = second.items()
    omitted = {name: it for name, it in orjson.loads(value).items() if name != "shares"}
    shortened = orjson.dumps({**omitted, "error": "too_large"})
    other = orjson.dumps({**orjson.loads(value), "format": 1})
    for it in (shortened, other):
        assert newest({**first, key: it}) == KeptShares("q", 7, [*BLOBS], is_whole=False)
        assert newest({key: it}) == KeptShares("q", 7, [], is_whole=False)
