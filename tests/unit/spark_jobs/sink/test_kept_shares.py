"""Shares of slots are read from the state topic as they were written."""

from __future__ import annotations

import orjson
import pytest

from correlation.resources.topics import Topics
from spark_jobs.sink.kept_shares import KeptShares, former_keys
from spark_jobs.sink.marker import read_marks
from spark_jobs.sink.options import Owner
from spark_jobs.sink.transactions import Target

BLOBS = (b"\x00one", b"two\xff")


def values(*given: tuple[int, str, int, int, tuple[bytes, ...]]) -> dict[bytes, bytes]:
    """Return records by key: partition, query, batch, claim and shares of each."""
    found = {}
    for partition, query, batch, claim, blobs in given:
        owner = Owner(claim, "checkpoint", "start", 2)
        target = Target(f"p.sink.{partition}", f"p.{query}.{partition}", Topics("p"), owner)
        record = KeptShares(query, batch, blobs).to_record(target)
        assert record.topic == Topics("p").state
        found[record.key or b""] = record.value or b""
    return found


def test_shares_of_all_partitions_are_read() -> None:
    written = values((0, "q", 7, 1, BLOBS), (1, "q", 7, 2, (b"three",)))
    assert KeptShares.newest(written, None) == KeptShares("q", 7, [*BLOBS, b"three"])
    assert KeptShares.newest({b"p.sink.0": b"{}", b"0/1": b"{}"}, None) is None


@pytest.mark.parametrize(
    "former", [(1, "q", 6, 2, (b"x",)), (1, "former", 90, 1, (b"x",))], ids=["batch", "query"]
)
def test_shares_of_a_former_batch_and_query_are_left_out(
    former: tuple[int, str, int, int, tuple[bytes, ...]],
) -> None:
    written = values((0, "q", 7, 2, BLOBS), former)
    assert KeptShares.newest(written, None) == KeptShares("q", 7, [*BLOBS])


def test_shares_of_the_present_query_are_left_out_and_stay() -> None:
    former, present = values((0, "q", 7, 1, BLOBS)), values((0, "present", 3, 2, BLOBS))
    written = {**former, **present, b"0/1": b"{}"}
    assert KeptShares.newest(written, "present") == KeptShares("q", 7, [*BLOBS])
    assert KeptShares.newest(present, "present") is None
    assert former_keys(written, "present") == [*former]


def test_shares_are_a_mark_of_their_batch() -> None:
    assert read_marks(values((0, "q", 7, 1, BLOBS))) == {"p.q.0": 8}


def test_shares_that_are_too_large_or_of_another_format_are_missing() -> None:
    written = values((0, "q", 7, 1, BLOBS), (1, "q", 7, 1, BLOBS))
    first, second = written
    omitted = orjson.loads(written[second])
    del omitted["shares"]
    shortened = {**written, second: orjson.dumps({**omitted, "error": "too_large"})}
    assert KeptShares.newest(shortened, None) == KeptShares("q", 7, [*BLOBS])
    other = {**written, first: orjson.dumps({**orjson.loads(written[first]), "format": 2})}
    assert KeptShares.newest(other, None) is None
