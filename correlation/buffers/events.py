"""Events as columns: the shape in which they travel, wait and are correlated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import (
    BytesColumn,
    Column,
    DictionaryColumn,
    Int64s,
    pack_columns,
    unpack_columns,
)


@dataclass(frozen=True, slots=True)
class Events:
    """Some events of one stream, as columns of equal length n.

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
    extra : mapping of name to BytesColumn
        More columns that travel with a block and are not buffered.
    shape : DictionaryColumn or None
        How the time is distributed over the interval: `Histogram.shape_bytes`, none where
        uniformly. None: so are all.
    """

    stream: str
    key: BytesColumn
    id: BytesColumn
    earliest: Int64s
    latest: Int64s
    partition: NDArray[np.int32]
    offset: Int64s
    record_timestamp_us: Int64s
    extra: Mapping[str, BytesColumn] = field(default_factory=dict)
    shape: DictionaryColumn | None = None

    def __len__(self) -> int:
        return len(self.latest)

    def take(self, rows: Int64s) -> Events:
        """Give the events at the given rows, in their order."""
        return Events(
            self.stream,
            self.key.take(rows),
            self.id.take(rows),
            self.earliest[rows],
            self.latest[rows],
            self.partition[rows],
            self.offset[rows],
            self.record_timestamp_us[rows],
            {name: column.take(rows) for name, column in self.extra.items()},
            None if self.shape is None else self.shape.take(rows),
        )

    @classmethod
    def concat(cls, parts: Sequence[Events]) -> Events:
        """Put events of one stream one after the other."""
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
            {
                name: BytesColumn.concat([part.extra[name] for part in parts])
                for name in first.extra
            },
            concat_shapes([part.shape for part in parts], [len(part) for part in parts]),
        )

    def to_bytes(self) -> bytes:
        """Write the events into one byte string."""
        columns: dict[str, Column] = {
            "key": self.key,
            "id": self.id,
            "earliest": self.earliest,
            "latest": self.latest,
            "partition": self.partition,
            "offset": self.offset,
            "record_timestamp_us": self.record_timestamp_us,
        }
        columns |= {f"extra.{name}": column for name, column in self.extra.items()}
        columns |= shape_columns(self.shape)
        return pack_columns(columns, {"stream": self.stream})

    @classmethod
    def from_bytes(cls, blob: bytes) -> Events:
        """Read what `to_bytes` wrote."""
        columns, meta = unpack_columns(blob)
        shape = pop_shape(columns)
        extra = {
            name.removeprefix("extra."): cast("BytesColumn", columns.pop(name))
            for name in list(columns)
            if name.startswith("extra.")
        }
        return cls(
            stream=meta["stream"], **cast("dict[str, Any]", columns), extra=extra, shape=shape
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


def concat_shapes(
    shapes: Sequence[DictionaryColumn | None], sizes: Sequence[int]
) -> DictionaryColumn | None:
    """Put the shapes of events one after the other; None stands for intervals throughout.

    Parameters
    ----------
    shapes : sequence of DictionaryColumn or None
        Of each part.
    sizes : sequence of int
        Number of events of each part.
    """
    if all(shape is None for shape in shapes):
        return None
    none = BytesColumn.from_list([])
    return DictionaryColumn.concat(
        [
            DictionaryColumn(np.full(size, -1, np.int32), none) if shape is None else shape
            for shape, size in zip(shapes, sizes, strict=True)
        ]
    )


def shape_columns(shape: DictionaryColumn | None) -> dict[str, Column]:
    """Give the columns in which shapes are packed."""
    return {} if shape is None else {"shape.codes": shape.codes, "shape.values": shape.values}


def pop_shape(columns: dict[str, Column]) -> DictionaryColumn | None:
    """Take what `shape_columns` gave out of the unpacked columns."""
    if "shape.codes" not in columns:
        return None
    codes, values = columns.pop("shape.codes"), columns.pop("shape.values")
    return DictionaryColumn(cast("NDArray[np.int32]", codes), cast("BytesColumn", values))
