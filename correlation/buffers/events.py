"""Events as columns: the form in which they are sent, buffered and correlated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import (
    BytesColumn,
    Column,
    Columns,
    DictionaryColumn,
    Int64s,
    concat_columns,
    take_columns,
)
from correlation.buffers.packing import pack_columns, unpack_columns

# Prefix of packed columns that a stream declares.
_BUFFERED = "column."


@dataclass(frozen=True, slots=True)
class Events:
    """Events of one stream, as columns of equal length n.

    Parameters
    ----------
    stream : str
        Name of the stream.
    key, id : BytesColumn
        Join key and id of each event.
    earliest, latest : int64[n]
        The interval of possible times, in µs since 1970.
    partition : int32[n]
        Kafka partition.
    offset : int64[n]
        Kafka offset.
    record_timestamp_us : int64[n]
        Kafka's timestamp of the record, in µs.
    columns : mapping of name to column
        Columns that the stream declares; they are buffered with the events.
    shape : DictionaryColumn or None
        Distribution of the time on the interval: `Histogram.shape_bytes`, missing if uniform. None
        if all events are uniform.
    """

    stream: str
    key: BytesColumn
    id: BytesColumn
    earliest: Int64s
    latest: Int64s
    partition: NDArray[np.int32]
    offset: Int64s
    record_timestamp_us: Int64s
    shape: DictionaryColumn | None = None
    columns: Columns = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.latest)

    def take(self, rows: Int64s) -> Events:
        """Return the events at the given rows, in the order of `rows`."""
        return Events(
            self.stream,
            self.key.take(rows),
            self.id.take(rows),
            self.earliest[rows],
            self.latest[rows],
            self.partition[rows],
            self.offset[rows],
            self.record_timestamp_us[rows],
            None if self.shape is None else self.shape.take(rows),
            take_columns(self.columns, rows),
        )

    @classmethod
    def concat(cls, parts: Sequence[Events]) -> Events:
        """Concatenate events of one stream."""
        first = parts[0]
        if len(parts) == 1:
            return first
        return cls(
            first.stream,
            BytesColumn.concat([part.key for part in parts]),
            BytesColumn.concat([part.id for part in parts]),
            np.concatenate([part.earliest for part in parts]),
            np.concatenate([part.latest for part in parts]),
            np.concatenate([part.partition for part in parts]),
            np.concatenate([part.offset for part in parts]),
            np.concatenate([part.record_timestamp_us for part in parts]),
            shape=join_shapes(parts),
            columns=concat_columns([part.columns for part in parts], [*map(len, parts)]),
        )

    def to_bytes(self) -> bytes:
        """Write the events as one byte string."""
        columns: dict[str, Column] = {
            "key": self.key,
            "id": self.id,
            "earliest": self.earliest,
            "latest": self.latest,
            "partition": self.partition,
            "offset": self.offset,
            "record_timestamp_us": self.record_timestamp_us,
        }
        columns |= optional_columns(self.shape, self.columns)
        return pack_columns(columns, {"stream": self.stream})

    @classmethod
    def from_bytes(cls, blob: bytes) -> Events:
        """Read the output of `to_bytes`."""
        columns, meta = unpack_columns(blob)
        shape, buffered = pop_optional(columns)
        return cls(
            stream=meta["stream"],
            **cast("dict[str, Any]", columns),
            shape=shape,
            columns=buffered,
        )

    @classmethod
    def from_rows(
        cls, stream: str, rows: Iterable[tuple[bytes, bytes, int, int, int, int, int]]
    ) -> Events:
        """Build events from rows of key, id, earliest, latest, partition, offset, timestamp."""
        columns = list(zip(*rows, strict=True)) or [()] * 7
        return cls(
            stream,
            BytesColumn.from_list(columns[0]),
            BytesColumn.from_list(columns[1]),
            np.array(columns[2], np.int64),
            np.array(columns[3], np.int64),
            np.array(columns[4], np.int32),
            np.array(columns[5], np.int64),
            np.array(columns[6], np.int64),
        )


class Parts(Protocol):
    """Events or segments: objects with shapes and a length."""

    @property
    def shape(self) -> DictionaryColumn | None:
        """As in `Events`."""

    def __len__(self) -> int: ...


def join_shapes(parts: Sequence[Parts]) -> DictionaryColumn | None:
    """Concatenate the shapes of events; None: all events are intervals."""
    shapes = [{} if it.shape is None else {"shape": it.shape} for it in parts]
    joined = concat_columns(shapes, [*map(len, parts)]).get("shape")
    return cast("DictionaryColumn | None", joined)


def optional_columns(shape: DictionaryColumn | None, columns: Columns) -> dict[str, Column]:
    """Return the columns in which shapes and buffered columns are packed."""
    packed: dict[str, Column] = {} if shape is None else {"shape": shape}
    return packed | {f"{_BUFFERED}{name}": column for name, column in columns.items()}


def pop_optional(packed: dict[str, Column]) -> tuple[DictionaryColumn | None, dict[str, Column]]:
    """Remove and return the columns that `optional_columns` added to the packed columns."""
    shape = cast("DictionaryColumn | None", packed.pop("shape", None))
    names = [name for name in packed if name.startswith(_BUFFERED)]
    return shape, {name.removeprefix(_BUFFERED): packed.pop(name) for name in names}
