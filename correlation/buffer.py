"""The events of a stream that may still be needed, shared by all conditions on the stream.

A buffer is a list of immutable segments, each sorted by (join key, latest): a new block becomes a
segment, and small young segments are merged as in a log-structured merge tree, so that every event
is moved O(log n) times. A base event finds its targets in a segment by binary search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from correlation.columns import BytesColumn, Events, Int64s, pack_columns, unpack_columns
from correlation.limits import UNKNOWN_MARK

# A segment of this many events is not merged further: older ones are dropped whole.
FULL_SEGMENT_EVENTS = 2**17


class Segment:
    """Immutable events of one stream, sorted by (join key, latest).

    Parameters
    ----------
    group_keys : BytesColumn
        The g join keys, in order of the groups.
    group_starts : int64[g + 1]
        Group i holds the rows group_starts[i] to group_starts[i + 1].
    earliest, latest : int64[n]
        In µs since 1970; `latest` ascends within a group.
    id : BytesColumn
        Ids of the events.
    late : bool[n]
        Whether the event came later than its stream declares.
    """

    __slots__ = (
        "_groups",
        "earliest",
        "greatest_latest",
        "group_keys",
        "group_starts",
        "id",
        "late",
        "latest",
        "least_latest",
        "longest",
        "shortest",
    )

    def __init__(
        self,
        group_keys: BytesColumn,
        group_starts: Int64s,
        earliest: Int64s,
        latest: Int64s,
        id: BytesColumn,  # noqa: A002 - the event's field is called id
        late: NDArray[np.bool_],
    ) -> None:
        self.group_keys = group_keys
        self.group_starts = group_starts
        self.earliest = earliest
        self.latest = latest
        self.id = id
        self.late = late
        lengths = latest - earliest
        self.least_latest = int(latest.min())
        self.greatest_latest = int(latest.max())
        self.shortest = int(lengths.min())
        self.longest = int(lengths.max())
        self._groups: dict[bytes, int] | None = None

    def __len__(self) -> int:
        return len(self.latest)

    @property
    def nbytes(self) -> int:
        """Memory of the columns, in bytes."""
        arrays = (self.group_starts, self.earliest, self.latest, self.late)
        return self.group_keys.nbytes + self.id.nbytes + sum(array.nbytes for array in arrays)

    def groups(self) -> dict[bytes, int]:
        """Give the number of the group of each join key."""
        if self._groups is None:
            self._groups = {key: group for group, key in enumerate(self.group_keys.to_list())}
        return self._groups

    def groups_of_rows(self, rows: Int64s) -> Int64s:
        """Group of each of the given rows."""
        return np.searchsorted(self.group_starts, rows, side="right") - 1

    def key_of_rows(self, rows: Int64s) -> BytesColumn:
        """Join keys of the given rows."""
        return self.group_keys.take(self.groups_of_rows(rows))

    @classmethod
    def from_events(cls, events: Events, late: NDArray[np.bool_]) -> tuple[Segment, Int64s]:
        """Sort events into a segment.

        Parameters
        ----------
        events : Events
            At least one.
        late : bool[n]
            Which of them are late.

        Returns
        -------
        Segment, int64[n]
            The segment, and for each of its rows the row of `events` it came from.
        """
        codes, keys = _encode_keys(events.key)
        order = np.lexsort((events.latest, codes))
        segment = cls(
            keys,
            _starts(codes[order], len(keys)),
            events.earliest[order],
            events.latest[order],
            events.id.take(order),
            late[order],
        )
        return segment, order

    @classmethod
    def merge(cls, segments: Sequence[Segment], keep: int) -> Segment | None:
        """Merge segments, without the events whose `latest` is below `keep`."""
        alive = [(segment, np.flatnonzero(segment.latest >= keep)) for segment in segments]
        parts = [segment.take(rows) for segment, rows in alive if len(rows)]
        return cls.join(parts)[0] if parts else None

    def take(self, rows: Int64s) -> Segment:
        """Give a segment of some of the rows.

        Parameters
        ----------
        rows : int64[k]
            At least one, ascending.
        """
        if len(rows) == len(self):
            return self
        used, starts = np.unique(self.groups_of_rows(rows), return_index=True)
        return Segment(
            self.group_keys.take(used),
            np.append(starts, len(rows)).astype(np.int64, copy=False),
            self.earliest[rows],
            self.latest[rows],
            self.id.take(rows),
            self.late[rows],
        )

    @classmethod
    def join(cls, segments: Sequence[Segment]) -> tuple[Segment, Int64s]:
        """Put segments into one.

        Parameters
        ----------
        segments : sequence of Segment
            At least one.

        Returns
        -------
        Segment, int64[n]
            The segment, and for each of its rows the place that it had with the given segments
            one behind the other.
        """
        if len(segments) == 1:
            return segments[0], np.arange(len(segments[0]))
        latest = np.concatenate([segment.latest for segment in segments])
        group_codes, keys = _encode_keys(BytesColumn.concat([it.group_keys for it in segments]))
        sizes = np.concatenate([np.diff(segment.group_starts) for segment in segments])
        codes = np.repeat(group_codes, sizes)
        order = np.lexsort((latest, codes))
        joined = cls(
            keys,
            _starts(codes[order], len(keys)),
            np.concatenate([segment.earliest for segment in segments])[order],
            latest[order],
            BytesColumn.concat([segment.id for segment in segments]).take(order),
            np.concatenate([segment.late for segment in segments])[order],
        )
        return joined, order

    def to_bytes(self) -> bytes:
        """Write the segment into one byte string."""
        return pack_columns(
            {
                "group_keys": self.group_keys,
                "group_starts": self.group_starts,
                "earliest": self.earliest,
                "latest": self.latest,
                "id": self.id,
                "late": self.late,
            },
            {},
        )

    @classmethod
    def from_bytes(cls, blob: bytes) -> Segment:
        """Read what `to_bytes` wrote."""
        columns, _ = unpack_columns(blob)
        return cls(
            cast("BytesColumn", columns["group_keys"]),
            cast("Int64s", columns["group_starts"]),
            cast("Int64s", columns["earliest"]),
            cast("Int64s", columns["latest"]),
            cast("BytesColumn", columns["id"]),
            cast("NDArray[np.bool_]", columns["late"]),
        )


def _encode_keys(keys: BytesColumn) -> tuple[Int64s, BytesColumn]:
    """Give each key the number of its first appearance: codes int64[n], and the g distinct keys."""
    numbers: dict[bytes, int] = {}
    codes = np.fromiter(
        (numbers.setdefault(key, len(numbers)) for key in keys.to_list()), np.int64, len(keys)
    )
    return codes, BytesColumn.from_list(list(numbers))


def _starts(sorted_codes: Int64s, groups: int) -> Int64s:
    return np.searchsorted(sorted_codes, np.arange(groups + 1)).astype(np.int64)


def match_groups(base: Segment, target: Segment) -> Int64s:
    """Give the groups of two segments whose keys are equal.

    Returns
    -------
    int64[k, 4]
        Rows (base low, base high, target low, target high) of each matching key.
    """
    small, large = (
        (base, target) if len(base.group_keys) <= len(target.group_keys) else (target, base)
    )
    found = large.groups()
    pairs = [
        (group, found[key]) for group, key in enumerate(small.group_keys.to_list()) if key in found
    ]
    numbers = np.array(pairs, np.int64).reshape(-1, 2)
    if small is not base:
        numbers = numbers[:, ::-1]
    b, t = numbers[:, 0], numbers[:, 1]
    return np.ascontiguousarray(
        np.column_stack(
            (
                base.group_starts[b],
                base.group_starts[b + 1],
                target.group_starts[t],
                target.group_starts[t + 1],
            )
        )
    )


class StreamBuffer:
    """Buffered events of one stream in one slot.

    Parameters
    ----------
    segments : sequence of (int, Segment)
        Numbered segments; a number is never used for other content.
    greatest_latest : int
        Greatest `latest` of all events so far, in µs.
    forgotten_below : int
        All events so far with this `latest` or a later one are here, in µs.
    """

    __slots__ = ("forgotten_below", "greatest_latest", "segments")

    def __init__(
        self,
        segments: Sequence[tuple[int, Segment]] = (),
        greatest_latest: int = UNKNOWN_MARK,
        forgotten_below: int = UNKNOWN_MARK,
    ) -> None:
        self.segments = list(segments)
        self.greatest_latest = greatest_latest
        self.forgotten_below = forgotten_below

    def __len__(self) -> int:
        return sum(len(segment) for _, segment in self.segments)

    @property
    def nbytes(self) -> int:
        """Memory of the columns, in bytes."""
        return sum(segment.nbytes for _, segment in self.segments)

    def age(self, segment: Segment | None, keep: int, number: int) -> int:
        """Add a block's events and remove what is not needed any more.

        Parameters
        ----------
        segment : Segment or None
            The block's events, if there are any.
        keep : int
            Keep value: events with a smaller `latest` need not be kept, in µs.
        number : int
            First number free for new segments.

        Returns
        -------
        int
            First number that is still free.
        """
        if segment is not None:
            self.greatest_latest = max(self.greatest_latest, segment.greatest_latest)
            if segment.greatest_latest >= keep:
                number = self.insert(segment, number, keep)
        # What comes later is kept for its own keep value, so only what has come may be missing.
        self.forgotten_below = max(self.forgotten_below, min(keep, self.greatest_latest + 1))
        return self.drop(keep, number)

    def insert(self, segment: Segment, number: int, keep: int) -> int:
        """Add a block's events and merge small young segments with it.

        Parameters
        ----------
        segment : Segment
            The block's events.
        number : int
            First number free for new segments.
        keep : int
            Keep value: events with a smaller `latest` are not taken along, in µs.

        Returns
        -------
        int
            First number that is still free.
        """
        young = [segment]
        size = len(segment)
        while self.segments:
            length = len(self.segments[-1][1])
            if length > 2 * size or length + size > FULL_SEGMENT_EVENTS:
                break
            young.append(self.segments.pop()[1])
            size += length
        whole = len(young) == 1 and segment.least_latest >= keep
        merged = segment if whole else Segment.merge(young[::-1], keep)
        if merged is not None:
            self.segments.append((number, merged))
            number += 1
        return number

    def drop(self, keep: int, number: int) -> int:
        """Remove events whose `latest` is below the keep value.

        A segment goes when all of it may go, and is rewritten when half of it may, so that at
        most as many events wait for removal as are needed.

        Parameters
        ----------
        keep : int
            Keep value, in µs.
        number : int
            First number free for new segments.

        Returns
        -------
        int
            First number that is still free.
        """
        kept: list[tuple[int, Segment]] = []
        for entry in self.segments:
            segment = entry[1]
            if segment.greatest_latest < keep:
                continue
            if segment.least_latest < keep:
                alive = int(np.count_nonzero(segment.latest >= keep))
                rewritten = Segment.merge([segment], keep) if 2 * alive <= len(segment) else None
                if rewritten is not None:
                    kept.append((number, rewritten))
                    number += 1
                    continue
            kept.append(entry)
        self.segments = kept
        return number
