"""Streams of token sets: random ones as in the source, and the messages of the demo."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from cli.demo.messages import load_messages
from correlation.topk.join.state import Block

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_UNIVERSE = 100_000
_MEAN_SIZE = 10
_SKEW = 1.0
# Number of sets after which a new token is the most frequent one of a drifting stream.
_DRIFT = 100
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")


def draw_sets(count: int, *, drifting: bool = False, seed: int = 2017) -> Block:
    """Draw sets whose tokens have Zipf's distribution.

    Parameters
    ----------
    count : int
        Number of sets.
    drifting : bool
        Whether the frequencies change: a new token is the most frequent one after every hundredth
        set, and the others fall back one rank each.
    seed : int
        Seed.

    Returns
    -------
    Block
        The sets, one per µs. Tokens are numbered in the order of their first appearance.
    """
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, _UNIVERSE + 1) ** _SKEW
    cumulated = np.cumsum(weights / weights.sum())
    sizes = np.maximum(rng.poisson(_MEAN_SIZE, count), 1)
    ranks = np.minimum(np.searchsorted(cumulated, rng.random(sizes.sum())), _UNIVERSE - 1)
    owner = np.repeat(np.arange(count), sizes)
    names = ranks - owner // _DRIFT if drifting else ranks
    # The same token drawn twice for a set is one token.
    kept = np.unique(owner * np.int64(4 * _UNIVERSE) + names + _UNIVERSE, return_index=True)[1]
    kept.sort()
    return _number_tokens(names[kept], np.bincount(owner[kept], minlength=count))


def add_bursts(stream: Block, *, every: int, size: int) -> Block:
    """Return a stream in which a set is repeated many times in succession, again and again.

    Parameters
    ----------
    stream : Block
        The stream.
    every : int
        Number of sets from the begin of a burst to the begin of the next one.
    size : int
        Number of equal sets of a burst.
    """
    copied = np.arange(len(stream.time_us))
    copied -= np.where(copied % every < size, copied % every, 0)
    sizes = np.diff(stream.offsets)[copied]
    starts = np.cumsum(sizes) - sizes
    within = np.arange(sizes.sum()) - np.repeat(starts, sizes)
    return _make_block(stream.tokens[np.repeat(stream.offsets[copied], sizes) + within], sizes)


def read_messages(*, distinct: bool = False) -> Block:
    """Return the messages of the demo as sets of words, one per µs in their order.

    Parameters
    ----------
    distinct : bool
        Whether only the first of equal sets is kept.
    """
    sets = [words for it in load_messages() if (words := split_words(it.text))]
    return encode_sets(dict.fromkeys(sets) if distinct else sets)


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a string in lower case, sorted, each once."""
    return tuple(sorted(set(_WORD.findall(text.lower()))))


def encode_sets(sets: Iterable[tuple[str, ...]]) -> Block:
    """Return sets of words as a stream, one set per µs."""
    numbers: dict[str, int] = {}
    tokens, sizes = [], []
    for words in sets:
        sizes.append(len(words))
        tokens += [numbers.setdefault(word, len(numbers)) for word in words]
    return _make_block(np.array(tokens, np.int32), np.array(sizes, np.int64))


def _number_tokens(names: NDArray[np.int64], sizes: NDArray[np.int64]) -> Block:
    _, firsts, inverse = np.unique(names, return_index=True, return_inverse=True)
    numbers = np.empty(len(firsts), np.int32)
    numbers[np.argsort(firsts)] = np.arange(len(firsts), dtype=np.int32)
    return _make_block(numbers[inverse], sizes)


def _make_block(tokens: NDArray[np.int32], sizes: NDArray[np.int64]) -> Block:
    count = len(sizes)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return Block(np.arange(count, dtype=np.int64), np.zeros(count, np.int8), offsets, tokens)
