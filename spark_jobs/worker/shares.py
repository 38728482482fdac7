"""Shares of a slot as one blob, which the tasks of the sink return to the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from correlation.buffers.columns import BytesColumn
from correlation.buffers.packing import pack_columns, unpack_columns
from correlation.operators import Share
from spark_jobs.worker.envelope import compressed, decompressed

if TYPE_CHECKING:
    from collections.abc import Sequence


class SlotShares(NamedTuple):
    """The shares of a slot in a batch.

    Parameters
    ----------
    slot, slots : int
        Number of the slot, and number of slots of the job.
    detected_at_us : int
        Time at which the slot's correlation completed, in µs since 1970.
    shares : sequence of Share
        The shares, in order.
    later : sequence of bytes
        Packed records to be written after the merged results.
    """

    slot: int
    slots: int
    detected_at_us: int
    shares: Sequence[Share]
    later: Sequence[bytes] = ()

    def to_bytes(self) -> bytes:
        """Write the shares as one byte string."""
        blobs = BytesColumn.from_list([it.blob for it in self.shares])
        names = [
            [it.kind, it.condition, it.version, it.has_changes, it.is_live] for it in self.shares
        ]
        meta = {
            "slot": self.slot,
            "slots": self.slots,
            "detected_at": self.detected_at_us,
            "shares": names,
        }
        later = BytesColumn.from_list(list(self.later))
        return compressed(pack_columns({"blob": blobs, "later": later}, meta))

    @classmethod
    def from_bytes(cls, blob: bytes) -> SlotShares:
        """Read the output of `to_bytes`."""
        columns, meta = unpack_columns(decompressed(blob))
        blobs = cast("BytesColumn", columns["blob"]).to_list()
        shares = [
            Share(kind, condition, version, it, has_changes, is_live)
            for (kind, condition, version, has_changes, is_live), it in zip(
                meta["shares"], blobs, strict=True
            )
        ]
        later = cast("BytesColumn", columns["later"]).to_list()
        return cls(meta["slot"], meta["slots"], meta["detected_at"], shares, later)
