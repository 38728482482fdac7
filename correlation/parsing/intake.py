"""Conversion of records to columns of events, for the job and for files.

The packages above parse the JSON, provide the positions of the records, and write rejected records
to the dead-letter topic. `event_reader` reads a single record, `column_reader` the regular records
of a batch in columns, with the same outcome. `attribute_intake` adds attributes and the filter of
the stream, `token_reader` the tokens. A rejected record has a reason (`correlation.reasons`) and a
sentence.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np

from correlation.buffers.columns import (
    BytesColumn,
    Columns,
    DictionaryColumn,
    Int64s,
    SetsColumn,
)
from correlation.buffers.events import Events
from correlation.errors import RejectedEventError
from correlation.parsing.column_reader import ColumnReader, EventColumns
from correlation.parsing.event_reader import EventReader
from correlation.parsing.records import Records
from correlation.parsing.token_reader import TokenSet
from correlation.reasons import Reason
from correlation.resources.streams import Stream
from correlation.resources.tokens import TOKENS_COLUMN

Positions = Callable[[Sequence[int]], tuple[Int64s, Int64s]]


class Problem(NamedTuple):
    """Reason for the rejection of a record: a reason code and a readable description."""

    reason: Reason
    detail: str


# Min share of regular records with which adding them in parts is faster than one by one.
_REGULAR_SHARE = 0.75
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


def parse_records(
    records: Records,
    max_bytes: int,
    loads: Callable[[bytes], object],
    refuse: Callable[[int, Problem], None],
) -> Records:
    """Return the records that can be parsed, with the parsed JSON of their texts.

    Parameters
    ----------
    records : Records
        Records that are held in memory together; their values are ignored.
    max_bytes, loads, refuse
        As for `parse_values`.
    """
    rows, texts = records.rows, records.texts
    if None not in texts:
        present = cast("Sequence[bytes]", texts)
        try:
            if max(map(len, present), default=0) <= max_bytes:
                return records._replace(values=list(map(loads, present)))
        except ValueError:
            pass
    parsed = dict(
        parse_values(
            range(len(texts)),
            texts,
            max_bytes,
            loads,
            lambda place, problem: refuse(int(rows[place]), problem),
        )
    )
    return records.take([*parsed])._replace(values=[*parsed.values()])


class Intake:
    """Events of a stream read from one partition, as growing columns.

    Parameters
    ----------
    stream : Stream
        Stream with the topic, from which missing ids are built.
    read : callable
        Reader of its events (`compile_mapping`).
    read_columns : callable
        Reader of its regular events in columns (`compile_columns`).
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
        "_read_columns",
        "_shapes",
        "_tokens",
        "latest",
        "rows",
        "stream",
    )

    def __init__(
        self, stream: Stream, read: EventReader, read_columns: ColumnReader, partition: int
    ) -> None:
        self.stream = stream
        # Packed int64, so that columns are added and returned without Python integers.
        self.rows = array("q")
        self.latest = array("q")
        self._read = read
        self._read_columns = read_columns
        self._partition = partition
        self._keys: list[bytes] = []
        self._ids: list[bytes] = []
        self._earliest = array("q")
        self._shapes: list[bytes | None] = []
        self._tokens: list[TokenSet] | None = None if stream.tokens is None else []
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
            self._tokens.append([token.decode() for token in event.tokens])

    def add_columns(self, records: Records) -> list[tuple[int, Problem]]:
        """Add records as `add` does one by one, and return the rows and problems of rejected ones.

        Regular records are added in columns, all others with `add`.
        """
        return self._add_found(records, self._read_columns(records))

    def _add_found(self, records: Records, found: EventColumns | None) -> list[tuple[int, Problem]]:
        problems = []
        begin = 0
        for place in _irregular_places(found, len(records.rows)):
            if found is not None and begin < place:
                self._extend(records, found, slice(begin, place))
            begin = place + 1
            try:
                self.add(*records.at(place))
            except RejectedEventError as error:
                problems.append((int(records.rows[place]), Problem(error.reason, error.detail)))
        if found is not None and begin < len(records.rows):
            self._extend(records, found, slice(begin, None))
        return problems

    def _extend(self, records: Records, found: EventColumns, places: slice) -> None:
        """Add consecutive regular records."""
        ids = found.id[places]
        if None in ids:
            begin = len(self._ids)
            self._nameless += [begin + place for place, it in enumerate(ids) if it is None]
            ids = [b"" if it is None else it for it in ids]
        self.rows.frombytes(records.rows[places].tobytes())
        self._ids += cast("list[bytes]", ids)
        self._keys += cast("list[bytes]", found.key[places])
        self._earliest.frombytes(found.earliest[places].tobytes())
        self.latest.frombytes(found.latest[places].tobytes())
        self._shapes += [None] * len(ids) if found.shape is None else found.shape[places]
        if self._tokens is not None and found.tokens is not None:
            self._tokens += found.tokens[places]

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
        columns: Columns | None = None,
    ) -> Events:
        """Return the added events, one for each of `rows`.

        Parameters
        ----------
        offset, record_timestamp_us : int64[n]
            Kafka offset and timestamp of each event.
        columns : mapping of name to column
            Buffered columns (`Events.columns`).
        """
        for place in self._nameless:
            name = f"{self.stream.topic}-{self._partition}-{offset[place]}"
            self._ids[place] = name.encode()
        declared = dict(columns or {})
        if self._tokens is not None:
            declared[TOKENS_COLUMN] = SetsColumn.from_strings(self._tokens)
        return Events(
            self.stream.name,
            BytesColumn.from_list(self._keys),
            BytesColumn.from_list(self._ids),
            np.array(self._earliest, np.int64),
            np.array(self.latest, np.int64),
            np.full(len(self.rows), self._partition, np.int32),
            offset,
            record_timestamp_us,
            DictionaryColumn.from_list(self._shapes) if any(self._shapes) else None,
            declared,
        )

    def _select(self, places: Sequence[int]) -> None:
        """Keep only the events at the given places, in ascending order."""
        nameless = set(self._nameless)
        self._nameless = [new for new, old in enumerate(places) if old in nameless]
        for name in ("rows", "latest", "_earliest"):
            values = getattr(self, name)
            setattr(self, name, array("q", [values[place] for place in places]))
        for name in ("_keys", "_ids", "_shapes", "_tokens"):
            values = getattr(self, name)
            if values is not None:
                setattr(self, name, [values[place] for place in places])


def _irregular_places(found: EventColumns | None, count: int) -> Sequence[int]:
    """Return the places of the records that are read one by one: all, if few are regular."""
    if found is None or np.count_nonzero(found.is_regular) < _REGULAR_SHARE * count:
        return range(count)
    return np.flatnonzero(~found.is_regular).tolist()
