"""Inverted lists: for each token, the numbers of the valid sets that contain it, oldest first.

Definitions. A list is a run of a block of one array of numbers. Sets take effect and expire in the
order of their numbers, so a number is appended at the end of a list and removed at its front. Lists
of the two streams of a join are separate. A join numbers its lists: token, if both sets of a pair
come from one stream, otherwise 2 · token + side.

Algorithm. A full block whose front half is free is moved to its front; otherwise the list moves to
a block of double size. Free blocks of a size form a stack, linked in the array itself.

References. Mann, Augsten & Jensen, "SWOOP: Top-k Similarity Joins over Set Streams", 2017, section
5.1; lists are arrays instead of linked lists, because they are read from the end.
Cost. O(1) amortised per number; memory O(numbers).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Int32s = NDArray[np.int32]

# Columns of the array of lists.
START, ROOM, FRONT, SIZE = range(4)
# Size of the smallest block; others are this size times powers of two.
_SMALLEST = 4
# Number of sizes of blocks. The last element of the stacks is the end of the used part.
SIZES = 28


def make_stacks() -> NDArray[np.int64]:
    """Return empty stacks of free blocks, and the end 0 of the used part of the array."""
    return np.concatenate([np.full(SIZES, -1, np.int64), np.zeros(1, np.int64)])


@njit(cache=True)
def count_new_room_kernel(
    lists: Int32s, tokens: Int32s, start: int, size: int, sides: int, side: int
) -> int:
    """Return the maximum number of elements that the blocks of a set's lists grow by.

    Parameters
    ----------
    lists : int32[lists, 4]
        The lists.
    tokens : int32[c]
        Tokens of sets.
    start, size : int
        Position and number of the set's tokens.
    sides, side : int
        Number of streams, 1 or 2, and the stream of the set.
    """
    needed = 0
    for place in range(start, start + size):
        it = sides * tokens[place] + side
        if lists[it, FRONT] + lists[it, SIZE] == lists[it, ROOM]:
            needed += max(2 * lists[it, ROOM], _SMALLEST)
    return needed


@njit(cache=True)
def _find_kind_kernel(room: int) -> int:
    """Return the number of the stack for blocks of a size."""
    kind, size = 0, _SMALLEST
    while size < room:
        kind += 1
        size *= 2
    return kind


@njit(cache=True)
def _take_block_kernel(numbers: Int32s, stacks: NDArray[np.int64], room: int) -> int:
    """Take a block off its stack, or from the unused part of the array; return its start."""
    kind = _find_kind_kernel(room)
    found = int(stacks[kind])
    if found >= 0:
        stacks[kind] = numbers[found]
        return found
    found = int(stacks[SIZES])
    stacks[SIZES] = found + room
    return found


@njit(cache=True)
def _free_block_kernel(numbers: Int32s, stacks: NDArray[np.int64], start: int, room: int) -> None:
    """Put a block on its stack."""
    kind = _find_kind_kernel(room)
    numbers[start] = stacks[kind]
    stacks[kind] = start


@njit(cache=True, forceinline=True)
def append_number_kernel(
    lists: Int32s, numbers: Int32s, stacks: NDArray[np.int64], it: int, number: int
) -> None:
    """Append a number to a list; the array has room (`count_new_room_kernel`)."""
    start, room, front, size = lists[it, START], lists[it, ROOM], lists[it, FRONT], lists[it, SIZE]
    if front + size == room:
        if room > 0 and 2 * size <= room:
            for place in range(size):
                numbers[start + place] = numbers[start + front + place]
        else:
            larger = max(2 * room, _SMALLEST)
            moved = _take_block_kernel(numbers, stacks, larger)
            for place in range(size):
                numbers[moved + place] = numbers[start + front + place]
            if room > 0:
                _free_block_kernel(numbers, stacks, start, room)
            start = moved
            lists[it, START], lists[it, ROOM] = moved, larger
        front = 0
        lists[it, FRONT] = 0
    numbers[start + front + size] = number
    lists[it, SIZE] = size + 1


@njit(cache=True, forceinline=True)
def remove_first_kernel(lists: Int32s, numbers: Int32s, stacks: NDArray[np.int64], it: int) -> None:
    """Remove the first number of a list; the block of an empty list becomes free."""
    lists[it, FRONT] += 1
    lists[it, SIZE] -= 1
    if lists[it, SIZE] == 0:
        _free_block_kernel(numbers, stacks, lists[it, START], lists[it, ROOM])
        lists[it, ROOM] = 0
        lists[it, FRONT] = 0
