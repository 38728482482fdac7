"""Views of segments: candidates of an alias, grouped by the values that they share with others.

Problem. Find the candidates of a segment with the same join key and the same values of some
attributes as a given combination, in a range of times.

Algorithm. The rows of the candidates are sorted by (group, latest), where a group has one join key
and one value of each attribute. Rows of a segment are sorted by (join key, latest), so a stable
counting sort by group is enough. Groups are numbered by interning, and sorted by number: a group
and a time are found by two binary searches. So 10,000 values of an attribute cost as much as 10,000
join keys.

Views are shared by all operators of the process that ask for the same candidates and attributes,
and live as long as their segments. A segment never changes.

Cost. O(n) for n candidates, and O(k) dictionary operations for k values, once per segment;
O(n log n) once more if the candidates are asked for by time (`View.between`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from correlation.buffers.columns import Int64s
from correlation.buffers.segment import Segment
from correlation.buffers.sorting import count_sort
from correlation.event_query.absence.instants import InstantTable, make_table, take_instants
from correlation.event_query.evaluation.candidates import Candidates
from correlation.event_query.evaluation.interning import Interner
from correlation.event_query.evaluation.values import (
    AttributeValues,
    attribute_of,
    read_only,
)
from correlation.limits import UNKNOWN_WATERMARK

# Sorting of an element takes as long as the comparison of this number of times.
_SCANNED = 16


@dataclass(frozen=True, slots=True)
class ViewKey:
    """The candidates of a view and their groups.

    Parameters
    ----------
    candidates : Candidates
        Conditions on the attributes.
    keyed : bool
        Whether events of a group have the same join key.
    attributes : tuple of str
        Attributes of which the events of a group have the same values.
    only_exact : bool
        Whether events with a length or an uncertain instant are left out: the query expects exact
        instants, but older events of the stream may be buffered.
    """

    candidates: Candidates
    keyed: bool
    attributes: tuple[str, ...]
    only_exact: bool = False


class Groups(NamedTuple):
    """Candidates sorted by (group, latest), for the kernels.

    Attributes
    ----------
    numbers : ndarray of int64, shape (g,)
        Ascending numbers of the groups.
    starts, stops : ndarray of int64, shape (g,)
        Group i has the positions starts[i] to stops[i] - 1.
    begin, end : ndarray of int64, shape (n,)
        Times of the candidates, in µs; `end` ascends within a group.
    """

    numbers: Int64s
    starts: Int64s
    stops: Int64s
    begin: Int64s
    end: Int64s


class View:
    """Candidates of a segment.

    Parameters
    ----------
    groups : Groups
        The candidates.
    rows : int64[n]
        Row of the segment of each candidate.
    """

    __slots__ = ("_by_time", "_instants", "first", "groups", "last", "rows")

    def __init__(self, groups: Groups, rows: Int64s) -> None:
        self.groups = groups
        self.rows = rows
        self.first = int(groups.end.min())
        self.last = int(groups.end.max())
        self._by_time: tuple[Int64s, Int64s] | None = None
        self._instants: InstantTable | None = None

    def instants(self, views: Views, segment: Segment) -> InstantTable:
        """Return the distributions of the candidates' instants, in the order of the view."""
        if self._instants is None:
            self._instants = take_instants(views.instants(segment), self.rows)
        return self._instants

    def between(self, first: int, last: int, *, again: bool) -> Int64s:
        """Return the ascending positions of the candidates with a time from `first` to `last`.

        Parameters
        ----------
        first, last : int
            Times, in µs.
        again : bool
            Whether further calls are expected: then the candidates are sorted by time.
        """
        end = self.groups.end
        if first > self.last or last < self.first:
            return np.zeros(0, np.int64)
        if first <= self.first and last >= self.last:
            return np.arange(len(end))
        if not again and self._by_time is None:
            return np.flatnonzero((end >= first) & (end <= last))
        if self._by_time is None:
            order = np.argsort(end)
            self._by_time = end[order], order
        times, order = self._by_time
        low, high = np.searchsorted(times, first), np.searchsorted(times, last, "right")
        if (high - low) * _SCANNED > len(end):
            return np.flatnonzero((end >= first) & (end <= last))
        return np.sort(order[low:high])


@dataclass(slots=True)
class _Entry:
    """Known facts of a segment in an epoch."""

    epoch: int
    compared: dict[str, AttributeValues] = field(default_factory=dict)
    key_numbers: Int64s | None = None
    value_numbers: dict[str, Int64s] = field(default_factory=dict)
    views: dict[ViewKey, View | None] = field(default_factory=dict)
    instants: InstantTable | None = None
    last_uncertain: int | None = None

    def values(self, segment: Segment, attribute: str) -> AttributeValues:
        """Return the values of an attribute."""
        if attribute not in self.compared:
            self.compared[attribute] = AttributeValues(attribute_of(segment, attribute))
        return self.compared[attribute]

    def __len__(self) -> int:
        keys = 0 if self.key_numbers is None else len(self.key_numbers)
        groups = sum(len(view.groups.numbers) for view in self.views.values() if view is not None)
        return keys + groups + sum(map(len, self.value_numbers.values()))


class Views:
    """Views of the segments of a process."""

    def __init__(self) -> None:
        self.interner = Interner()
        self._entries: WeakKeyDictionary[Segment, _Entry] = WeakKeyDictionary()

    def tidy(self) -> None:
        """Forget numbers that are not in use; numbers returned before may become invalid."""
        self.interner.tidy(lambda: sum(map(len, self._entries.values())))

    def view(self, segment: Segment, key: ViewKey) -> View | None:
        """Return a view of a segment; None without candidates."""
        entry = self._entry(segment)
        if key not in entry.views:
            entry.views[key] = self._build(segment, key)
        return entry.views[key]

    def key_numbers(self, segment: Segment) -> Int64s:
        """Return the number of the join key of each group of a segment."""
        entry = self._entry(segment)
        if entry.key_numbers is None:
            entry.key_numbers = self.interner.intern(segment.group_keys)
        return entry.key_numbers

    def numbers_of_rows(self, segment: Segment, attribute: str, rows: Int64s) -> Int64s:
        """Return the number of the value of an attribute in some rows, where it is present."""
        return self._value_numbers(segment, attribute)[attribute_of(segment, attribute).codes[rows]]

    def instants(self, segment: Segment) -> InstantTable:
        """Return the distributions of the instants of a segment."""
        entry = self._entry(segment)
        if entry.instants is None:
            entry.instants = make_table(segment.earliest, segment.latest, segment.shape)
        return entry.instants

    def last_uncertain(self, segment: Segment) -> int:
        """Return the max `latest` of the events that a view of exact instants leaves out, in µs."""
        if not segment.max_uncertainty:
            return UNKNOWN_WATERMARK
        entry = self._entry(segment)
        if entry.last_uncertain is None:
            entry.last_uncertain = int(segment.latest[segment.earliest < segment.latest].max())
        return entry.last_uncertain

    def _entry(self, segment: Segment) -> _Entry:
        entry = self._entries.get(segment)
        if entry is None or entry.epoch != self.interner.epoch:
            entry = self._entries[segment] = _Entry(self.interner.epoch)
        return entry

    def _value_numbers(self, segment: Segment, attribute: str) -> Int64s:
        entry = self._entry(segment)
        if attribute not in entry.value_numbers:
            values = attribute_of(segment, attribute).values
            entry.value_numbers[attribute] = self.interner.intern(values)
        return entry.value_numbers[attribute]

    def _build(self, segment: Segment, key: ViewKey) -> View | None:
        rows = self._rows(segment, key.candidates)
        if key.only_exact and segment.max_uncertainty:
            rows = rows[segment.earliest[rows] == segment.latest[rows]]
        if not len(rows):
            return None
        if not key.keyed and len(segment.group_keys) > 1:
            rows = rows[np.argsort(segment.latest[rows], kind="stable")]
        codes, numbers = self._group(segment, key, rows)
        if len(rows) < len(numbers):
            used_codes, codes = np.unique(codes, return_inverse=True)
            numbers = numbers[used_codes]
        order, bounds = count_sort(codes, len(numbers))
        used = np.flatnonzero(np.diff(bounds))
        used = used[np.argsort(numbers[used])]
        rows = rows[order]
        end = read_only(segment.latest[rows])
        exact = segment.max_uncertainty == 0
        groups = Groups(
            read_only(numbers[used]),
            read_only(bounds[used]),
            read_only(bounds[used + 1]),
            end if exact else read_only(segment.earliest[rows]),
            end,
        )
        return View(groups, rows)

    def _rows(self, segment: Segment, candidates: Candidates) -> Int64s:
        """Return the rows of the candidates, ascending."""
        entry = self._entry(segment)
        # An equality first: its rows are found without a look at the others.
        required = sorted(candidates.required, key=lambda it: not it.is_equality)
        if required and required[0].is_equality:
            first = required.pop(0)
            rows = entry.values(segment, first.attribute).rows_of(first.comparison)
        else:
            rows = np.arange(len(segment))
        for it in required:
            values = entry.values(segment, it.attribute)
            rows = rows[values.hold(it.comparison)[values.column.codes[rows]]]
        for attributes in candidates.equal:
            for name in attributes:
                rows = rows[attribute_of(segment, name).codes[rows] >= 0]
        for name, *others in candidates.equal:
            for other in others:
                same = self.numbers_of_rows(segment, name, rows)
                rows = rows[same == self.numbers_of_rows(segment, other, rows)]
        return rows

    def _group(self, segment: Segment, key: ViewKey, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Return a code per row, and the number of the group of each code."""
        if key.keyed and not key.attributes:
            return segment.groups_of_rows(rows), self.key_numbers(segment)
        if len(key.attributes) == 1 and not key.keyed:
            name = key.attributes[0]
            codes = attribute_of(segment, name).codes[rows].astype(np.int64)
            return codes, self._value_numbers(segment, name)
        columns = [self.numbers_of_rows(segment, name, rows) for name in key.attributes]
        if key.keyed:
            columns.insert(0, self.key_numbers(segment)[segment.groups_of_rows(rows)])
        packed = self.interner.pack(columns, len(rows))
        numbers, codes = np.unique(packed, return_inverse=True)
        return codes, numbers
