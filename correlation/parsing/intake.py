"""Conversion of records to columns of events, for the job and for files.

The packages above parse the JSON, provide the positions of the records, and write rejected records
to the dead-letter topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from correlation.buffers.columns import (
    BytesColumn,
    Columns,
    DictionaryColumn,
    Int64s,
    SetsColumn,
)
from correlation.buffers.events import Events
from correlation.parsing.event_reader import EventReader
from correlation.parsing.token_reader import EventTokens
from correlation.reasons import Reason
from correlation.resources.streams import Stream
from correlation.resources.tokens import TOKENS_COLUMN

Positions = Callable[[Sequence[int]], tuple[Int64s, Int64s]]


class Problem(NamedTuple):
    """Reason for the rejection of a record: a reason code and a readable description."""

    reason: Reason
    detail: str


NO_VALUE = Problem(Reason.NULL_VALUE, "the record has no value")


def why_unreadable(value: bytes, error: ValueError) -> Problem:
    """Return the problem of a value that is not valid JSON.

    Parameters
    ----------
    value : bytes
        Value of the record.
    error : ValueError
        Error of the parser.
    """
    try:
        text = value.decode()
    except UnicodeDecodeError as wrong:
        return Problem(
            Reason.WRONG_ENCODING,
            f"the value is not valid UTF-8: {wrong.reason} at byte {wrong.start}",
        )
    if text.startswith("\N{BOM}"):
        return Problem(Reason.WRONG_ENCODING, "the value begins with a byte order mark")
    return Problem(Reason.MALFORMED_JSON, str(error))


def too_large(length: int, max_bytes: int) -> Problem:
    """Return the problem of a record that exceeds the maximum size, in bytes."""
    return Problem(Reason.TOO_LARGE, f"the record has {length} bytes; at most {max_bytes} are read")


def parse_values(
    rows: Iterable[int],
    values: Sequence[bytes | None],
    max_bytes: int,
    loads: Callable[[bytes], object],
    refuse: Callable[[int, Problem], None],
) -> Iterator[tuple[int, object]]:
    """Yield the row and the parsed JSON of each value.

    Values are yielded one by one: a list of all values would cost garbage collections.

    Parameters
    ----------
    rows : iterable of int
        Rows to parse.
    values : sequence of bytes or None
        Value of each row; None for a record without a value.
    max_bytes : int
        Max length of a value; longer values are refused without parsing.
    loads : callable
        Parser of JSON; raises ValueError for a value that is not JSON.
    refuse : callable
        Called with the row and the problem of each value that is not parsed.
    """
    for row in rows:
        value = values[row]
        if value is None:
            refuse(row, NO_VALUE)
        elif len(value) > max_bytes:
            refuse(row, too_large(len(value), max_bytes))
        else:
            try:
                parsed = loads(value)
            except ValueError as error:
                refuse(row, why_unreadable(value, error))
            else:
                yield row, parsed


class Intake:
    """Events of a stream read from one partition, as growing columns.

    Parameters
    ----------
    stream : Stream
        Stream with the topic, from which missing ids are built.
    read : callable
        Reader of its events (`compile_mapping`).
    partition : int
        Kafka partition, or the number of the file.
    """

    # Number of records that do not match the `where` of the stream; known after `settle`.
    filtered = 0

    __slots__ = (
        "_earliest",
        "_ids",
        "_keys",
        "_nameless",
        "_partition",
        "_read",
        "_shapes",
        "_tokens",
        "latest",
        "rows",
        "stream",
    )

    def __init__(self, stream: Stream, read: EventReader, partition: int) -> None:
        self.stream = stream
        self.rows: list[int] = []
        self.latest: list[int] = []
        self._read = read
        self._partition = partition
        self._keys: list[bytes] = []
        self._ids: list[bytes] = []
        self._earliest: list[int] = []
        self._shapes: list[bytes | None] = []
        self._tokens: list[EventTokens] | None = None if stream.tokens is None else []
        self._nameless: list[int] = []

    def add(
        self,
        row: int,
        value: object,
        text: bytes | None,
        record_key: bytes | None,
        record_timestamp_us: int,
    ) -> None:
        """Add a record.

        Parameters
        ----------
        row : int
            Position of the record among the records that are read together.
        value : object
            Parsed value.
        text : bytes or None
            JSON of the value; None if the record is not JSON (`compile_mapping`).
        record_key : bytes or None
            Kafka key.
        record_timestamp_us : int
            Kafka's timestamp of the record, in µs.

        Raises
        ------
        RejectedEventError
            The record is not a valid event of the stream.
        """
        event = self._read(value, text, record_key, record_timestamp_us)
        event_id = event.id
        if event_id is None:
            self._nameless.append(len(self._ids))
            event_id = b""
        self.rows.append(row)
        self._ids.append(event_id)
        self._keys.append(event.key)
        self._earliest.append(event.earliest)
        self.latest.append(event.latest)
        self._shapes.append(event.shape)
        if self._tokens is not None:
            self._tokens.append(event.tokens)

    def settle(self, positions: Positions) -> Iterable[tuple[int, Problem]]:  # noqa: ARG002 - for streams with `where`
        """Remove the records that do not match the stream's `where`, after the last record.

        Parameters
        ----------
        positions : callable
            Returns the Kafka offsets and timestamps (in µs) of rows: int64[n] each.

        Returns
        -------
        iterable of (int, Problem)
            Rows and problems of matching records that `add` could not reject before.
        """
        return ()

    def to_events(
        self,
        offset: Int64s,
        record_timestamp_us: Int64s,
        extra: Mapping[str, BytesColumn] | None = None,
        columns: Columns | None = None,
    ) -> Events:
        """Return the added events, one for each of `rows`.

        Parameters
        ----------
        offset, record_timestamp_us : int64[n]
            Kafka offset and timestamp of each event.
        extra : mapping of name to BytesColumn
            Additional columns (`Events.extra`).
        columns : mapping of name to column
            Buffered columns (`Events.columns`).
        """
        for place in self._nameless:
            name = f"{self.stream.topic}-{self._partition}-{offset[place]}"
            self._ids[place] = name.encode()
        declared = dict(columns or {})
        if self._tokens is not None:
            declared[TOKENS_COLUMN] = SetsColumn.from_list(self._tokens)
        return Events(
            self.stream.name,
            BytesColumn.from_list(self._keys),
            BytesColumn.from_list(self._ids),
            np.array(self._earliest, np.int64),
            np.array(self.latest, np.int64),
            np.full(len(self.rows), self._partition, np.int32),
            offset,
            record_timestamp_us,
            extra or {},
            DictionaryColumn.from_list(self._shapes) if any(self._shapes) else None,
            declared,
        )

    def _select(self, places: Sequence[int]) -> None:
        """Keep only the events at the given places, in ascending order."""
        nameless = set(self._nameless)
        self._nameless = [new for new, old in enumerate(places) if old in nameless]
        for name in ("rows", "latest", "_keys", "_ids", "_earliest", "_shapes", "_tokens"):
            values = getattr(self, name)
            if values is not None:
                setattr(self, name, [values[place] for place in places])
