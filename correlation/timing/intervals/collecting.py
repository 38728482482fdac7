"""Output columns of pairs: ranges of certain targets, and results of unknown size in parts.

The columns are those of `pairs.Pairs`. Every kernel writes from position `found` on and returns the
new number of pairs. The columns have room for all located targets or, if their number is unknown
beforehand, are allocated part by part.

Cost. O(1) per written pair.
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
    """Progress of a kernel that filled the columns of one part.

    Attributes
    ----------
    done : int
        Base events evaluated, in order of the groups, including earlier parts.
    found, evaluations : int
        Pairs written, and pairs decided one by one.
    room : int
        Max number of pairs of the next base event.
    """

    done: int
    found: int
    evaluations: int
    room: int


def make_columns(room: int) -> Columns:
    """Build columns for `room` pairs; `decided_by` is SATISFACTION_REGION until overwritten."""
    return np.empty(room, np.int64), np.empty(room, np.int64), np.zeros(room, np.uint8)


def collect_parts(
    events: int, kernel: Callable[..., tuple[int, int, int, int]], *arguments: object
) -> Pairs:
    """Find the pairs of base events when their number is unknown beforehand.

    Parameters
    ----------
    events : int
        Number of base events in all groups.
    kernel : callable
        `(*arguments, done, columns)` returns the fields of a `Part`. It continues after the first
        `done` base events until the columns lack room for the next one.
    *arguments
        Arguments of the kernel.

    Returns
    -------
    Pairs
        All pairs; those in probe regions were decided one by one.
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
    """Concatenate columns; a single part, the usual case, is not copied."""
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
    """Write the pairs in the satisfaction regions of a block; return their number."""
    row = 0
    found = 0
    for g in range(len(groups)):
        for i in range(groups[g, 0], groups[g, 1]):
            found = _fill_certain_kernel(
                i, located[row, 1], located[row, 2], exclude_same, base_index, target_index, found
            )
            row += 1
    return found


# Force-inlined: where most regions are empty, a call costs more than the writing.
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
    """Write (i, begin) to (i, end - 1), without (i, i) if `exclude_same`."""
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
