"""Top-k conditions in a program against all pairs of the valid sets, after every block."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from correlation.engine.blocks import Control, Outcome
from correlation.engine.heartbeats import CLOSED, RESET, Heartbeat
from tests.oracle.topk import TokenSet, ranked_pairs
from tests.support.query_slots import QuerySlot, watermarks_of
from tests.support.slots import PARTITIONS
from tests.support.topk import (
    DELAY,
    STREAMS,
    Named,
    Tagged,
    WrittenLists,
    make_tag_block,
    make_tag_streams,
    topk_control,
)

MINIMA = {"jaccard": "0.4", "cosine": "0.5", "dice": "0.5", "overlap": "2"}


@dataclass(frozen=True)
class Case:
    """A condition, and how its events are drawn."""

    similarity: str
    k: int
    window: int
    crossed: bool
    keyed: bool
    every: bool
    limited: bool
    filtered: bool
    seed: int

    @property
    def fields(self) -> dict[str, object]:
        """Fields of the condition's document."""
        fields: dict[str, object] = {
            "k": self.k,
            "window_us": self.window,
            "similarity": self.similarity,
            "per_key": self.keyed,
            "report": "every" if self.every else "batch",
        }
        if self.crossed:
            fields["b"] = "right"
        if self.limited:
            distance = self.similarity == "hamming"
            name = "max_distance" if distance else "min_similarity"
            fields[name] = 3 if distance else MINIMA[self.similarity]
        if self.filtered:
            fields["where"] = {"a": {"color": "red"}}
        return fields

    @property
    def minimum(self) -> Fraction | None:
        """Minimum of `oracle.topk.similarity`."""
        if not self.limited:
            return None
        if self.similarity == "hamming":
            return Fraction(-3)
        found = Fraction(MINIMA[self.similarity])
        return found * found if self.similarity == "cosine" else found


cases = st.builds(
    Case,
    similarity=st.sampled_from([*MINIMA, "hamming"]),
    k=st.sampled_from([1, 2, 3, 10, 1000]),
    window=st.sampled_from([1, 3, 8, 10**6]),
    crossed=st.booleans(),
    keyed=st.booleans(),
    every=st.booleans(),
    limited=st.booleans(),
    filtered=st.booleans(),
    seed=st.integers(0, 2**32),
)


def draw_arrivals(rng: random.Random, case: Case, count: int = 40) -> list[Tagged]:
    """Draw events in an order of arrival; about one in ten is late."""
    found = []
    for number in range(count):
        size = rng.choice([0, 1, 2, 3, 3, 5])
        found.append(
            Tagged(
                number,
                rng.randint(0, 30),
                frozenset(rng.sample("abcdefg", size)),
                rng.choice(STREAMS) if case.crossed else "left",
                rng.choice("xy") if case.keyed else "0",
                rng.choice(["red", "red", "blue"]),
                rng.randrange(PARTITIONS),
            )
        )
    # Some events are sent twice.
    found += [replace(it, partition=rng.randrange(PARTITIONS)) for it in rng.sample(found, 4)]
    delay = [*range(DELAY + 1), 12]
    found.sort(key=lambda it: (it.time + rng.choice(delay), rng.random()))
    offsets: Counter[tuple[str, int]] = Counter()
    for place, it in enumerate(found):
        number = offsets[it.stream, it.partition]
        found[place] = replace(it, offset=number)
        offsets[it.stream, it.partition] += 1
    return found


def expected_lists(
    case: Case, arrived: Sequence[Tagged], as_of: int, since: int
) -> dict[str | None, list[Named]]:
    """Return the lists at a time, by key, of the sets from a time on."""
    lists = {}
    low = max(as_of - case.window, since)
    for key in {it.key for it in arrived}:
        valid = [
            it
            for it in {it.id: it for it in arrived}.values()
            if low <= it.time <= as_of
            and it.key == key
            and it.tokens
            and (not case.filtered or it.stream == "right" or it.color == "red")
        ]
        valid.sort(key=lambda it: (it.time, STREAMS.index(it.stream), str(it.id)))
        sets = [
            TokenSet(
                number,
                it.time,
                frozenset(map(ord, it.tokens)),
                STREAMS.index(it.stream),
            )
            for number, it in enumerate(valid)
        ]
        pairs = ranked_pairs(case.similarity, sets, crossed=case.crossed, minimum=case.minimum)
        listed = [(valid[it.older.number].id, valid[it.newer.number].id) for it in pairs[: case.k]]
        if listed:
            lists[key if case.keyed else None] = listed
    return lists


def test_sets_without_delay_wait_until_each_partition_has_a_later_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.support.topk.DELAY", 0)
    slot, written = QuerySlot(make_tag_streams(keyed=False)), WrittenLists()
    written.apply(slot.advance(make_tag_block([], [topk_control(0, {"k": 9})])))
    # Ids of sets, their times, and the list after each block.
    blocks: list[tuple[dict[int, int], list[Named]]] = [
        ({9: 1, 8: 1}, []),
        ({7: 2, 6: 2}, [(8, 9)]),
        # Another set of the time 2 comes, and is the first of them in the order of sets.
        ({5: 2}, [(8, 9)]),
        ({4: 3}, [(8, 9)]),
        ({3: 3}, [(6, 7), (5, 6), (5, 7), (9, 5), (9, 6), (9, 7), (8, 9), (8, 5), (8, 6)]),
    ]
    for offset, (times, listed) in enumerate(blocks):
        sets = [
            Tagged(number, time, frozenset("ab"), partition=number % 2, offset=offset)
            for number, time in times.items()
        ]
        written.apply(slot.advance(make_tag_block(sets)))
        assert written.present == ({None: listed} if listed else {})


def progress_of(case: Case, outcome: Outcome) -> int:
    marks = watermarks_of(outcome)
    return min(marks[name] for name in STREAMS[: 1 + case.crossed]) - 1


@given(case=cases)
def test_topk_lists_equal_all_pairs_after_every_block(case: Case) -> None:
    rng = random.Random(case.seed)  # noqa: S311 - a reproducible choice, no secret
    slot, written = QuerySlot(make_tag_streams(keyed=case.keyed)), WrittenLists()
    outcome = slot.advance(make_tag_block([], [topk_control(0, case.fields)]))
    rest, arrived = draw_arrivals(rng, case), list[Tagged]()
    while rest:
        size = rng.choice([1, 2, 5, 20])
        taken, rest = rest[:size], rest[size:]
        outcome = slot.advance(make_tag_block(taken))
        arrived += taken
        written.apply(outcome)
        wanted = expected_lists(case, arrived, progress_of(case, outcome), -(10**9))
        assert written.present == wanted
        assert written.changed == wanted
        if rng.random() < 0.3:
            slot.restart()
    closing = [Heartbeat(name, None, CLOSED, None) for name in STREAMS]
    written.apply(slot.advance(make_tag_block([], heartbeats=closing)))
    last = max(it.time for it in arrived)
    wanted = expected_lists(case, arrived, last, -(10**9))
    assert written.present == wanted
    assert written.changed == wanted


@settings(max_examples=30)
@given(case=cases)
def test_topk_lists_follow_changes_of_the_condition_and_resets(case: Case) -> None:
    """Versions, pauses and resets at any time: lists hold the sets that the buffers still hold."""
    rng = random.Random(case.seed)  # noqa: S311 - a reproducible choice, no secret
    slot, written = QuerySlot(make_tag_streams(keyed=case.keyed)), WrittenLists()
    names = STREAMS[: 1 + case.crossed]
    present, since, version, running = case, -(10**9), 1, True
    written.apply(slot.advance(make_tag_block([], [topk_control(0, case.fields)])))
    rest, arrived = draw_arrivals(rng, case), list[Tagged]()
    for step in range(1, 200):
        if not rest:
            break
        size = rng.choice([1, 2, 5])
        taken, rest = rest[:size], rest[size:]
        controls, beats = [], []
        event = rng.choice(["none"] * 5 + ["version", "pause", "reset"])
        held = max(slot.forgotten_below(name) for name in names)
        if event in {"version", "pause"}:
            version += 1
            running = event == "version"
            present = replace(case, k=rng.choice([1, 2, 5]), window=rng.choice([1, 4, 9]))
            controls = [topk_control(step, present.fields, version, paused=not running)]
            since = held
        elif event == "reset":
            beats = [Heartbeat(rng.choice(names), None, RESET, None)]
        before = dict(written.changed)
        outcome = slot.advance(make_tag_block(taken, controls, beats))
        arrived += taken
        written.apply(outcome)
        if event == "reset":
            # Dropped sets do not come back.
            since = max(since, held)
        marks = watermarks_of(outcome)
        known = all(marks[name] > -(10**8) for name in names)
        wanted = {}
        if running and known:
            wanted = expected_lists(present, arrived, progress_of(case, outcome), since)
        assert written.present == wanted
        assert written.changed == wanted
        if event in {"version", "pause"}:
            # The new version may list pairs that expire in the same block.
            withdrawn = [it for it in written.changes if it["version"] < version]
            assert len(withdrawn) == sum(map(len, before.values()))
            assert all((it["change"], it["reason"]) == ("left", "condition") for it in withdrawn)
        if rng.random() < 0.2:
            slot.restart()
    removal = Control(1000, b"condition/t", None)
    written.apply(slot.advance(make_tag_block([], [removal])))
    assert written.present == {}
    assert written.changed == {}
