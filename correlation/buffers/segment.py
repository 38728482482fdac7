"""Segment: buffered events of a stream, sorted so that base events find their target events."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import cast

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import (
    BytesColumn,
    Columns,
    DictionaryColumn,
    Int64s,
    concat_columns,
    take_columns,
)
from correlation.buffers.events import Events, join_shapes, optional_columns, pop_optional
from correlation.buffers.grid import crossed_key
from correlation.buffers.numbering import Numbering
from correlation.buffers.packing import pack_columns, unpack_columns
from correlation.buffers.sorting import sort_groups
from correlation.buffers.sources import Source, Sources, cut_sources, join_sources
from correlation.limits import KEEP_NOTHING

_NO_COLUMNS: Columns = MappingProxyType({})


class Segment:
    """Immutable events of one stream, sorted by (join key, latest).

    Parameters
    ----------
    group_keys : BytesColumn
        The g join keys, in order of the groups.
    group_starts : int64[g + 1]
        Group i holds the rows group_starts[i] to group_starts[i + 1] - 1.
    earliest, latest : int64[n]
        Intervals in µs since 1970; `latest` ascends within a group.
    id : BytesColumn
        Ids of the events.
    late : bool[n]
        Whether each event was late.
    shape : DictionaryColumn or None
        As in `Events`.
    columns : mapping of name to column
        As in `Events`.
    sources : tuple of Source or None
        The records that are the events of the segment; None if unknown.
    """

    __slots__ = (
        "__weakref__",
        "_ascending",
        "_groups",
        "columns",
        "earliest",
        "group_keys",
        "group_starts",
        "id",
        "late",
        "latest",
        "max_latest",
        "max_uncertainty",
        "min_latest",
        "min_uncertainty",
        "shape",
        "sources",
    )

    def __init__(
        self,
        group_keys: BytesColumn,
        group_starts: Int64s,
        earliest: Int64s,
        latest: Int64s,
        id: BytesColumn,  # noqa: A002 - the event's field is called id
        late: NDArray[np.bool_],
        shape: DictionaryColumn | None = None,
        columns: Columns = _NO_COLUMNS,
        sources: Sources | None = None,
    ) -> None:
        self.group_keys = group_keys
        self.group_starts = group_starts
        self.earliest = earliest
        self.latest = latest
        self.id = id
        self.late = late
        self.shape = shape
        self.columns = columns
        self.sources = sources
        lengths = latest - earliest
        self.min_latest = int(latest.min())
        self.max_latest = int(latest.max())
        self.min_uncertainty = int(lengths.min())
        self.max_uncertainty = int(lengths.max())
        self._groups: dict[bytes, int] | None = None
        self._ascending: Int64s | None = None

    def __len__(self) -> int:
        return len(self.latest)

    @property
    def nbytes(self) -> int:
        """Memory of the columns, in bytes."""
        arrays = (self.group_starts, self.earliest, self.latest, self.late)
        shape = 0 if self.shape is None else self.shape.nbytes
        columns = self.group_keys.nbytes + self.id.nbytes + shape
        declared = sum(int(column.nbytes) for column in self.columns.values())
        return columns + declared + sum(array.nbytes for array in arrays)

    def count_from(self, times: Int64s) -> Int64s:
        """Count the events whose `latest` is at least each of the given times.

        It takes O(log n) per time. The first call with a time between `min_latest` and `max_latest`
        sorts a copy of `latest`, unless there is one group only.

        Parameters
        ----------
        times : int64[k]
            Times, in µs.

        Returns
        -------
        int64[k]
            Number of events for each time.
        """
        counts = np.where(times <= self.min_latest, np.int64(len(self)), np.int64(0))
        cut = (times > self.min_latest) & (times <= self.max_latest)
        if cut.any():
            if self._ascending is None:
                self._ascending = self.latest if len(self.group_keys) == 1 else np.sort(self.latest)
            counts[cut] = len(self) - np.searchsorted(self._ascending, times[cut])
        return counts

    def groups(self) -> dict[bytes, int]:
        """Return the group number of each join key."""
        if self._groups is None:
            self._groups = {key: group for group, key in enumerate(self.group_keys.to_list())}
        return self._groups

    def groups_of_rows(self, rows: Int64s) -> Int64s:
        """Return the group number of each of the given rows."""
        return np.searchsorted(self.group_starts, rows, side="right") - 1

    def key_of_rows(self, rows: Int64s) -> BytesColumn:
        """Return the join key of each of the given rows."""
        return self.group_keys.take(self.groups_of_rows(rows))

    @classmethod
    def from_events(
        cls, events: Events, late: NDArray[np.bool_], sources: Sources | None = None
    ) -> tuple[Segment, Int64s]:
        """Sort events into a segment.

        Parameters
        ----------
        events : Events
            Events, at least one.
        late : bool[n]
            Mask of the late events.
        sources : tuple of Source or None
            The records that are these events.

        Returns
        -------
        Segment, int64[n]
            The segment, and the row of `events` of each row of the segment.
        """
        codes, keys = _encode_keys(events.key)
        order, starts = sort_groups(codes, len(keys), events.latest)
        segment = cls(
            keys,
            starts,
            events.earliest[order],
            events.latest[order],
            events.id.take(order),
            late[order],
            None if events.shape is None else events.shape.take(order),
            take_columns(events.columns, order),
            sources,
        )
        return segment, order

    @classmethod
    def merge(
        cls, segments: Sequence[Segment], keep: int, forgotten_below: int = KEEP_NOTHING
    ) -> Segment | None:
        """Merge segments, without the events whose `latest` is below `keep`.

        Parameters
        ----------
        segments : sequence of Segment
            Segments of a buffer.
        keep : int
            Keep value, in µs.
        forgotten_below : int
            All events so far whose `latest` is at least this are in the buffer, in µs; unknown by
            default.
        """
        alive = [(segment, np.flatnonzero(segment.latest >= keep)) for segment in segments]
        parts = [segment.take(rows) for segment, rows in alive if len(rows)]
        if not parts:
            return None
        merged = cls.join(parts)[0]
        if merged.sources is not None:
            merged.sources = cut_sources(merged.sources, keep, forgotten_below)
        return merged

    def take(self, rows: Int64s) -> Segment:
        """Return a segment of the given rows.

        Parameters
        ----------
        rows : int64[k]
            Ascending row numbers, at least one.
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
            None if self.shape is None else self.shape.take(rows),
            take_columns(self.columns, rows),
            self.sources,
        )

    def replace_columns(self, columns: Columns) -> Segment:
        """Return the segment with other declared columns."""
        return Segment(
            self.group_keys,
            self.group_starts,
            self.earliest,
            self.latest,
            self.id,
            self.late,
            self.shape,
            columns,
            self.sources,
        )

    @classmethod
    def join(cls, segments: Sequence[Segment]) -> tuple[Segment, Int64s]:
        """Join segments into one segment.

        Parameters
        ----------
        segments : sequence of Segment
            Segments, at least one.

        Returns
        -------
        Segment, int64[n]
            The joined segment, and the position of each of its rows in the concatenation of the
            given segments.
        """
        if len(segments) == 1:
            return segments[0], np.arange(len(segments[0]))
        latest = np.concatenate([segment.latest for segment in segments])
        group_codes, keys = _encode_keys(BytesColumn.concat([it.group_keys for it in segments]))
        sizes = np.concatenate([np.diff(segment.group_starts) for segment in segments])
        codes = np.repeat(group_codes, sizes)
        order, starts = sort_groups(codes, len(keys), latest)
        shape = join_shapes(segments)
        columns = concat_columns([it.columns for it in segments], [*map(len, segments)])
        joined = cls(
            keys,
            starts,
            np.concatenate([segment.earliest for segment in segments])[order],
            latest[order],
            BytesColumn.concat([segment.id for segment in segments]).take(order),
            np.concatenate([segment.late for segment in segments])[order],
            None if shape is None else shape.take(order),
            take_columns(columns, order),
            join_sources(segment.sources for segment in segments),
        )
        return joined, order

    def to_bytes(self) -> bytes:
        """Write the segment as one byte string."""
        return pack_columns(
            {
                "group_keys": self.group_keys,
                "group_starts": self.group_starts,
                "earliest": self.earliest,
                "latest": self.latest,
                "id": self.id,
                "late": self.late,
                **optional_columns(self.shape, self.columns),
            },
            # A list, as keys of JSON objects are strings.
            {} if self.sources is None else {"sources": self.sources},
        )

    @classmethod
    def from_bytes(cls, blob: bytes) -> Segment:
        """Read the output of `to_bytes`."""
        columns, meta = unpack_columns(blob)
        # Earlier versions of this software did not store them.
        sources = meta.get("sources")
        shape, buffered = pop_optional(columns)
        return cls(
            cast("BytesColumn", columns["group_keys"]),
            cast("Int64s", columns["group_starts"]),
            cast("Int64s", columns["earliest"]),
            cast("Int64s", columns["latest"]),
            cast("BytesColumn", columns["id"]),
            cast("NDArray[np.bool_]", columns["late"]),
            shape,
            buffered,
            None if sources is None else tuple(Source(*it) for it in sources),
        )


def _encode_keys(keys: BytesColumn) -> tuple[Int64s, BytesColumn]:
    """Encode keys in order of first appearance: codes int64[n], and the g distinct keys."""
    numbering = Numbering()
    codes = numbering.number(keys.data, keys.offsets)
    return codes, BytesColumn(*numbering.values())


def match_groups(base: Segment, target: Segment, *, crossed: bool = False) -> Int64s:
    """Find the pairs of groups of two segments whose keys match.

    Parameters
    ----------
    base, target : Segment
        Segments with the same partitioning.
    crossed : bool
        If true, a key matches its crossed key, as in a grid; otherwise equal keys match.

    Returns
    -------
    int64[k, 4]
        Rows (base low, base high, target low, target high) of each matching key.
    """
    small, large = (
        (base, target) if len(base.group_keys) <= len(target.group_keys) else (target, base)
    )
    found = large.groups()
    keys = small.group_keys.to_list()
    if crossed:
        keys = [crossed_key(key) for key in keys]
    pairs = [(group, found[key]) for group, key in enumerate(keys) if key in found]
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
