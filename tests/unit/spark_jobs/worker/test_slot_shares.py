"""Shares of a slot, as they reach the driver."""

from __future__ import annotations

from correlation.operators import Share
from spark_jobs.worker.shares import SlotShares


def test_shares_are_read_as_they_were_written() -> None:
    shares = [
        Share("topk_similarity", "near", 3, b"\x00\xff", has_changes=True, is_live=True),
        Share("topk_similarity", "far", 1, b"", has_changes=False, is_live=False),
    ]
    written = SlotShares(1, 2, 99, shares, [b"later"])
    assert SlotShares.from_bytes(written.to_bytes()) == written
