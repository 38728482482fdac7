"""Watermark of one Kafka partition: events read, heartbeats that wait for an offset, resets.

A heartbeat with an offset holds once the partition has been read up to that offset. A reset takes
back what is known when it comes, and, at its offset, what the events before that offset have said
since: from there on the watermark follows from later records alone (docs/proofs.md, P-RESET).
Cost: O(1) for each block, O(MOST_WAITING) for each heartbeat that waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from correlation.engine.heartbeats import CLOSED
from correlation.limits import UNKNOWN_WATERMARK

# Heartbeats that may wait for an offset; each is a few bytes in the manifest of every slot.
MOST_WAITING = 64


@dataclass(slots=True)
class PartitionWatermark:
    """Watermark of one Kafka partition.

    Parameters
    ----------
    watermark : int
        The watermark, in µs; UNKNOWN_WATERMARK while nothing is known.
    next_offset : int
        Offset up to which the partition has been read.
    waiting : dict of int to int
        Offset of each heartbeat that waits, and the watermark that holds from there on.
    resets : list of int
        Offsets of resets that are not reached: the first and the last one.
    after : int
        Watermark that follows from heartbeats sent after the newest of these resets.
    """

    watermark: int = UNKNOWN_WATERMARK
    next_offset: int = 0
    waiting: dict[int, int] = field(default_factory=dict)
    resets: list[int] = field(default_factory=list)
    after: int = UNKNOWN_WATERMARK

    def read(self, next_offset: int, watermark: int | None) -> bool:
        """Take in a block.

        Parameters
        ----------
        next_offset : int
            Offset up to which the block was read.
        watermark : int or None
            Watermark that follows from its events; None without events.

        Returns
        -------
        bool
            Whether a reset was reached.
        """
        self.next_offset = max(self.next_offset, next_offset)
        if self._reach_resets():
            # The block may hold events from before the reset, so it raises nothing.
            return True
        if watermark is not None:
            self.watermark = max(self.watermark, watermark)
        return False

    def raise_to(self, watermark: int) -> None:
        """Take in a heartbeat that holds now."""
        self.watermark = max(self.watermark, watermark)
        if self.resets:
            self.after = max(self.after, watermark)

    def hold(self, offset: int, watermark: int) -> None:
        """Take in a heartbeat that holds once the partition has been read up to an offset."""
        offset = max(offset, self.next_offset)
        self.waiting[offset] = max(self.waiting.get(offset, watermark), watermark)
        ahead = sorted(it for it in self.waiting if it > self.next_offset)
        if len(ahead) > MOST_WAITING:
            self._drop_waiting(ahead)

    def reset(self, offset: int) -> None:
        """Take in a reset: it holds now, and again when its offset is reached.

        Heartbeats that wait were sent before it, and may be what is to be taken back.
        """
        self.waiting.clear()
        self.watermark = self.after = UNKNOWN_WATERMARK
        if offset > self.next_offset:
            self.resets = sorted({*self.resets, offset})
            del self.resets[1:-1]

    def settle(self) -> tuple[bool, bool]:
        """Apply what waited for an offset that has been read.

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
        """Drop the waiting heartbeats whose loss delays the watermark least.

        A heartbeat with a smaller or equal watermark than one at a smaller offset raises nothing.
        Of the others the one is dropped whose step up, for the offsets until the next one, is
        smallest; never the last one, and never the last that closes the partition.
        """
        base = self.after if self.resets else self.watermark
        kept: list[int] = []
        for offset in ahead:
            if self.waiting[offset] > (self.waiting[kept[-1]] if kept else base):
                kept.append(offset)
        while len(kept) > MOST_WAITING:
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
        """Return it as a JSON-able list, the arguments of the constructor."""
        waiting = list(self.waiting.items())
        return [self.watermark, self.next_offset, waiting, self.resets, self.after]

    @classmethod
    def load(cls, dumped: Sequence[Any]) -> PartitionWatermark:
        """Read what `dump` wrote."""
        watermark, next_offset, waiting, resets, after = dumped
        return cls(watermark, next_offset, dict(map(tuple, waiting)), resets, after)
