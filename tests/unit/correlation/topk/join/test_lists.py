"""Inverted lists, against lists of Python."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from correlation.topk.join.lists import (
    FRONT,
    ROOM,
    SIZE,
    SIZES,
    START,
    append_number_kernel,
    count_new_room_kernel,
    make_stacks,
    remove_first_kernel,
)


@pytest.mark.parametrize("seed", range(4))
def test_lists_have_the_numbers_that_were_appended_and_not_removed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lists, stacks = np.zeros((12, 4), np.int32), make_stacks()
    numbers = np.zeros(4096, np.int32)
    expected: list[list[int]] = [[] for _ in range(12)]
    grown = 0.4 + 0.4 * rng.random()
    for number in range(1200):
        it = int(rng.integers(12)) if number % 5 else 3
        # The phase of growth is followed by one of removal, in which all lists become empty.
        if expected[it] and rng.random() > (grown if number < 700 else 0.1):
            expected[it].pop(0)
            remove_first_kernel(lists, numbers, stacks, it)
        elif number < 700:
            tokens = np.array([it // 2], np.int32)
            room = count_new_room_kernel(lists, tokens, 0, 1, 2, it % 2)
            used = stacks[SIZES]
            append_number_kernel(lists, numbers, stacks, it, number)
            assert stacks[SIZES] <= used + room
            expected[it].append(number)
        for one, values in zip(lists, expected, strict=True):
            begin = one[START] + one[FRONT]
            assert numbers[begin : begin + one[SIZE]].tolist() == values
    # Blocks do not overlap, and those of empty lists are free.
    blocks = sorted((one[START], one[ROOM]) for one in lists if one[ROOM] > 0)
    for (start, room), (following, _) in pairwise(blocks):
        assert start + room <= following
    assert all(one[ROOM] == 0 for one, values in zip(lists, expected, strict=True) if not values)


def test_block_of_an_empty_list_is_used_again() -> None:
    lists, numbers, stacks = np.zeros((2, 4), np.int32), np.zeros(64, np.int32), make_stacks()
    for number in range(4):
        append_number_kernel(lists, numbers, stacks, 0, number)
    assert (stacks[SIZES], lists[0, ROOM]) == (4, 4)
    for _ in range(4):
        remove_first_kernel(lists, numbers, stacks, 0)
    append_number_kernel(lists, numbers, stacks, 1, 9)
    assert (stacks[SIZES], lists[1, START], lists[1, ROOM]) == (4, 0, 4)


def test_list_with_a_free_front_moves_within_its_block() -> None:
    lists, numbers, stacks = np.zeros((1, 4), np.int32), np.zeros(64, np.int32), make_stacks()
    for number in range(8):
        append_number_kernel(lists, numbers, stacks, 0, number)
    for _ in range(4):
        remove_first_kernel(lists, numbers, stacks, 0)
    used = stacks[SIZES]
    append_number_kernel(lists, numbers, stacks, 0, 8)
    assert (stacks[SIZES], lists[0, FRONT], lists[0, SIZE]) == (used, 0, 5)
    start = lists[0, START]
    assert numbers[start : start + 5].tolist() == [4, 5, 6, 7, 8]
    # More than half of the block is used: the list moves to a larger one.
    for number in range(9, 13):
        append_number_kernel(lists, numbers, stacks, 0, number)
    assert lists[0, ROOM] == 16
