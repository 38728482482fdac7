"""The arrays of a join, which its kernels read and change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from correlation.topk.join.insertion import Candidates
from correlation.topk.join.lists import make_stacks
from correlation.topk.join.stock import (
    PairColumns,
    Stock,
    grow_pairs,
    grow_stock,
    make_pairs,
    make_stock,
)
from correlation.topk.similarities import Key

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]

# Elements of `State.totals`: numbers of the oldest valid set and of the next set, size of the
# stock, size of the list as last logged, end of the used part of the tokens, length of the log,
# number of events, and number of the first set that took effect after the last log of changes.
FIRST, NEXT, STOCK_SIZE, TOP_SIZE, TOKENS_END, LOG_SIZE, EVENTS, SEEN = range(8)
# Columns of `Sets.rows`.
PLACE, MET_BY, BAR, SIGNATURE = range(4)
# A place is the position of a set's tokens, times 2**SIZE_BITS, plus their number.
SIZE_BITS = 14
SIZE_MASK = (1 << SIZE_BITS) - 1
# Arrays that are full, so that a kernel cannot go on; DONE: none.
DONE, SETS, TOKENS, NUMBERS, STOCK, LOG = range(6)
# Initial sizes, powers of two. Joins of rare keys stay small.
_FEW_SETS, _FEW_TOKENS, _FEW_PAIRS, _FEW_CHANGES = 16, 128, 64, 64


class Shape(NamedTuple):
    """Settings of a join.

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
        Whether the changes of every event are logged, otherwise only by `TopKJoin.log_changes`.
    """

    k: int
    window_us: int
    minimum_key: int
    sides: int
    shortest: bool
    every: bool


class Keys(NamedTuple):
    """Keys of pairs.

    Parameters
    ----------
    table : int64[TABLE_SIZES**3]
        Keys of small sets (`similarities.key_table`).
    key : callable
        Key of a pair (`similarities.first_class_key`).
    """

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
        Columns: PLACE, position and number of the tokens; MET_BY, the last set whose search met
        the set, or -1; BAR, a lower bound of the key that a pair of a new set with the set needs,
        which never falls (P-TOPK-SKYBAND); SIGNATURE, the bits of the tokens
        (`search.sign_token_kernel`).
    time_us : int64[c]
        Times.
    time_first : int32[c]
        Number of the first set of the same time: the end of pairs whose older set is the set.
    time_last : int32[c]
        Of the first set of a time: number of the last set of this time.
    side : int8[c]
        Streams.
    tokens : int32[t]
        Tokens; positions are modulo t, a power of two.
    token_mark : int32[tokens]
        For each token, the last set that contains it and was searched for.
    """

    rows: Int64s
    time_us: Int64s
    time_first: Int32s
    time_last: Int32s
    side: NDArray[np.int8]
    tokens: Int32s
    token_mark: Int32s


class Lists(NamedTuple):
    """The inverted lists (see `lists`)."""

    lists: Int32s
    numbers: Int32s
    stacks: Int64s


class Work(NamedTuple):
    """Work space of a search, and counters of the work done.

    Parameters
    ----------
    order, weight : int32[c]
        Tokens in the order of their lists, and what orders them.
    done : int64[3]
        Counters (see `search`).
    """

    order: Int32s
    weight: Int32s
    done: Int64s


class Log(NamedTuple):
    """Changes of the list as columns of equal length.

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
    pairs : PairColumns
        The pairs.
    """

    event: Int64s
    time_us: Int64s
    reason: NDArray[np.int8]
    entered: NDArray[np.bool_]
    pairs: PairColumns


class State(NamedTuple):
    """All arrays of a join; `top` is the list as last logged, `totals` are scalars."""

    sets: Sets
    lists: Lists
    stock: Stock
    candidates: Candidates
    work: Work
    top: PairColumns
    log: Log
    totals: Int64s


def make_state(k: int) -> State:
    """Return the arrays of a join without sets whose list has length k."""
    sets = Sets(
        np.zeros((_FEW_SETS, 4), np.int64),
        np.zeros(_FEW_SETS, np.int64),
        np.zeros(_FEW_SETS, np.int32),
        np.zeros(_FEW_SETS, np.int32),
        np.zeros(_FEW_SETS, np.int8),
        np.zeros(_FEW_TOKENS, np.int32),
        np.zeros(0, np.int32),
    )
    lists = Lists(np.zeros((0, 4), np.int32), np.zeros(4 * _FEW_TOKENS, np.int32), make_stacks())
    return State(
        sets,
        lists,
        make_stock(_FEW_PAIRS),
        _make_candidates(_FEW_SETS),
        _make_work(_FEW_TOKENS),
        make_pairs(k),
        _make_log(_FEW_CHANGES),
        np.zeros(8, np.int64),
    )


def _make_candidates(capacity: int) -> Candidates:
    others = (np.zeros(capacity, np.int32) for _ in range(3))
    return Candidates(np.zeros(capacity, np.int64), *others)


def _make_work(tokens: int) -> Work:
    return Work(np.zeros(tokens, np.int32), np.zeros(tokens, np.int32), np.zeros(3, np.int64))


def _make_log(capacity: int) -> Log:
    return Log(
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.int8),
        np.zeros(capacity, np.bool_),
        make_pairs(capacity),
    )


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
    if size <= len(state.work.order):
        return state
    return state._replace(work=_make_work(_power_above(size))._replace(done=state.work.done))


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
    size = _power_above(room)
    if wanted == SETS:
        return _grow_sets(state, size)
    if wanted == TOKENS:
        return _grow_ring(state, size)
    if wanted == NUMBERS:
        numbers = np.zeros(size, np.int32)
        numbers[: len(state.lists.numbers)] = state.lists.numbers
        return state._replace(lists=state.lists._replace(numbers=numbers))
    if wanted == STOCK:
        return state._replace(stock=grow_stock(state.stock, size))
    return _grow_log(state, size)


def _grow_sets(state: State, size: int) -> State:
    """Move each set to its row in more rows; a search has as many candidates at most."""
    old, totals = state.sets, state.totals
    new = old._replace(
        rows=np.zeros((size, 4), np.int64),
        time_us=np.zeros(size, np.int64),
        time_first=np.zeros(size, np.int32),
        time_last=np.zeros(size, np.int32),
        side=np.zeros(size, np.int8),
    )
    numbers = np.arange(totals[FIRST], totals[NEXT])
    to, at = numbers & (size - 1), numbers & (len(old.rows) - 1)
    new.rows[to], new.time_us[to], new.side[to] = old.rows[at], old.time_us[at], old.side[at]
    new.time_first[to], new.time_last[to] = old.time_first[at], old.time_last[at]
    return state._replace(sets=new, candidates=_make_candidates(size))


def _grow_ring(state: State, size: int) -> State:
    """Move the tokens to their positions in a larger array."""
    old, end = state.sets.tokens, state.totals[TOKENS_END]
    tokens = np.zeros(size, np.int32)
    places = np.arange(max(end - len(old), 0), end)
    tokens[places & (size - 1)] = old[places & (len(old) - 1)]
    return state._replace(sets=state.sets._replace(tokens=tokens))


def _grow_log(state: State, size: int) -> State:
    old, new = state.log, _make_log(size)
    used = len(old.event)
    new.event[:used], new.time_us[:used] = old.event, old.time_us
    new.reason[:used], new.entered[:used] = old.reason, old.entered
    return state._replace(log=new._replace(pairs=grow_pairs(old.pairs, size)))


def _power_above(number: int) -> int:
    """Return the smallest power of two that is at least `number`."""
    return 1 << (int(number) - 1).bit_length()
