"""Parse chunks of a file to events of its stream, as the job parses Kafka records."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import orjson

from cli.replay.rows import rows_of
from correlation.errors import RejectedEventError
from correlation.parsing.intake import Problem, StreamReader

if TYPE_CHECKING:
    from cli.replay.chunks import Chunk
    from cli.replay.options import EventFile
    from cli.replay.rows import Rows
    from correlation.buffers.events import Events
    from correlation.resources.streams import Stream


class Taken(NamedTuple):
    """Result of parsing a chunk.

    Parameters
    ----------
    events
        Events in row order; their offsets are positions in the file. None: no events.
    rows
        Number of rows, without empty lines.
    nbytes
        Number of bytes of the rows in the file.
    rejected
        Number of rejected rows, by reason.
    first
        Description of the first rejected row, by reason.
    letters
        Rejected rows as JSON lines, if requested.
    """

    events: Events | None
    rows: int
    nbytes: int
    rejected: Counter[str]
    first: dict[str, str]
    letters: list[bytes]


class FileReader:
    """Parses chunks of one file.

    Parameters
    ----------
    file, stream
        The file and the stream of its events.
    most_record_bytes
        Max length of a row; longer rows are rejected.
    letters
        Whether rejected rows are returned.
    """

    def __init__(
        self, file: EventFile, stream: Stream, most_record_bytes: int, *, letters: bool
    ) -> None:
        self._file = file
        self._stream = stream
        self._most_bytes = most_record_bytes
        self._letters = letters
        self._rows: Rows | None = None
        self._reader: StreamReader | None = None

    def read(self, chunk: Chunk) -> Taken:
        """Parse a chunk."""
        if self._rows is None or self._reader is None:
            self._rows = rows_of(self._file, self._stream, chunk, self._most_bytes)
            self._reader = StreamReader(self._rows.stream)
        problems: list[tuple[int, Problem]] = []
        intake = self._reader.begin(self._file.partition)
        for number, value, text in self._rows.parse(
            chunk, lambda number, problem: problems.append((number, problem))
        ):
            try:
                # Rows of files have no Kafka record key and no Kafka timestamp.
                intake.add(number, value, text, None, 0)
            except RejectedEventError as error:
                problems.append((number, Problem(error.reason, error.detail)))
        events = None
        if intake.rows:
            offset = np.array(intake.rows, np.int64) + chunk.first
            events = intake.to_events(offset, np.zeros(len(offset), np.int64))
        return self._summarise(chunk, self._rows, events, sorted(problems))

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
                first[reason.value] = f"{self._file.path}, {kind} {at}: {detail}"
            if self._letters:
                letter = {
                    "file": str(self._file.path),
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
            nbytes=chunk.nbytes,
            rejected=Counter(problem.reason.value for _, problem in problems),
            first=first,
            letters=letters,
        )
