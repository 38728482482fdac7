"""Columns of a CSV or Parquet file for the fields that a stream's mapping names.

The field at path `a.b` is the column `a.b`, or the field `b` of the struct column `a` in Parquet.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from cli.errors import UsageError
from correlation.resources.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path as FilePath

    from correlation.resources.attributes import Attribute
    from correlation.resources.paths import Path
    from correlation.resources.tokens import Tokens

_SUFFIX = "_path"
# Fields that are times or durations; the others are ids, keys and names, which stay strings.
_TIMES = frozenset({"time", "earliest", "latest", "begin", "end", "detected", "before", "after"})
# The buckets of a histogram.
_LIST = "histogram"
_LISTED_COLUMNS = 20
# Types of attributes whose cells are numbers.
_NUMBERS = frozenset({"integer", "number"})


class CsvColumn(NamedTuple):
    """A column of a CSV file, for a field of the mapping, an attribute or the tokens.

    Parameters
    ----------
    place
        Index of the column.
    path
        Path of the cell's value in the record.
    is_number
        Whether cells that are JSON numbers are read as numbers.
    is_list
        Whether cells that are JSON lists are read as lists.
    is_boolean
        Whether the cells true and false are read as booleans.
    is_tokens
        Whether cells that are JSON lists are read as lists of tokens.
    """

    place: int
    path: Path
    is_number: bool
    is_list: bool
    is_boolean: bool = False
    is_tokens: bool = False


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Columns of a Parquet file.

    Parameters
    ----------
    names
        Names of the columns that are read.
    moved
        Columns whose path in the record differs from their name: (name, path).
    stream
        The stream, with the time format of the file: ISO 8601 for timestamp columns.
    """

    names: tuple[str, ...]
    moved: tuple[tuple[str, Path], ...]
    stream: Stream


def csv_columns(file: FilePath, stream: Stream, header: Sequence[str]) -> list[CsvColumn]:
    """Find the columns of a CSV file that make up a record of a stream.

    Parameters
    ----------
    file
        Path that the error names.
    stream
        Stream with its mapping.
    header
        Names of the columns.

    Raises
    ------
    UsageError
        A column that the mapping names is missing or repeated.
    """
    mapping = stream.mapping
    epoch = mapping.format.startswith("epoch")
    canonical = mapping.form == "canonical"
    found = []
    named = _named_paths(stream)
    for field, path in named:
        name = ".".join(path)
        _check_column(file, stream, name, header)
        place, is_list = header.index(name), field == _LIST
        found.append(CsvColumn(place, path, field in _TIMES and epoch, is_list))
    if canonical:
        taken = {column.place for column in found}
        for place, name in enumerate(header):
            if place not in taken:
                found.append(CsvColumn(place, (name,), name in _TIMES, name == _LIST))
    for attribute in stream.attributes:
        if attribute.record_field is None:
            name = ".".join(attribute.path)
            _check_column(file, stream, name, header, f"attribute {attribute.name}")
            place, path = header.index(name), _path_in_csv(attribute)
            is_number, is_boolean = attribute.type in _NUMBERS, attribute.type == "boolean"
            found.append(CsvColumn(place, path, is_number, is_list=False, is_boolean=is_boolean))
    if stream.tokens is not None:
        (name,) = path = _tokens_in_csv(stream.tokens)
        _check_column(file, stream, name, header, "tokens")
        place, is_tokens = header.index(name), stream.tokens.reads_list
        found.append(CsvColumn(place, path, is_number=False, is_list=False, is_tokens=is_tokens))
    return found


def as_read_from_csv(stream: Stream) -> Stream:
    """Return the stream with the paths that attributes and tokens have in the records of CSV rows.

    The cells of an attribute are read by its type, and the same column may also be read otherwise,
    for instance as an id.
    """
    return replace(
        stream,
        tokens=None
        if stream.tokens is None
        else replace(stream.tokens, path=_tokens_in_csv(stream.tokens)),
        attributes=tuple(
            it if it.record_field else replace(it, path=_path_in_csv(it))
            for it in stream.attributes
        ),
    )


def _path_in_csv(attribute: Attribute) -> Path:
    return (attribute.column_name,)


def _tokens_in_csv(tokens: Tokens) -> Path:
    """Return the path of the tokens in the record of a CSV row: the name of their column."""
    return (".".join(tokens.path),)


def table_columns(file: FilePath, stream: Stream, schema: pa.Schema) -> TableColumns:
    """Find the columns of a Parquet file that make up a record of a stream.

    Raises
    ------
    UsageError
        A column that the mapping names is missing or repeated, or only some of the time columns
        are timestamps.
    """
    mapping = stream.mapping
    names = list(schema.names) if mapping.form == "canonical" else []
    moved = []
    stamps = []
    for field, path in _named_paths(stream):
        kind = _type_at(schema, path)
        name = path[0]
        if kind is None:
            name = ".".join(path)
            _check_column(file, stream, name, schema.names)
            kind = schema.field(name).type
            if len(path) > 1:
                moved.append((name, path))
        names.append(name)
        if field in _TIMES:
            stamps.append(_is_moment(kind))
        elif field == _LIST:
            stamps.append(_is_moment(_bound_type(kind)))
    for name, path in _declared_columns(file, stream, schema):
        names.append(name)
        if name != path[0]:
            moved.append((name, path))
    if any(stamps) and not all(stamps):
        raise UsageError(
            f"{file}: only some time columns of stream {stream.name} are timestamps; write all of "
            "them with the same type"
        )
    if any(stamps):
        stream = replace(stream, mapping=replace(mapping, format="iso8601"))
    return TableColumns(tuple(dict.fromkeys(names)), tuple(moved), stream)


def _declared_columns(
    file: FilePath, stream: Stream, schema: pa.Schema
) -> Iterator[tuple[str, Path]]:
    """Yield the column of each attribute and of the tokens, and the path.

    The column is a struct, or has the path as its name.
    """
    read = [(it.path, f"attribute {it.name}") for it in stream.attributes if not it.record_field]
    if stream.tokens is not None:
        read.append((stream.tokens.path, "tokens"))
    for path, user in read:
        name = path[0]
        if _type_at(schema, path) is None:
            name = ".".join(path)
            _check_column(file, stream, name, schema.names, user)
        yield name, path


def place_at(record: dict[str, object], path: Path, value: object) -> None:
    """Set a value at a path in a record."""
    *above, last = path
    for name in above:
        inner = record.setdefault(name, {})
        if not isinstance(inner, dict):
            return
        record = inner
    record[last] = value


def _named_paths(stream: Stream) -> list[tuple[str, Path]]:
    """Return the fields that the mapping names, with their paths; the key only if it is used."""
    mapping = stream.mapping
    found = []
    for it in fields(mapping):
        path = getattr(mapping, it.name) if it.name.endswith(_SUFFIX) else None
        field = it.name.removesuffix(_SUFFIX)
        if path is not None and (field != "key" or stream.partitioning.by == "key"):
            found.append((field, path))
    return found


def _type_at(schema: pa.Schema, path: Path) -> pa.DataType | None:
    """Return the type of the field at a path through structs; None if it is missing."""
    first, *rest = path
    if schema.names.count(first) != 1:
        return None
    kind = schema.field(first).type
    for name in rest:
        place = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
        if place < 0:
            return None
        kind = kind.field(place).type
    return kind


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _bound_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the bounds in a list of bucket structs; otherwise the null type."""
    bucket = kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else None
    if bucket is None or not pa.types.is_struct(bucket) or bucket.get_field_index("lo") < 0:
        return pa.null()
    return bucket.field("lo").type


def _check_column(
    file: FilePath, stream: Stream, name: str, names: Sequence[str], user: str = "the mapping"
) -> None:
    count = names.count(name)
    if count == 1:
        return
    problem = "is missing" if count == 0 else f"is repeated {count} times"
    raise UsageError(
        f"{file}: column {name!r} of {user} of stream {stream.name} {problem}; "
        f"columns: {_listed(names)}"
    )


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = len(listed) - _LISTED_COLUMNS
    shown = ", ".join(listed[:_LISTED_COLUMNS])
    return f"{shown} and {more} more" if more > 0 else shown
