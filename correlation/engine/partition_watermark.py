"""Watermark of one Kafka partition, from events, heartbeats at an offset, and resets.

A heartbeat with an offset takes effect when the partition has been read up to that offset. A reset
makes the watermark unknown when it arrives. At its offset, it discards the progress of the events
read since: from there on the watermark follows only from later records (docs/proofs.md, P-RESET).
Cost: O(1) per block, O(MAX_WAITING) per waiting heartbeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from correlation.engine.heartbeats import CLOSED
from correlation.limits import UNKNOWN_WATERMARK

# Maximum number of heartbeats that wait for an offset; each takes some bytes in every manifest.
MAX_WAITING = 64


@dataclass(slots=True)
class PartitionWatermark:
    """Watermark of one Kafka partition.

    Parameters
    ----------
    watermark : int
        The watermark, in µs; UNKNOWN_WATERMARK before the first event or heartbeat.
    next_offset : int
        Offset up to which the partition has been read.
    waiting : dict of int to int
        Offset of each waiting heartbeat, and the watermark from that offset on.
    resets : list of int
        Offsets of the first and the last reset that have not been reached.
    after : int
        Watermark that follows from heartbeats sent after the newest of these resets.
    """

    watermark: int = UNKNOWN_WATERMARK
    next_offset: int = 0
    waiting: dict[int, int] = field(default_factory=dict)
    resets: list[int] = field(default_factory=list)
    after: int = UNKNOWN_WATERMARK

    def read(self, next_offset: int, watermark: int | None) -> bool:
        """Update the watermark from a block.

        Parameters
        ----------
        next_offset : int
            Offset up to which the block was read.
        watermark : int or None
            Watermark that follows from the block's events; None without events.

        Returns
        -------
        bool
            Whether a reset was reached.
        """
        self.next_offset = max(self.next_offset, next_offset)
        if self._reach_resets():
            # The block may hold events from before the reset, so it does not raise the watermark.
            return True
        if watermark is not None:
            self.watermark = max(self.watermark, watermark)
        return False

    def raise_to(self, watermark: int) -> None:
        """Apply a heartbeat that takes effect immediately."""
        self.watermark = max(self.watermark, watermark)
        if self.resets:
            self.after = max(self.after, watermark)

    def hold(self, offset: int, watermark: int) -> None:
        """Add a heartbeat that takes effect when the partition has been read up to an offset."""
        offset = max(offset, self.next_offset)
        self.waiting[offset] = max(self.waiting.get(offset, watermark), watermark)
        ahead = sorted(it for it in self.waiting if it > self.next_offset)
        if len(ahead) > MAX_WAITING:
            self._drop_waiting(ahead)

    def reset(self, offset: int) -> None:
        """Apply a reset: it takes effect immediately, and again when its offset is reached.

        Waiting heartbeats are dropped: they were sent before the reset and may be wrong.
        """
        self.waiting.clear()
        self.watermark = self.after = UNKNOWN_WATERMARK
        if offset > self.next_offset:
            self.resets = sorted({*self.resets, offset})
            del self.resets[1:-1]

    def settle(self) -> tuple[bool, bool]:
        """Apply the heartbeats and resets whose offsets have been reached.

        Returns
        -------
        bool, bool
            Whether a reset was reached, and whether a heartbeat closed the partition.
        """
        fell = self._reach_resets()
        reached = [offset for offset in self.waiting if offset <= self.next_offset]
        watermarks = [self.waiting.pop(offset) for offset in reached]
        for watermark in watermarks:
            self.raise_to(watermark)
        return fell, CLOSED in watermarks

    def _reach_resets(self) -> bool:
        if not self.resets or self.resets[0] > self.next_offset:
            return False
        self.watermark = self.after
        self.resets = [offset for offset in self.resets if offset > self.next_offset]
        return True

    def _drop_waiting(self, ahead: list[int]) -> None:
        """Drop the waiting heartbeats whose loss delays the watermark for the shortest time.

        A heartbeat is redundant if a heartbeat at a smaller offset has the same or a larger
        watermark. The other heartbeats are dropped in the order of their loss: the increase of the
        watermark times the number of offsets until the next heartbeat. The last heartbeat, and the
        last heartbeat that closes the partition, are never dropped.
        """
        base = self.after if self.resets else self.watermark
        kept: list[int] = []
        for offset in ahead:
            if self.waiting[offset] > (self.waiting[kept[-1]] if kept else base):
                kept.append(offset)
        while len(kept) > MAX_WAITING:
            watermarks = [base, *(self.waiting[offset] for offset in kept)]
            losses = [
                (watermarks[i + 1] - watermarks[i]) * (kept[i + 1] - kept[i])
                for i in range(len(kept) - 1)
            ]
            del kept[losses.index(min(losses))]
        closing = [offset for offset in ahead if self.waiting[offset] == CLOSED]
        for offset in {*ahead}.difference(kept, closing[-1:]):
            del self.waiting[offset]

    def dump(self) -> list[Any]:
        """Return the arguments of the constructor as a JSON-able list."""
        waiting = list(self.waiting.items())
        return [self.watermark, self.next_offset, waiting, self.resets, self.after]

    @classmethod
    def load(cls, dumped: Sequence[Any]) -> PartitionWatermark:
        """Read the output of `dump`."""
        watermark, next_offset, waiting, resets, after = dumped
        return cls(watermark, next_offset, dict(map(tuple, waiting)), resets, after)
