"""Top-k lists of real chat messages against all pairs of the valid messages, after every block.

Raw messages have many equal sets, as "yeah" and "hello"; distinct ones have long sets of words with
the frequencies of a language.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from cli.demo.messages import Message, load_messages, split_words
from tests.oracle.topk import TokenSet, ranked_pairs
from tests.support.query_slots import QuerySlot, watermarks_of
from tests.support.slots import PARTITIONS
from tests.support.topk import (
    Named,
    Tagged,
    WrittenLists,
    make_tag_block,
    make_tag_streams,
    topk_control,
)

COUNT, K = 400, 50
# In seconds; about 60 messages are valid at a time.
WINDOW = 400
MIN_WORDS = 3


@pytest.fixture(scope="module")
def messages() -> list[Message]:
    """Return all messages by time."""
    return load_messages()


def choose_raw(messages: Sequence[Message]) -> list[frozenset[str]]:
    """Return the words of the first messages."""
    return [split_words(it.text) for it in messages[:COUNT]]


def choose_distinct(messages: Sequence[Message]) -> list[frozenset[str]]:
    """Return the words of the first messages of some words that repeat no earlier message."""
    words = dict.fromkeys(split_words(it.text) for it in messages[: 3 * COUNT])
    return [it for it in words if len(it) >= MIN_WORDS][:COUNT]


def to_events(messages: Sequence[Message], words: Sequence[frozenset[str]]) -> list[Tagged]:
    """Return sets of words with the times of the first messages, in seconds since the first."""
    begin_us = messages[0].time_us
    return [
        Tagged(
            number,
            (messages[number].time_us - begin_us) // 1_000_000,
            tokens,
            partition=number % PARTITIONS,
            offset=number // PARTITIONS,
        )
        for number, tokens in enumerate(words)
    ]


class Judge:
    """All pairs of some sets, by a similarity."""

    def __init__(self, name: str, events: Sequence[Tagged]) -> None:
        self._events = sorted(
            (it for it in events if it.tokens), key=lambda it: (it.time, str(it.id))
        )
        codes = {
            it: code for code, it in enumerate({it for event in events for it in event.tokens})
        }
        sets = [
            TokenSet(number, it.time, frozenset(codes[token] for token in it.tokens))
            for number, it in enumerate(self._events)
        ]
        self._pairs = ranked_pairs(name, sets, crossed=False)

    def valid(self, as_of: int) -> list[tuple[Named, bool]]:
        """Return the pairs at a time, best first, and whether their sets are equal."""
        return [
            ((self._events[r.number].id, self._events[s.number].id), r.tokens == s.tokens)
            for r, s in ((it.older, it.newer) for it in self._pairs)
            if r.time >= as_of - WINDOW and s.time <= as_of
        ]


@pytest.mark.parametrize(
    ("name", "report"),
    [
        ("jaccard", "every"),
        ("hamming", "batch"),
        pytest.param("cosine", "every", marks=pytest.mark.nightly),
        pytest.param("dice", "batch", marks=pytest.mark.nightly),
        pytest.param("overlap", "every", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize("raw", [True, False])
def test_lists_of_messages_equal_all_pairs_after_every_block(
    messages: list[Message], name: str, report: str, *, raw: bool
) -> None:
    words = choose_raw(messages) if raw else choose_distinct(messages)
    rest = to_events(messages, words)
    assert len(rest) == COUNT
    judge, written = Judge(name, rest), WrittenLists()
    slot = QuerySlot(make_tag_streams(keyed=False))
    fields = {"k": K, "window_us": WINDOW, "similarity": name, "report": report}
    written.apply(slot.advance(make_tag_block([], [topk_control(0, fields)])))
    rng = random.Random(f"{name} {report}")  # noqa: S311 - a reproducible choice, no secret
    full, equal, expired = 0, 0, 0
    while rest:
        size = rng.choice([2, 5, 20])
        taken, rest = rest[:size], rest[size:]
        outcome = slot.advance(make_tag_block(taken))
        before = written.present.get(None, [])
        written.apply(outcome)
        as_of = watermarks_of(outcome)["left"] - 1
        valid = judge.valid(as_of)
        wanted = [pair for pair, _ in valid[:K]]
        assert written.present == written.changed == ({None: wanted} if wanted else {})
        full += len(valid) > K
        equal = max(equal, sum(is_equal for _, is_equal in valid[:K]))
        expired += bool({*before} - {pair for pair, _ in valid})
        if rng.random() < 0.2:
            slot.restart()
    # Most lists were full, and listed pairs expired. Lists of raw messages had pairs of equal sets.
    assert full > 30
    assert expired > 10
    assert equal > 2 if raw else equal == 0
