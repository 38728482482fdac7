"""Attributes of buffered events as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import repeat
from typing import cast

import numpy as np

from correlation.buffers.columns import Columns, DictionaryColumn, Int64s
from correlation.resources.attributes import column_name


def encode_attributes(columns: Columns, rows: Int64s, names: Sequence[str]) -> list[bytes]:
    """Return the attributes of events as JSON objects.

    The values are written as they are buffered, which is canonical JSON, without decoding.

    Parameters
    ----------
    columns : mapping of name to column
        Buffered columns of a segment.
    rows : int64[k]
        Rows of the events.
    names : sequence of str
        Declared attributes, one or more; a missing value becomes null.

    Returns
    -------
    list of bytes
        One object per row, in UTF-8, with all declared attributes.
    """
    parts = [
        [json.dumps(name).encode() + b":" + value for value in encode_values(columns, rows, name)]
        for name in names
    ]
    return [b"{" + b",".join(part) + b"}" for part in zip(*parts, strict=True)]


def encode_values(columns: Columns, rows: Int64s, name: str) -> list[bytes]:
    """Return the values of one attribute as JSON; see `encode_attributes`."""
    column = columns.get(column_name(name))
    if column is None:
        return list(repeat(b"null", len(rows)))
    taken = cast("DictionaryColumn", column).take(rows)
    values = [*taken.values.to_list(), b"null"]
    return [values[code] for code in taken.codes.tolist()]


def attribute_bytes(columns: Columns, n: int, names: Sequence[str]) -> Int64s:
    """Return the JSON size of the attributes of each of n events: int64[n], in bytes."""
    sizes: Int64s = np.zeros(n, np.int64)
    for name in names:
        column = cast("DictionaryColumn | None", columns.get(column_name(name)))
        if column is None:
            sizes = sizes + len(b"null,")
        else:
            lengths = np.append(np.diff(column.values.offsets), len(b"null"))
            sizes = sizes + lengths[column.codes] + len(b",")
    return sizes
