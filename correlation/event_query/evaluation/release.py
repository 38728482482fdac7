"""Release of results: up to which time they were published, across restarts, changes and resets.

Definitions. T is the time of a combination, the end that its result has. B is the progress of the
results (relevance.progress), R the bound of the published results: the max of the B of all blocks.
A combination of time T is decided in the block in which its last event arrives, if T <= R;
otherwise in the first block whose B is at least T.

Reset. When the watermark of a stream is reset, or the next version is in force, B may be below R. R
becomes B, and each buffered segment is sealed with the previous R, or with its seal if that is
larger. A combination was decided before iff T is at most the min seal of its events' segments;
events that arrive later have no seal. Sealed segments are not merged, so they are known by their
numbers. Seals end when R reaches the last time of a combination of events below them.

Proof: docs/proofs.md, P-QUERY-ONCE.

Change. The next version continues with R if it reads the same positive and negated streams and its
results have the same time T: its results up to R are not published again. Otherwise, and after a
pause, R begins with B. A time that is not the default is part of the state. A version
that cannot be satisfied is like a pause: its B is KEEP_NOTHING, which bounds no published result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from correlation.buffers.buffer import StreamBuffer
from correlation.buffers.columns import Int64s
from correlation.errors import UnknownRecordVersionError
from correlation.limits import KEEP_NOTHING, UNKNOWN_WATERMARK

# Prefix of the stored state of any version.
_PREFIX = b"CoinQry"
_VERSION = b"1"

Buffers = Mapping[str, StreamBuffer]


class Release:
    """The bound of the published results.

    Parameters
    ----------
    positive, negated : sequence of str
        Streams of the positive and negated aliases.
    time : str
        What T is; empty by default: the last end.
    highest_shift_us : int
        T is at most this after the last end, in µs.

    Attributes
    ----------
    published : int
        R, in µs.
    """

    def __init__(
        self,
        positive: Sequence[str],
        negated: Sequence[str],
        time: str = "",
        highest_shift_us: int = 0,
    ) -> None:
        self.published = UNKNOWN_WATERMARK
        self._time = time
        self._highest_shift_us = highest_shift_us
        self._streams = [sorted(set(positive)), sorted(set(negated))]
        # By stream and segment number: results of such segments up to this are decided.
        self._sealed: dict[str, dict[int, int]] = {name: {} for name in positive}

    def begin(self, progress: int, before: bytes) -> None:
        """Continue from the state of the previous operator, or begin with the progress.

        Parameters
        ----------
        progress : int
            B, in µs.
        before : bytes
            Output of `dump`; empty without a previous operator.

        Raises
        ------
        UnknownRecordVersionError
            Another version of this software wrote the state.
        """
        self.published = progress
        if not before:
            return
        version, _, text = before.removeprefix(_PREFIX).partition(b" ")
        if version != _VERSION:
            raise UnknownRecordVersionError(
                f"the state of an event query has version {version.decode(errors='replace')}; this "
                f"software reads {_VERSION.decode()}"
            )
        state: dict[str, Any] = json.loads(text)
        same = state["streams"] == self._streams and state.get("time", "") == self._time
        if same and state["published"] < KEEP_NOTHING:
            self.published = state["published"]
            self._sealed = {name: dict(seals) for name, seals in state["sealed"].items()}

    def dump(self) -> bytes:
        """Return the state: some bytes, and a few more for each sealed segment.

        It is empty if R has no meaning: the query cannot be satisfied, or all streams are closed.
        """
        if self.published >= KEEP_NOTHING:
            return b""
        state: dict[str, Any] = {
            "streams": self._streams,
            "published": self.published,
            "sealed": {name: list(seals.items()) for name, seals in self._sealed.items()},
        }
        if self._time:
            state["time"] = self._time
        return b"%b%b %b" % (_PREFIX, _VERSION, json.dumps(state).encode())

    def held(self) -> dict[str, list[int]]:
        """Return the numbers of the sealed segments, which must not change."""
        return {name: list(seals) for name, seals in self._sealed.items() if seals}

    def reset(self, progress: int, buffers: Buffers) -> None:
        """Move R back to the progress if it is lower, and seal the buffered segments.

        Parameters
        ----------
        progress : int
            B after the reset or the change, in µs.
        buffers : mapping of stream to StreamBuffer
            Events of earlier blocks.
        """
        if progress >= self.published:
            return
        for name, seals in self._sealed.items():
            for number, _ in buffers[name].segments:
                seals[number] = max(self.published, seals.get(number, self.published))
        self.published = progress

    def advance(self, progress: int, buffers: Buffers) -> None:
        """Raise R to the progress, and end seals.

        Parameters
        ----------
        progress : int
            B, in µs.
        buffers : mapping of stream to StreamBuffer
            Events of earlier blocks.
        """
        self.published = max(self.published, progress)
        segments = [
            (name, number, segment)
            for name, seals in self._sealed.items()
            if seals
            for number, segment in buffers[name].segments
            if number in seals
        ]
        # The last event of a sealed combination is in one of its segments.
        last = max((segment.max_latest for _, _, segment in segments), default=UNKNOWN_WATERMARK)
        last += self._highest_shift_us
        kept: dict[str, dict[int, int]] = {name: {} for name in self._sealed}
        for name, number, _ in segments:
            seal = min(self._sealed[name][number], last)
            if seal > self.published:
                kept[name][number] = seal
        self._sealed = kept

    def seals(self, stream: str, buffers: Buffers) -> Int64s | None:
        """Return the seal of each segment of a stream, and one element for the block's events.

        Returns
        -------
        int64[k + 1] or None
            None if no segment of any stream is sealed.
        """
        if not any(self._sealed.values()):
            return None
        seals = self._sealed[stream]
        found = [seals.get(number, UNKNOWN_WATERMARK) for number, _ in buffers[stream].segments]
        return np.array([*found, UNKNOWN_WATERMARK], np.int64)
