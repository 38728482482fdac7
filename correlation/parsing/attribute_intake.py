"""Intake of the records of a stream with attributes, and with a filter over them.

A stream's `where` chooses the records that are its events. Records that do not match are not
rejected, even if they lack other fields of an event: several streams may read one topic. So the
filter is evaluated before a problem of a record is reported, over the columns of all records.

A record whose value does not fit the type of an attribute is rejected, unless the other attributes
of the filter exclude the record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import Column, Columns, Int64s
from correlation.buffers.events import Events
from correlation.errors import RejectedEventError
from correlation.parsing.attribute_values import (
    Values,
    column_reader,
    integers_column,
    value_reader,
    values_column,
)
from correlation.parsing.column_reader import ColumnReader, EventColumns
from correlation.parsing.event_reader import EventReader
from correlation.parsing.intake import Intake, Positions, Problem
from correlation.parsing.records import Records
from correlation.resources.attributes import Attribute, AttributeValue
from correlation.resources.filters import Filter
from correlation.resources.streams import Stream

# Kafka's timestamp of a record that has none, as the job and files report it.
_NO_TIMESTAMP = 0
# Values of the attributes of one record.
_RecordValues = tuple[AttributeValue | None, ...]


class AttributeColumns(NamedTuple):
    """Values of each attribute in n records, and which records are regular (`column_reader`)."""

    values: list[Values]
    is_regular: NDArray[np.bool_]

    def take(self, places: Sequence[int]) -> AttributeColumns:
        """Return the records at the given places."""
        values = [[column[place] for place in places] for column in self.values]
        return AttributeColumns(values, self.is_regular[places])


class AttributeReaders:
    """Readers of the attributes of a stream.

    Parameters
    ----------
    stream : Stream
        Stream with at least one attribute.
    """

    def __init__(self, stream: Stream) -> None:
        self.topic = stream.topic
        fields = [it for it in stream.attributes if it.record_field is None]
        self.read = [(it, value_reader(it)) for it in fields]
        self.placed = [it for it in stream.attributes if it.record_field is not None]
        self._read_columns = [column_reader(it) for it in fields]
        self._where = _requirements(stream, {it.name for it in fields})

    def read_columns(self, records: Records) -> AttributeColumns:
        """Return the values of the attributes in `read`, for n records."""
        objects = records.objects()
        is_regular = np.array([type(value) is dict for value in records.values], np.bool_)
        values = []
        for read in self._read_columns:
            found, fits = read(objects)
            values.append(found)
            is_regular &= fits
        return AttributeColumns(values, is_regular)

    def excludes(self, found: AttributeColumns) -> NDArray[np.bool_]:
        """Return which records do not match the filter of the stream, whatever their position."""
        count = len(found.is_regular)
        if self._where is None:
            return np.zeros(count, np.bool_)
        needed = {it.attribute for it in self._where.requirements}
        columns = {
            attribute.column_name: values_column(values)
            for (attribute, _), values in zip(self.read, found.values, strict=True)
            if attribute.name in needed
        }
        return found.is_regular & ~self._where.mask(columns, count)

    def columns(
        self,
        values: Sequence[Values],
        partition: int,
        offset: Int64s,
        record_timestamp_us: Int64s,
    ) -> dict[str, Column]:
        """Return the columns of n records.

        Parameters
        ----------
        values : sequence of list
            Values of each attribute in `read`.
        partition : int
            Kafka partition.
        offset, record_timestamp_us : int64[n]
            Kafka offset and timestamp of each record.
        """
        found = self._fields(values)
        for attribute in self.placed:
            found[attribute.column_name] = self._placed(
                attribute, partition, offset, record_timestamp_us
            )
        return found

    def _fields(self, values: Sequence[Values]) -> dict[str, Column]:
        return {
            attribute.column_name: values_column(column)
            for (attribute, _), column in zip(self.read, values, strict=True)
        }

    def _placed(
        self, attribute: Attribute, partition: int, offset: Int64s, record_timestamp_us: Int64s
    ) -> Column:
        if attribute.record_field == "$topic":
            return values_column([self.topic] * len(offset))
        if attribute.record_field == "$partition":
            return integers_column(np.full(len(offset), partition, np.int64))
        if attribute.record_field == "$offset":
            return integers_column(offset)
        return integers_column(record_timestamp_us, _NO_TIMESTAMP)


def _requirements(stream: Stream, attributes: Collection[str]) -> Filter | None:
    """Return the part of the stream's filter that has only the given attributes."""
    if stream.where is None:
        return None
    return Filter(tuple(it for it in stream.where.requirements if it.attribute in attributes))


class _Pending(NamedTuple):
    """A record with a problem, which counts only if the record matches the filter."""

    row: int
    problem: Problem
    values: _RecordValues
    unfit: frozenset[str]


class AttributeIntake(Intake):
    """Events of a stream with attributes, read from one partition.

    Parameters
    ----------
    stream, read, read_columns, partition
        As for `Intake`.
    attributes : AttributeReaders
        Readers of the attributes.
    """

    __slots__ = ("_attributes", "_pending", "_settled", "_values", "filtered")

    def __init__(
        self,
        stream: Stream,
        read: EventReader,
        read_columns: ColumnReader,
        partition: int,
        attributes: AttributeReaders,
    ) -> None:
        super().__init__(stream, read, read_columns, partition)
        self.filtered = 0
        self._attributes = attributes
        self._values: list[Values] = [[] for _ in attributes.read]
        self._pending: list[_Pending] = []
        # Columns of all events, if the filter needed them and chose all.
        self._settled: dict[str, Column] | None = None

    def add(
        self,
        row: int,
        value: object,
        text: bytes | None,
        record_key: bytes | None,
        record_timestamp_us: int,
    ) -> None:
        """See `Intake.add`; with a filter, `settle` reports the problems of JSON objects."""
        if self.stream.where is None or not isinstance(value, dict):
            values = tuple(read(value, text) for _, read in self._attributes.read)
            super().add(row, value, text, record_key, record_timestamp_us)
            self._append(values)
            return
        found: list[AttributeValue | None] = []
        unfit: dict[str, Problem] = {}
        for attribute, read in self._attributes.read:
            try:
                found.append(read(value, text))
            except RejectedEventError as error:
                unfit[attribute.name] = Problem(error.reason, error.detail)
                found.append(None)
        values = tuple(found)
        problem = next(iter(unfit.values()), None)
        if problem is None:
            try:
                super().add(row, value, text, record_key, record_timestamp_us)
            except RejectedEventError as error:
                problem = Problem(error.reason, error.detail)
        if problem is None:
            self._append(values)
        else:
            self._pending.append(_Pending(row, problem, values, frozenset(unfit)))

    def add_columns(self, records: Records) -> list[tuple[int, Problem]]:
        """See `Intake.add_columns`; regular records that the filter excludes are not read on."""
        attributes = self._attributes.read_columns(records)
        kept = np.flatnonzero(~self._attributes.excludes(attributes)).tolist()
        if len(kept) < len(records.rows):
            self.filtered += len(records.rows) - len(kept)
            records, attributes = records.take(kept), attributes.take(kept)
        found = self._read_columns(records)
        if found is not None:
            is_regular = found.is_regular & attributes.is_regular
            found = found._replace(is_regular=is_regular, attributes=attributes.values)
        return self._add_found(records, found)

    def _extend(self, records: Records, found: EventColumns, places: slice) -> None:
        super()._extend(records, found, places)
        for column, values in zip(self._values, found.attributes, strict=True):
            column.extend(values[places])

    def _append(self, values: _RecordValues) -> None:
        for column, value in zip(self._values, values, strict=True):
            column.append(value)

    def settle(self, positions: Positions) -> Iterable[tuple[int, Problem]]:
        """See `Intake.settle`."""
        where = self.stream.where
        if where is None:
            return ()
        columns = self._columns(self._values, *positions(self.rows))
        chosen = where.mask(columns, len(self.rows))
        rejected = sorted((it.row, it.problem) for it in self._matching(where, positions))
        self.filtered += len(self.rows) - int(chosen.sum()) + len(self._pending) - len(rejected)
        self._pending = []
        if chosen.all():
            self._settled = columns
        else:
            self._keep(chosen)
        return rejected

    def _matching(self, where: Filter, positions: Positions) -> Iterator[_Pending]:
        """Yield the records with problems that match the filter, as far as it can be decided."""
        groups: dict[frozenset[str], list[_Pending]] = {}
        for pending in self._pending:
            groups.setdefault(pending.unfit, []).append(pending)
        for unfit, group in groups.items():
            decided = Filter(tuple(it for it in where.requirements if it.attribute not in unfit))
            rows = [it.row for it in group]
            values = [list(it) for it in zip(*(it.values for it in group), strict=True)]
            columns = self._columns(values, *positions(rows))
            for pending, matches in zip(group, decided.mask(columns, len(rows)), strict=True):
                if matches:
                    yield pending

    def _columns(
        self, values: Sequence[Values], offset: Int64s, record_timestamp_us: Int64s
    ) -> dict[str, Column]:
        return self._attributes.columns(values, self._partition, offset, record_timestamp_us)

    def _keep(self, chosen: NDArray[np.bool_]) -> None:
        kept = np.flatnonzero(chosen).tolist()
        self._select(kept)
        self._values = [[column[it] for it in kept] for column in self._values]

    def to_events(
        self,
        offset: Int64s,
        record_timestamp_us: Int64s,
        columns: Columns | None = None,
    ) -> Events:
        """See `Intake.to_events`; `columns` are added to those of the attributes."""
        found = self._settled or self._columns(self._values, offset, record_timestamp_us)
        return super().to_events(offset, record_timestamp_us, {**(columns or {}), **found})
