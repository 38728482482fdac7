"""Time of the results, compiled: its value for many combinations, and which events decide it.

Problem. The time T of a result is the value of a term over the points of its positive events. Find
T of each combination of a table, and ranges of the events of a combination whose T is in a range.

Definitions. A term is compiled to the steps of a stack machine. If T is the maximum of shifted ends
v_i + c_i of some aliases, T is in (R, P] iff one of these is and no other is above P. In general
v_i is in [T - behind_i, T + ahead_i]: the keep function of alias i has the offset -behind_i, and
its lead is -ahead_i (docs/proofs.md, P-QUERY-TIME).

Cost. O(size of the term) a combination.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from correlation.event_query.evaluation.clauses import NO_BOUND, Columns, Uncertain, column_of
from correlation.event_query.query import END, Extreme, Point, Shifted, Term

if TYPE_CHECKING:
    from correlation.buffers.columns import Int64s
    from correlation.event_query.relevance.analysis import Relevance

# First and last time, in µs.
Bounds = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ResultTime:
    """Time of the results of a query.

    Parameters
    ----------
    steps : tuple of (str, int)
        Steps of a stack machine: ("column", place), ("shift", µs), ("min" or "max", number of
        values).
    shifts : tuple of int or None, or None
        c_i of each positive alias, None for aliases that T does not depend on; None if T is not a
        maximum of shifted ends.
    behind, ahead : tuple of int
        v_i is at most `behind` before T, and at most `ahead` after it, in µs.
    highest_shift_us : int
        T is at most this after the last of the ends.
    """

    steps: tuple[tuple[str, int], ...]
    shifts: tuple[int | None, ...] | None
    behind: tuple[int, ...]
    ahead: tuple[int, ...]
    highest_shift_us: int

    def of(self, times: Int64s) -> Int64s:
        """Return T of each combination.

        Parameters
        ----------
        times : int64[k, columns]
            Begin and end of each alias, in µs.
        """
        stack: list[Int64s] = []
        for step, value in self.steps:
            if step == "column":
                stack.append(times[:, value])
            elif step == "shift":
                stack[-1] = stack[-1] + value
            elif value > 1:
                choose = np.minimum if step == "min" else np.maximum
                found = stack[-value].copy()
                for column in stack[-value + 1 :]:
                    choose(found, column, out=found)
                stack[-value:] = [found]
        return stack[0]

    def pivots(self) -> list[int]:
        """Return the aliases such that T is in a range if one of them is in its range.

        If T is a maximum of ends, these are its aliases. Otherwise it is the alias whose time
        is the nearest to T.
        """
        if self.shifts is not None:
            return [place for place, shift in enumerate(self.shifts) if shift is not None]
        widths = [behind + ahead for behind, ahead in zip(self.behind, self.ahead, strict=True)]
        return [widths.index(min(widths))]

    def until(self, place: int, last: int) -> int:
        """Return the last time of an alias in a combination with T <= last."""
        shift = None if self.shifts is None else self.shifts[place]
        return _cut(last + self.ahead[place] if shift is None else last - shift)

    def between(self, place: int, first: int, last: int) -> Bounds:
        """Return the range of the time of an alias if first < T <= last.

        For an alias of a maximum, it is the range in which its shifted end is in that of T.
        """
        shift = None if self.shifts is None else self.shifts[place]
        if shift is None:
            return _cut(first + 1 - self.behind[place]), self.until(place, last)
        return _cut(first + 1 - shift), self.until(place, last)


def compile_time(
    term: Term, relevance: Relevance, columns: Columns, uncertain: Uncertain
) -> ResultTime:
    """Compile the time of the results of a query.

    Parameters
    ----------
    term : Term
        T.
    relevance : Relevance
        Analysis of the query.
    columns : mapping of alias to int
        Columns of the positive aliases, in their order.
    uncertain : collection of str
        Aliases whose instants are uncertain.
    """
    instants = {it.alias for it in relevance.inputs if it.is_instant}
    found = _shifts_of(term, instants)
    behind = [-relevance.keeps[alias].value({relevance.result: 0}) for alias in columns]
    ahead = [-relevance.leads[alias] for alias in columns]
    return ResultTime(
        tuple(_steps_of(term, columns, uncertain)),
        None if found is None else tuple(found.get(alias) for alias in columns),
        tuple(int(it) if math.isfinite(it) else NO_BOUND for it in behind),
        tuple(int(it) if math.isfinite(it) else NO_BOUND for it in ahead),
        _highest_shift(term),
    )


def _steps_of(term: Term, columns: Columns, uncertain: Uncertain) -> Iterator[tuple[str, int]]:
    match term:
        case Point():
            yield "column", column_of(term, columns, uncertain, latest=True)
        case Shifted(inner, offset_us):
            yield from _steps_of(inner, columns, uncertain)
            yield "shift", offset_us
        case Extreme(kind, terms):
            for it in terms:
                yield from _steps_of(it, columns, uncertain)
            yield kind, len(terms)


def _shifts_of(term: Term, instants: set[str]) -> Mapping[str, int] | None:
    """Return the shifts of a maximum of shifted ends, by alias; None for another term."""
    match term:
        case Point(alias, side):
            return {alias: 0} if side == END or alias in instants else None
        case Shifted(inner, offset_us):
            found = _shifts_of(inner, instants)
            return None if found is None else {it: by + offset_us for it, by in found.items()}
        case Extreme(kind, terms):
            shifts: dict[str, int] = {}
            for it in terms:
                part = _shifts_of(it, instants)
                if part is None or (kind == "min" and len(terms) > 1):
                    return None
                for alias, by in part.items():
                    shifts[alias] = max(by, shifts.get(alias, by))
            return shifts


def _highest_shift(term: Term) -> int:
    """Return the value of a term whose points all are 0; a point is at most the last end."""
    match term:
        case Point():
            return 0
        case Shifted(inner, offset_us):
            return _highest_shift(inner) + offset_us
        case Extreme(kind, terms):
            return (min if kind == "min" else max)(map(_highest_shift, terms))


def _cut(time: int) -> int:
    """Return a time that fits int64."""
    return max(-NO_BOUND, min(time, NO_BOUND))
