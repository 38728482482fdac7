"""Parse chunks of a file or partition to events of its stream, as the job parses records."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import orjson

from cli.replay.columns import csv_columns
from cli.replay.options import EventPartition
from cli.replay.records import TopicRecords
from cli.replay.rows import CsvRows, JsonLines, TableRows
from correlation.parsing.records import Records
from correlation.parsing.stream_reader import StreamReader

if TYPE_CHECKING:
    from cli.replay.chunks import Chunk
    from cli.replay.options import Input
    from cli.replay.rows import Rows
    from correlation.buffers.events import Events
    from correlation.parsing.intake import Problem
    from correlation.resources.streams import Stream

# Max number of rows that are parsed at once.
_PART_ROWS = 512


class Taken(NamedTuple):
    """Result of parsing a chunk.

    Parameters
    ----------
    events
        Events in row order. Offsets of rows of a file are positions in the file. None: no events.
    rows
        Number of rows, without empty lines.
    size
        Number of bytes of the rows in the file, or number of offsets.
    rejected
        Number of rejected rows, by reason.
    first
        Description of the first rejected row, by reason.
    letters
        Rejected rows as JSON lines, if requested.
    filtered
        Number of rows that do not match the `where` of the stream.
    """

    events: Events | None
    rows: int
    size: int
    rejected: Counter[str]
    first: dict[str, str]
    letters: list[bytes]
    filtered: int = 0


class InputReader:
    """Parses chunks of one file or partition.

    Parameters
    ----------
    source, stream
        The file or partition, and the stream of its events.
    max_record_bytes
        Max length of a row or record; longer ones are rejected.
    letters
        Whether rejected rows are returned.
    """

    def __init__(
        self, source: Input, stream: Stream, max_record_bytes: int, *, letters: bool
    ) -> None:
        self._source = source
        self._stream = stream
        self._max_bytes = max_record_bytes
        self._letters = letters
        self._rows: Rows | None = None
        self._reader: StreamReader | None = None

    def read(self, chunk: Chunk) -> Taken:
        """Parse a chunk."""
        if self._rows is None or self._reader is None:
            self._rows = _rows_of(self._source, self._stream, chunk, self._max_bytes)
            self._reader = StreamReader(self._rows.stream)
        problems: list[tuple[int, Problem]] = []
        intake = self._reader.begin(self._source.partition)
        rows = self._rows.parse(chunk, lambda number, problem: problems.append((number, problem)))
        while part := list(islice(rows, _PART_ROWS)):
            problems += intake.add_columns(Records.from_rows(part))
        problems += intake.settle(partial(self._rows.positions, chunk))
        events = None
        if intake.rows:
            events = intake.to_events(*self._rows.positions(chunk, intake.rows))
        taken = self._summarise(chunk, self._rows, events, sorted(problems))
        return taken._replace(rows=taken.rows + intake.filtered, filtered=intake.filtered)

    def _summarise(
        self, chunk: Chunk, rows: Rows, events: Events | None, problems: list[tuple[int, Problem]]
    ) -> Taken:
        first: dict[str, str] = {}
        letters = []
        for number, (reason, detail) in problems:
            if self._letters or reason.value not in first:
                place = rows.place(chunk, number)
            if reason.value not in first:
                ((kind, at),) = place.items()
                first[reason.value] = f"{self._source}, {kind} {at}: {detail}"
            if self._letters:
                letter = {
                    **self._source.place,
                    "stream": self._stream.name,
                    **place,
                    "reason": reason.value,
                    "detail": detail,
                    **rows.shown(chunk, number),
                }
                letters.append(orjson.dumps(letter, default=str))
        return Taken(
            events=events,
            rows=(len(events) if events is not None else 0) + len(problems),
            size=chunk.size,
            rejected=Counter(problem.reason.value for _, problem in problems),
            first=first,
            letters=letters,
        )


def _rows_of(source: Input, stream: Stream, chunk: Chunk, max_bytes: int) -> Rows:
    """Return the parser of an input's rows; all of its chunks have the columns of `chunk`."""
    if isinstance(source, EventPartition):
        return TopicRecords(stream, max_bytes)
    if source.format == "jsonl":
        return JsonLines(stream, max_bytes)
    if source.format == "csv":
        return CsvRows(stream, csv_columns(source.path, stream, chunk.header), max_bytes)
    return TableRows(source, stream, chunk.table.schema)
