"""Parsed records of one partition, and the fields of many records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from correlation.buffers.columns import Int64s

if TYPE_CHECKING:
    from correlation.resources.paths import Path

# Parsed JSON objects.
Objects = Sequence[Mapping[str, object]]
# A record that has the fields of no event.
_NO_FIELDS: Mapping[str, object] = {}


class Records(NamedTuple):
    """Parsed records of one partition, in the order of their rows; n values in each column.

    Parameters
    ----------
    rows : int64[n]
        Position of each record among the records that are read together.
    values : sequence of object
        Parsed values.
    texts : sequence of bytes or None
        JSON of the values; None for a record that is not JSON (`compile_mapping`).
    keys : sequence of bytes or None
        Kafka keys.
    timestamps_us : int64[n]
        Kafka's timestamps, in µs.
    """

    rows: Int64s
    values: Sequence[object]
    texts: Sequence[bytes | None]
    keys: Sequence[bytes | None]
    timestamps_us: Int64s

    @classmethod
    def from_rows(
        cls, rows: Iterable[tuple[int, object, bytes | None, bytes | None, int]]
    ) -> Records:
        """Build the columns from rows of row, value, text, key and timestamp; at least one."""
        places, values, texts, keys, timestamps_us = zip(*rows, strict=True)
        return cls(
            np.array(places, np.int64), values, texts, keys, np.array(timestamps_us, np.int64)
        )

    def at(self, place: int) -> tuple[int, object, bytes | None, bytes | None, int]:
        """Return a record: its row, value, text, key and timestamp."""
        return (
            int(self.rows[place]),
            self.values[place],
            self.texts[place],
            self.keys[place],
            int(self.timestamps_us[place]),
        )

    def take(self, places: Sequence[int]) -> Records:
        """Return the records at the given places, in ascending order."""
        return Records(
            self.rows[places],
            [self.values[place] for place in places],
            [self.texts[place] for place in places],
            [self.keys[place] for place in places],
            self.timestamps_us[places],
        )

    def objects(self) -> Objects:
        """Return the values, with an empty object for each value that is not an object."""
        if types_of(self.values) == {dict}:
            return cast("Objects", self.values)
        return [value if isinstance(value, dict) else _NO_FIELDS for value in self.values]


def column_at(objects: Objects, path: Path) -> list[Any]:
    """Return the field of each record at a path; None if it is null or missing."""
    first, *rest = path
    found: list[Any] = [value.get(first) for value in objects]
    for part in rest:
        found = [it.get(part) if isinstance(it, dict) else None for it in found]
    return found


def types_of(column: Sequence[object]) -> set[type]:
    """Return the types of the values of a column."""
    return set(map(type, column))
