"""The arrays of a join: what its kernels read and change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from correlation.topk.join.lists import make_stacks
from correlation.topk.join.stock import Stock, grow_stock, make_stock
from correlation.topk.similarities import Key

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]

# Elements of `State.totals`: numbers of the oldest valid set and of the next set, size of the stock,
# size of the list as last logged, end of the used part of the tokens, length of the log, number of
# events, and number of the first set after the changes that were logged last.
FIRST, NEXT, STOCK_SIZE, TOP_SIZE, TOKENS_END, LOG_SIZE, EVENTS, SEEN = range(8)
# What a kernel needs more room for before it can go on; DONE: nothing.
DONE, SETS, TOKENS, NUMBERS, STOCK, LOG = range(6)
# Initial sizes, powers of two. Joins of rare keys stay small.
_FEW_SETS, _FEW_TOKENS, _FEW_PAIRS, _FEW_CHANGES = 16, 128, 64, 64


class Shape(NamedTuple):
    """What a join computes.

    Parameters
    ----------
    k : int
        Length of the list.
    window_us : int
        Age up to which a set is valid, in µs.
    minimum_key : int
        Minimum key of a pair; 0: no minimum.
    sides : int
        1: pairs of sets of one stream; 2: pairs of sets of different streams.
    shortest : bool
        Whether the shortest inverted list is read first, otherwise that of the newest token.
    every : bool
        Whether the changes of every insertion and expiry are logged, otherwise only by `log_changes`.
    table : int64[TABLE_SIZES**3]
        Keys of small sets.
    key : callable
        Key of a pair (`Similarity.key`).
    """

    k: int
    window_us: int
    minimum_key: int
    sides: int
    shortest: bool
    every: bool
    table: Int64s
    key: Key


class Block(NamedTuple):
    """Sets to insert, in their order.

    Parameters
    ----------
    time_us : int64[n]
        Their times, not decreasing.
    side : int8[n]
        Their streams, 0 or 1.
    offsets : int64[n + 1]
        The tokens of set i are tokens[offsets[i]:offsets[i + 1]].
    tokens : int32[m]
        Tokens without repetition in a set.
    """

    time_us: Int64s
    side: NDArray[np.int8]
    offsets: Int64s
    tokens: Int32s


class Sets(NamedTuple):
    """The valid sets; the row of a set is its number modulo the number of rows, a power of two.

    Parameters
    ----------
    rows : int64[c, 4]
        Columns PLACE, MET_BY, BAR and SIGNATURE (see `search`).
    time_us : int64[c]
        Times.
    side : int8[c]
        Streams.
    tokens : int32[t]
        Tokens; positions are modulo t, a power of two.
    token_mark : int32[tokens]
        For each token, the last set that contains it and was searched for.
    """

    rows: Int64s
    time_us: Int64s
    side: NDArray[np.int8]
    tokens: Int32s
    token_mark: Int32s


class Lists(NamedTuple):
    """The inverted lists (see `lists`)."""

    lists: Int32s
    numbers: Int32s
    stacks: Int64s


class Candidates(NamedTuple):
    """Work space of a search, and counters of the work done."""

    order: Int32s
    weight: Int32s
    key: Int64s
    older: Int32s
    by_end: Int32s
    work: Int64s


class Top(NamedTuple):
    """The list as last logged: key int64[k], older int32[k], younger int32[k]."""

    key: Int64s
    older: Int32s
    younger: Int32s


class Log(NamedTuple):
    """Changes of the list.

    Parameters
    ----------
    event : int64[c]
        Number of the event that caused the change, ascending.
    time_us : int64[c]
        Time of the event.
    reason : int8[c]
        SET or EXPIRY (see `changes`).
    entered : bool[c]
        Whether the pair entered the list, otherwise it left.
    key, older, younger : int64[c], int32[c], int32[c]
        The pair.
    """

    event: Int64s
    time_us: Int64s
    reason: NDArray[np.int8]
    entered: NDArray[np.bool_]
    key: Int64s
    older: Int32s
    younger: Int32s


class State(NamedTuple):
    """All arrays of a join."""

    sets: Sets
    lists: Lists
    stock: Stock
    candidates: Candidates
    top: Top
    log: Log
    totals: Int64s


def _make_log(capacity: int) -> Log:
    kinds = (np.int64, np.int64, np.int8, np.bool_, np.int64, np.int32, np.int32)
    return Log(*(np.zeros(capacity, kind) for kind in kinds))


def make_state(k: int) -> State:
    """Return the arrays of a join without sets whose list has length k."""
    sets = Sets(
        np.zeros((_FEW_SETS, 4), np.int64),
        np.zeros(_FEW_SETS, np.int64),
        np.zeros(_FEW_SETS, np.int8),
        np.zeros(_FEW_TOKENS, np.int32),
        np.zeros(0, np.int32),
    )
    lists = Lists(np.zeros((0, 4), np.int32), np.zeros(4 * _FEW_TOKENS, np.int32), make_stacks())
    top = Top(np.zeros(k, np.int64), np.zeros(k, np.int32), np.zeros(k, np.int32))
    candidates = Candidates(
        np.empty(_FEW_SETS, np.int32),
        np.empty(_FEW_SETS, np.int32),
        np.empty(_FEW_SETS, np.int64),
        np.empty(_FEW_SETS, np.int32),
        np.empty(_FEW_SETS, np.int32),
        np.zeros(3, np.int64),
    )
    stock, log = make_stock(_FEW_PAIRS), _make_log(_FEW_CHANGES)
    return State(sets, lists, stock, candidates, top, log, np.zeros(8, np.int64))


def grow_tokens(state: State, tokens: int, sides: int) -> State:
    """Return the state with lists for more tokens.

    Parameters
    ----------
    state : State
        The state.
    tokens : int
        Number of tokens.
    sides : int
        Number of streams, 1 or 2.
    """
    mark = state.sets.token_mark
    if tokens <= len(mark):
        return state
    size = _power_above(tokens)
    grown = np.full(size, -1, np.int32)
    grown[: len(mark)] = mark
    lists = np.zeros((sides * size, 4), np.int32)
    lists[: len(state.lists.lists)] = state.lists.lists
    return state._replace(
        sets=state.sets._replace(token_mark=grown), lists=state.lists._replace(lists=lists)
    )


def grow_order(state: State, size: int) -> State:
    """Return the state with work space for sets of `size` tokens."""
    if size <= len(state.candidates.order):
        return state
    order, weight = (np.empty(_power_above(size), np.int32) for _ in range(2))
    return state._replace(candidates=state.candidates._replace(order=order, weight=weight))


def grow(state: State, wanted: int, room: int) -> State:
    """Return the state with more room.

    Parameters
    ----------
    state : State
        The state.
    wanted : int
        SETS, TOKENS, NUMBERS, STOCK or LOG.
    room : int
        Room needed.
    """
    sets, totals = state.sets, state.totals
    if wanted == SETS:
        size = _power_above(room)
        numbers = np.arange(totals[FIRST], totals[NEXT])
        new, old = numbers & (size - 1), numbers & (len(sets.rows) - 1)
        rows, times = np.zeros((size, 4), np.int64), np.zeros(size, np.int64)
        side = np.zeros(size, np.int8)
        rows[new], times[new], side[new] = sets.rows[old], sets.time_us[old], sets.side[old]
        return state._replace(
            sets=sets._replace(rows=rows, time_us=times, side=side),
            candidates=state.candidates._replace(
                key=np.empty(size, np.int64),
                older=np.empty(size, np.int32),
                by_end=np.empty(size, np.int32),
            ),
        )
    if wanted == TOKENS:
        size = _power_above(room)
        tokens = np.zeros(size, np.int32)
        # The last positions written: at most as many as there are.
        places = np.arange(max(totals[TOKENS_END] - len(sets.tokens), 0), totals[TOKENS_END])
        tokens[places & (size - 1)] = sets.tokens[places & (len(sets.tokens) - 1)]
        return state._replace(sets=sets._replace(tokens=tokens))
    if wanted == NUMBERS:
        numbers = np.zeros(_power_above(room), np.int32)
        numbers[: len(state.lists.numbers)] = state.lists.numbers
        return state._replace(lists=state.lists._replace(numbers=numbers))
    if wanted == STOCK:
        return state._replace(stock=grow_stock(state.stock, _power_above(room)))
    log = _make_log(_power_above(room))
    for new, old in zip(log, state.log, strict=True):
        new[: len(old)] = old
    return state._replace(log=log)


def _power_above(number: int) -> int:
    """Return the smallest power of two that is at least `number`."""
    return 1 << (int(number) - 1).bit_length()
