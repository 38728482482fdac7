"""Arrays of a join grow without losing anything."""

from __future__ import annotations

import numpy as np
import pytest

from correlation.topk.join.state import (
    FIRST,
    LOG,
    NEXT,
    NUMBERS,
    PLACE,
    SETS,
    STOCK,
    TOKENS,
    TOKENS_END,
    State,
    grow,
    grow_order,
    grow_tokens,
    make_state,
)


def filled() -> State:
    """Return a state whose arrays have different values."""
    state = make_state(3)
    for part in (*state.stock, state.log.pairs, state.top):
        for column in part:
            column[:] = np.arange(len(column)) + 5
    sets = state.sets
    times = (sets.time_us, sets.time_first, sets.time_last)
    for array in (*state.log[:2], state.lists.numbers, *times, sets.tokens):
        array[:] = np.arange(len(array)) + 7
    state.sets.rows[:, PLACE] = np.arange(len(state.sets.rows)) + 9
    return state


@pytest.mark.parametrize(("room", "size"), [(17, 32), (32, 32), (100, 128)])
def test_sets_keep_their_numbers(room: int, size: int) -> None:
    state = filled()
    state.totals[FIRST], state.totals[NEXT] = 21, 37
    grown = grow(state, SETS, room)
    assert len(grown.sets.rows) == len(grown.sets.side) == size
    assert [len(it) for it in grown.candidates] == [size] * 4
    for number in range(21, 37):
        assert grown.sets.rows[number % size, PLACE] == number % 16 + 9
        for times in (grown.sets.time_us, grown.sets.time_first, grown.sets.time_last):
            assert times[number % size] == number % 16 + 7


@pytest.mark.parametrize(("end", "held"), [(100, 100), (128, 128), (1000, 128)])
def test_tokens_keep_their_positions(end: int, held: int) -> None:
    state = filled()
    state.totals[TOKENS_END] = end
    grown = grow(state, TOKENS, 200)
    assert len(grown.sets.tokens) == 256
    for place in range(end - held, end):
        assert grown.sets.tokens[place % 256] == place % 128 + 7


def test_columns_keep_their_values() -> None:
    state = filled()
    numbers = grow(state, NUMBERS, 600).lists.numbers
    assert (len(numbers), numbers[511], numbers[512]) == (1024, 518, 0)
    stock = grow(state, STOCK, 65).stock
    for pairs in (stock.pairs, stock.ends):
        assert [it[:64].tolist() for it in pairs] == [list(range(5, 69))] * 4
    assert {len(column) for pairs in stock for column in pairs} == {128}
    log = grow(state, LOG, 300).log
    assert [len(it) for it in (*log[:4], *log.pairs)] == [512] * 7
    assert [it[63] for it in (*log[:2], *log.pairs)] == [70, 70, 68, 68, 68]


def test_lists_and_marks_grow_with_the_number_of_tokens() -> None:
    state = grow_tokens(make_state(1), 5, 2)
    assert (len(state.sets.token_mark), len(state.lists.lists)) == (8, 16)
    state.lists.lists[15], state.sets.token_mark[7] = 3, 4
    assert grow_tokens(state, 8, 2) is state
    grown = grow_tokens(state, 9, 2)
    assert (len(grown.sets.token_mark), len(grown.lists.lists)) == (16, 32)
    assert grown.lists.lists[15].tolist() == [3, 3, 3, 3]
    assert grown.lists.lists[16].tolist() == [0, 0, 0, 0]
    assert grown.sets.token_mark[6:9].tolist() == [-1, 4, -1]


def test_work_space_grows_with_the_largest_set() -> None:
    state = make_state(1)
    state.work.done[:] = [1, 2, 3]
    assert grow_order(state, 128) is state
    grown = grow_order(state, 129)
    assert (len(grown.work.order), len(grown.work.weight)) == (256, 256)
    assert grown.work.done.tolist() == [1, 2, 3]
