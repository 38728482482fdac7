"""Tables of combinations: rows of segments, times, and numbers of shared values, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from correlation.buffers.columns import Int64s
from correlation.buffers.segment import Segment
from correlation.event_query.evaluation.views import View, Views


@dataclass(frozen=True, slots=True)
class Piece:
    """Events of one segment that take an alias: positions of a view.

    Parameters
    ----------
    number : int
        Number of the segment in the list of its stream.
    segment : Segment
        The segment.
    view : View
        Its view.
    positions : int64[k]
        The events.
    """

    number: int
    segment: Segment
    view: View
    positions: Int64s


@dataclass(frozen=True, slots=True)
class Table:
    """k combinations of the events of a query with n positive aliases.

    Parameters
    ----------
    segments, rows : int64[k, n]
        Event of each alias: row of a segment, by its number in the list of its stream.
    times : int64[k, 2n + 2]
        Begin and end of each alias in µs, and two columns for an event of a negated alias.
    numbers : int64[k, v]
        Numbers of the join key, if events meet by key, and of the values of the variables.

    Columns of aliases that are not joined are not set.
    """

    segments: Int64s
    rows: Int64s
    times: Int64s
    numbers: Int64s

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def empty(cls, size: int, aliases: int, numbers: int) -> Table:
        """Return a table without values."""
        shapes = ((size, aliases), (size, aliases), (size, 2 * aliases + 2), (size, numbers))
        return cls(*(np.zeros(shape, np.int64) for shape in shapes))

    def last_end(self) -> Int64s:
        """Return the max end of the positive events of each combination, in µs."""
        ends = self.times[:, 1:-2:2]
        found: Int64s = ends[:, 0].copy()
        for place in range(1, ends.shape[1]):
            np.maximum(found, ends[:, place], out=found)
        return found

    def take(self, rows: Int64s | slice) -> Table:
        """Return the combinations of some rows; those of a slice are not copied."""
        return Table(self.segments[rows], self.rows[rows], self.times[rows], self.numbers[rows])

    @classmethod
    def concat(cls, tables: Sequence[Table]) -> Table:
        """Concatenate tables of one query, at least one."""
        return cls(
            np.concatenate([it.segments for it in tables]),
            np.concatenate([it.rows for it in tables]),
            np.concatenate([it.times for it in tables]),
            np.concatenate([it.numbers for it in tables]),
        )

    def set_events(
        self,
        place: int,
        pieces: Sequence[Piece],
        views: Views,
        new: Sequence[tuple[int, str]],
        *,
        key: bool,
    ) -> None:
        """Set the events of an alias, in the order of the pieces.

        Parameters
        ----------
        place : int
            Number of the alias.
        pieces : sequence of Piece
            As many events as the table has rows.
        views : Views
            Numbers of values.
        new : sequence of (int, str)
            Columns of numbers to set, and their attributes.
        key : bool
            Whether to set the number of the join key.
        """
        start = 0
        for it in pieces:
            part = slice(start, start + len(it.positions))
            start = part.stop
            rows = it.view.rows[it.positions]
            self.segments[part, place] = it.number
            self.rows[part, place] = rows
            self.times[part, 2 * place] = it.view.groups.begin[it.positions]
            self.times[part, 2 * place + 1] = it.view.groups.end[it.positions]
            if key:
                groups = it.segment.groups_of_rows(rows)
                self.numbers[part, 0] = views.key_numbers(it.segment)[groups]
            for column, attribute in new:
                self.numbers[part, column] = views.numbers_of_rows(it.segment, attribute, rows)
