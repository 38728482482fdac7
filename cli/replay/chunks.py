"""Split files of events into chunks of whole, unparsed rows, a few chunks at a time in memory.

A chunk is the unit of work of one process; topics are read in chunks too. Rows over the length
limit are skipped here, so that a file without line breaks does not fill the memory.
"""

from __future__ import annotations

import csv
import sys
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from cli.errors import UsageError
from cli.replay.columns import csv_columns, table_columns
from cli.replay.options import STDIN

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from cli.replay.options import EventFile
    from correlation.resources.streams import Stream

_MAX_ROWS = 16_384
_MAX_BYTES = 4 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class TooLong:
    """Placeholder for a row over the length limit; `nbytes` is its length."""

    nbytes: int

    def __len__(self) -> int:
        return self.nbytes


Line = bytes | TooLong


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of a file, or records of a partition.

    Parameters
    ----------
    first
        Position of the first row in the file, from 0, without the header of a CSV file.
    line
        Line number of the first row, from 1; of a Parquet file, its row number.
    size
        Number of bytes of the rows in the file, or number of offsets.
    lines
        Unparsed rows of a text file.
    table
        Rows of a Parquet file, or records of a topic (`records.SCHEMA`); None for a text file.
    header
        Names of the columns of a CSV file.
    lost
        Number of records of a topic that were removed before they were read.
    """

    first: int
    line: int
    size: int
    lines: Sequence[Line] = ()
    table: pa.RecordBatch = None
    header: tuple[str, ...] = ()
    lost: int = 0


def read_chunks(
    file: EventFile, stream: Stream, max_record_bytes: int, *, whole_rows: bool
) -> Generator[Chunk]:
    """Read a file in chunks.

    Parameters
    ----------
    file
        The file.
    stream
        Stream whose mapping names the columns of a CSV or Parquet file.
    max_record_bytes
        Max length of a row; longer rows are not read.
    whole_rows
        Read also the columns of a Parquet file that the mapping does not name.

    Raises
    ------
    UsageError
        The file cannot be read, does not have its format, or lacks a column.
    """
    try:
        if file.format == "parquet":
            yield from _read_table(file, stream, whole_rows=whole_rows)
            return
        with _opened(file) as opened:
            lines = _read_lines(opened, max_record_bytes)
            if file.format == "csv":
                allow_long_cells(max_record_bytes)
                yield from _read_csv(file, stream, lines, max_record_bytes)
            else:
                yield from _cut(lines)
    except (OSError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"{file.path} cannot be read: {reason}") from error


@contextmanager
def _opened(file: EventFile) -> Iterator[BinaryIO]:
    if file.path == STDIN:
        yield sys.stdin.buffer
        return
    with file.path.open("rb") as opened:
        yield opened


def _read_lines(opened: BinaryIO, max_bytes: int) -> Iterator[list[Line]]:
    """Yield lists of the lines of a file, without line breaks."""
    # A carriage return at the end of a line does not count.
    limit = max_bytes + 1
    rest, passed = b"", 0
    while piece := opened.read(_PIECE_BYTES):
        begin, *lines = piece.split(b"\n")
        if passed:
            passed += len(begin)
        else:
            rest += begin
        if lines:
            first: Line = TooLong(passed) if passed else rest
            rest, passed = lines.pop(), 0
            found = [first, *lines]
            if max(map(len, found)) > limit:
                found = [it if len(it) <= limit else TooLong(len(it)) for it in found]
            yield found
        if len(rest) > limit:
            rest, passed = b"", len(rest)
    if passed:
        yield [TooLong(passed)]
    elif rest:
        yield [rest]


def _cut(
    pieces: Iterable[list[Line]], line: int = 1, header: tuple[str, ...] = ()
) -> Iterator[Chunk]:
    """Group rows into chunks of bounded size."""
    first = 0
    waiting: list[Line] = []
    size = 0

    def chunk(rows: list[Line]) -> Chunk:
        nonlocal first, line
        made = Chunk(first, line, sum(map(len, rows)) + len(rows), rows, header=header)
        first += len(rows)
        line += sum(map(line_count, rows)) if header else len(rows)
        return made

    for piece in pieces:
        waiting += piece
        size += sum(map(len, piece))
        while len(waiting) >= _MAX_ROWS or size >= _MAX_BYTES:
            rows, waiting = waiting[:_MAX_ROWS], waiting[_MAX_ROWS:]
            size = sum(map(len, waiting))
            yield chunk(rows)
    if waiting:
        yield chunk(waiting)


def line_count(row: Line) -> int:
    """Return the number of lines of a row."""
    return row.count(b"\n") + 1 if isinstance(row, bytes) else 1


def allow_long_cells(max_bytes: int) -> None:
    """Set the max length of a CSV cell to that of a row, for the whole process."""
    csv.field_size_limit(max(csv.field_size_limit(), max_bytes))


def _read_csv(
    file: EventFile, stream: Stream, pieces: Iterator[list[Line]], max_bytes: int
) -> Iterator[Chunk]:
    piece = next(pieces, None)
    if piece is None:
        return
    header = _read_header(file, piece[0])
    csv_columns(file.path, stream, header)
    rows = _csv_rows(chain([piece[1:]], pieces), len(header), max_bytes)
    yield from _cut(rows, 2, header)


def _read_header(file: EventFile, line: Line) -> tuple[str, ...]:
    if not isinstance(line, bytes):
        raise UsageError(
            f"{file.path}: the header is too long, {line.nbytes} bytes; write the column "
            "names in the first line"
        )
    try:
        (names,) = csv.reader([line.removeprefix(_BOM).decode()], strict=True)
    except (ValueError, csv.Error) as error:
        raise UsageError(f"{file.path}: the header cannot be read: {error}") from error
    return tuple(name.strip() for name in names)


def _csv_rows(pieces: Iterator[list[Line]], width: int, max_bytes: int) -> Iterator[list[Line]]:
    """Join the lines of a row whose quoted cell contains a line break."""
    for piece in pieces:
        if not any(b'"' in line for line in piece if isinstance(line, bytes)):
            yield piece
            continue
        waiting = deque(piece)
        rows = []
        while waiting:
            rows.append(_csv_row(waiting, pieces, width, max_bytes))
        yield rows


def _csv_row(
    waiting: deque[Line], pieces: Iterator[list[Line]], width: int, max_bytes: int
) -> Line:
    """Remove and return the next row, which may span several lines.

    Lines are joined only if the row then has as many cells as the header. Otherwise the first line
    is a row of its own, which is rejected later: an unclosed quotation mark costs one line.
    """
    line = waiting.popleft()
    # The common case: no quotation marks, or an even number of them.
    if not isinstance(line, bytes) or line.count(b'"') % 2 == 0 or _has_cells(line, width):
        return line
    taken = [line]
    size = len(line)
    closed = False
    while not closed and size <= max_bytes:
        if not waiting:
            waiting.extend(next(pieces, ()))
        if not waiting or not isinstance(waiting[0], bytes):
            break
        more = waiting[0]
        waiting.popleft()
        taken.append(more)
        size += len(more)
        closed = more.count(b'"') % 2 == 1
    row = b"\n".join(taken)
    if closed and _has_cells(row, width):
        return row
    waiting.extendleft(reversed(taken[1:]))
    return line


def _has_cells(row: bytes, width: int) -> bool:
    try:
        rows = list(csv.reader([row.decode(errors="surrogateescape")], strict=True))
    except csv.Error:
        return False
    return len(rows) == 1 and len(rows[0]) == width


def _read_table(file: EventFile, stream: Stream, *, whole_rows: bool) -> Iterator[Chunk]:
    with pq.ParquetFile(file.path) as table:
        wanted = table_columns(file.path, stream, table.schema_arrow)
        columns = None if whole_rows else list(wanted.names)
        rows = table.metadata.num_rows
        size = file.size or 0
        first = 0
        for batch in table.iter_batches(_MAX_ROWS, columns=columns):
            count = batch.num_rows
            end = first + count
            nbytes = size * end // rows - size * first // rows
            yield Chunk(first, first + 1, nbytes, table=batch)
            first = end
