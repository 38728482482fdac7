"""Parse the rows of a chunk to records: JSON lines, CSV rows and Parquet rows.

Each format has one class with the same methods (`Rows`). A row that cannot be parsed is
passed to `refuse` and skipped.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa

from cli.replay.chunks import allow_long_cells, line_count
from cli.replay.columns import as_read_from_csv, place_at, table_columns
from correlation.errors import RejectedEventError
from correlation.parsing.intake import Problem, parse_values, too_large
from correlation.parsing.written_numbers import find_as_written
from correlation.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cli.replay.chunks import Chunk, Line
    from cli.replay.columns import CsvColumn
    from cli.replay.options import EventFile
    from correlation.buffers.columns import Int64s
    from correlation.resources.streams import Stream

    Refuse = Callable[[int, Problem], None]
    # Number in the chunk, the record, its JSON, if it has any, and Kafka's key and timestamp in µs.
    Row = tuple[int, object, bytes | None, bytes | None, int]

Record = dict[str, object]


class Rows(ABC):
    """Parser of the rows of an input."""

    stream: Stream

    @abstractmethod
    def parse(self, chunk: Chunk, refuse: Refuse) -> Iterator[Row]:
        """Yield each row of a chunk; rows without a record are skipped.

        Without JSON, a float has the value in the file. Rows of files have no key, and timestamp 0.
        """

    @abstractmethod
    def place(self, chunk: Chunk, number: int) -> dict[str, int]:
        """Return the line, row number or offset of a row."""

    @abstractmethod
    def shown(self, chunk: Chunk, number: int) -> Record:
        """Return a row unparsed, under `record`, as far as JSON can represent it."""

    def positions(self, chunk: Chunk, rows: Sequence[int]) -> tuple[Int64s, Int64s]:
        """Return the offset and Kafka's timestamp, in µs, of rows of a chunk."""
        return np.array(rows, np.int64) + chunk.first, np.zeros(len(rows), np.int64)


class JsonLines(Rows):
    """One JSON document per line; empty lines are skipped."""

    def __init__(self, stream: Stream, max_bytes: int) -> None:
        self.stream = stream
        self._max_bytes = max_bytes

    def parse(self, chunk: Chunk, refuse: Refuse) -> Iterator[Row]:
        """See `Rows.parse`."""
        values: list[bytes] = []
        for number, line in enumerate(chunk.lines):
            if isinstance(line, bytes):
                values.append(line.strip())
            else:
                values.append(b"")
                refuse(number, too_large(line.nbytes, self._max_bytes))
        rows = (number for number, value in enumerate(values) if value)
        for row, value in parse_values(rows, values, self._max_bytes, orjson.loads, refuse):
            yield row, value, values[row], None, 0

    def place(self, chunk: Chunk, number: int) -> dict[str, int]:
        """See `Rows.place`."""
        return {"line": chunk.line + number}

    def shown(self, chunk: Chunk, number: int) -> Record:
        """See `Rows.shown`."""
        return _shown_line(chunk.lines[number])


class CsvRows(Rows):
    """Cells in the order of a header; an empty cell is a missing field."""

    def __init__(self, stream: Stream, columns: Sequence[CsvColumn], max_bytes: int) -> None:
        self.stream = as_read_from_csv(stream)
        self._columns = [
            (it.place, it.path[0] if len(it.path) == 1 else None, it.path, _reader_of(it))
            for it in columns
        ]
        self._max_bytes = max_bytes
        allow_long_cells(max_bytes)

    def parse(self, chunk: Chunk, refuse: Refuse) -> Iterator[Row]:
        """See `Rows.parse`."""
        width = len(chunk.header)
        for number, cells in enumerate(self._cells(chunk.lines, refuse)):
            if not cells:
                continue
            if len(cells) != width:
                detail = f"{len(cells)} cells, the header has {width}"
                refuse(number, Problem(Reason.MALFORMED_ROW, detail))
                continue
            yield number, self._record(cells), None, None, 0

    def _cells(self, content: Sequence[Line], refuse: Refuse) -> Iterable[list[str]]:
        """Return the cells of each row; empty for a rejected row."""
        try:
            # The common case: every row can be parsed.
            texts = [line.decode() for line in content if isinstance(line, bytes)]
            rows = list(csv.reader(texts, strict=True))
            if len(rows) == len(content) and max(map(len, content)) <= self._max_bytes:
                return rows
        except (ValueError, csv.Error):
            pass
        return (self._cells_of(number, line, refuse) for number, line in enumerate(content))

    def _cells_of(self, number: int, line: Line, refuse: Refuse) -> list[str]:
        size = len(line.rstrip(b"\r\n")) if isinstance(line, bytes) else line.nbytes
        problem: Problem | None = None
        if not isinstance(line, bytes) or size > self._max_bytes:
            problem = too_large(size, self._max_bytes)
        else:
            try:
                rows = list(csv.reader([line.decode()], strict=True))
                if len(rows) == 1:
                    return rows[0]
                problem = Problem(Reason.MALFORMED_ROW, f"{len(rows)} rows on one line")
            except UnicodeDecodeError as wrong:
                detail = f"not UTF-8: {wrong.reason} at byte {wrong.start}"
                problem = Problem(Reason.WRONG_ENCODING, detail)
            except csv.Error as error:
                problem = Problem(Reason.MALFORMED_ROW, str(error))
        refuse(number, problem)
        return []

    def _record(self, cells: list[str]) -> Record:
        record: Record = {}
        for place, name, path, read in self._columns:
            cell = cells[place]
            if cell == "":
                continue
            value = cell if read is None else read(cell)
            if name is not None:
                record[name] = value
            else:
                place_at(record, path, value)
        return record

    def place(self, chunk: Chunk, number: int) -> dict[str, int]:
        """See `Rows.place`."""
        return {"line": chunk.line + sum(map(line_count, chunk.lines[:number]))}

    def shown(self, chunk: Chunk, number: int) -> Record:
        """See `Rows.shown`: the cells keyed by column, or the line if it cannot be parsed."""
        line = chunk.lines[number]
        cells = self._cells_of(number, line, lambda *_: None)
        if len(cells) != len(chunk.header):
            return _shown_line(line)
        return {"record": dict(zip(chunk.header, cells, strict=True))}


def _reader_of(column: CsvColumn) -> Callable[[str], object] | None:
    """Return the parser of a column's cells; None if they stay strings."""
    if column.is_list:
        return _as_list
    if column.is_boolean:
        return _as_boolean
    if column.is_tokens:
        return _as_tokens
    return _as_number if column.is_number else None


def _as_number(cell: str) -> object:
    """Return the number if a cell is a JSON number; otherwise the cell as a string."""
    value = _as_parsed(cell)
    return value if isinstance(value, int | Decimal) and not isinstance(value, bool) else cell


def _as_boolean(cell: str) -> object:
    """Return the boolean if a cell is true or false, in any case; otherwise the cell."""
    return {"true": True, "false": False}.get(cell.lower(), cell)


def _as_list(cell: str) -> object:
    """Return the list if a cell is a JSON list; otherwise the cell as a string."""
    value = _as_parsed(cell)
    return value if isinstance(value, list) else cell


def _as_tokens(cell: str) -> object:
    """Return the list if a cell is a JSON list, with integers as in JSON; otherwise the cell."""
    try:
        value = orjson.loads(cell)
    except orjson.JSONDecodeError:
        return cell
    return value if isinstance(value, list) else cell


def _as_parsed(cell: str) -> object:
    """Parse a cell as JSON with exact numbers; return None if it is not JSON."""
    try:
        return find_as_written(orjson.loads(cell), (), cell.encode())
    except (orjson.JSONDecodeError, RejectedEventError):
        return None


def _shown_line(line: Line) -> Record:
    if not isinstance(line, bytes):
        return {"record": None, "omitted_bytes": line.nbytes}
    return {"record": line.rstrip(b"\r\n").decode(errors="backslashreplace")}


class TableRows(Rows):
    """Rows of a Parquet file: structs become objects, timestamps and dates ISO 8601 strings."""

    def __init__(self, file: EventFile, stream: Stream, schema: pa.Schema) -> None:
        columns = table_columns(file.path, stream, schema)
        self.stream = columns.stream
        self._moved = columns.moved
        self._plain = all(map(_is_plain, schema.types))

    def parse(self, chunk: Chunk, refuse: Refuse) -> Iterator[Row]:
        """See `Rows.parse`."""
        try:
            records = chunk.table.to_pylist()
        except (ValueError, OverflowError, pa.ArrowException):
            # A timestamp is outside the range of Python's datetime.
            count = chunk.table.num_rows
            records = [_record_of(chunk.table, number) for number in range(count)]
        for number, record in enumerate(records):
            if isinstance(record, Problem):
                refuse(number, record)
                continue
            value = record if self._plain else _as_json(record)
            for name, path in self._moved:
                place_at(value, path, value.get(name))
            yield number, value, None, None, 0

    def place(self, chunk: Chunk, number: int) -> dict[str, int]:
        """See `Rows.place`."""
        return {"row": chunk.line + number}

    def shown(self, chunk: Chunk, number: int) -> Record:
        """See `Rows.shown`."""
        batch = chunk.table
        names = batch.schema.names
        cells = {name: _cell(batch.column(at)[number]) for at, name in enumerate(names)}
        return {"record": cells}


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether the Python values of a type are JSON values."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
    )


def _record_of(batch: pa.RecordBatch, number: int) -> Record | Problem:
    try:
        (record,) = batch.slice(number, 1).to_pylist()
        return dict(record)
    except (ValueError, OverflowError, pa.ArrowException) as error:
        return Problem(Reason.TIME_OUT_OF_RANGE, str(error))


def _cell(scalar: pa.Scalar) -> object:
    try:
        return _as_json(scalar.as_py())
    except (ValueError, OverflowError, pa.ArrowException):
        return scalar.cast(pa.string()).as_py()


def _as_json(value: Any) -> Any:  # noqa: ANN401 - any value of Arrow's
    """Convert a value to a JSON value; an unsupported value is unchanged and rejected later."""
    if isinstance(value, dict):
        return {name: _as_json(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_as_json(inner) for inner in value]
    # Includes timestamps: datetime is a subclass of date.
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else value
    return _as_text(value) if isinstance(value, bytes) else value


def _as_text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
