"""Writing pairs down: whole ranges of targets without a decision, and part by part.

The columns are those of `pairs.Pairs`; every kernel writes from `found` on and returns what is
found then. Room is made for all located targets at once, or, where their number is not known before
they are met, part by part.

Cost. O(1) a written pair.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.timing.intervals.pairs import Pairs, ProbeCounts

Columns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]

_FIRST_ROOM = 2**12


class Part(NamedTuple):
    """How far a kernel came with the room it was given.

    Attributes
    ----------
    done : int
        Base events evaluated, in order of the groups, those of earlier parts included.
    found, evaluations : int
        Pairs written, and pairs decided one by one.
    room : int
        What the next base event needs; no less than it writes.
    """

    done: int
    found: int
    evaluations: int
    room: int


def make_columns(room: int) -> Columns:
    """Make columns for so many pairs, decided by position where nothing else is written."""
    return np.empty(room, np.int64), np.empty(room, np.int64), np.zeros(room, np.uint8)


def collect_parts(
    events: int, kernel: Callable[..., tuple[int, int, int, int]], *arguments: object
) -> Pairs:
    """Evaluate base events whose pairs are not counted before they are found.

    Parameters
    ----------
    events : int
        Base events in all groups.
    kernel : callable
        `(*arguments, done, columns)` gives the fields of a `Part`: it goes on behind the first
        `done` base events until the columns lack the room for the next.
    *arguments
        Of the kernel.

    Returns
    -------
    Pairs
        All of them, those in probe regions decided one by one.
    """
    parts: list[Columns] = []
    evaluations = done = 0
    size = _FIRST_ROOM
    while not parts or done < events:
        base_index, target_index, decided_by = columns = make_columns(size)
        part = Part(*(int(number) for number in kernel(*arguments, done, columns)))
        found = part.found
        parts.append((base_index[:found], target_index[:found], decided_by[:found]))
        done = part.done
        evaluations += part.evaluations
        size = max(2 * size, part.room)
    return Pairs(*_join_parts(parts), ProbeCounts(evaluations, 0, evaluations))


def _join_parts(parts: list[Columns]) -> Columns:
    """Put columns one behind the other; one part, as most blocks are, is not copied."""
    if len(parts) == 1:
        return parts[0]
    base_index, target_index, decided_by = zip(*parts, strict=True)
    return np.concatenate(base_index), np.concatenate(target_index), np.concatenate(decided_by)


@njit(cache=True)
def _collect_certain_kernel(
    groups: NDArray[np.int64],
    located: NDArray[np.int64],
    exclude_same: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
    base_index: NDArray[np.int64],
    target_index: NDArray[np.int64],
) -> int:
    """Write the satisfaction regions of a block; returns the number of pairs."""
    row = 0
    found = 0
    for g in range(len(groups)):
        for i in range(groups[g, 0], groups[g, 1]):
            found = _fill_certain_kernel(
                i, located[row, 1], located[row, 2], exclude_same, base_index, target_index, found
            )
            row += 1
    return found


# Inlined by force: called, it costs more than it writes where most regions are empty.
@njit(cache=True, forceinline=True)
def _fill_certain_kernel(
    i: int,
    begin: int,
    end: int,
    exclude_same: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
    base_index: NDArray[np.int64],
    target_index: NDArray[np.int64],
    found: int,
) -> int:
    """Write (i, begin) to (i, end - 1), (i, i) left out if asked."""
    if exclude_same and begin <= i < end:
        found = _fill_pairs_kernel(i, begin, i, base_index, target_index, found)
        begin = i + 1
    written: int = _fill_pairs_kernel(i, begin, end, base_index, target_index, found)
    return written


@njit(cache=True)
def _fill_pairs_kernel(
    i: int,
    begin: int,
    end: int,
    base_index: NDArray[np.int64],
    target_index: NDArray[np.int64],
    found: int,
) -> int:
    """Write (i, begin) to (i, end - 1) in two plain loops, which the compiler vectorises."""
    size = end - begin
    base_part = base_index[found : found + size]
    target_part = target_index[found : found + size]
    for k in range(size):
        base_part[k] = i
    for k in range(size):
        target_part[k] = begin + k
    return found + size
