"""Top-k conditions in the cells of a grid: merged, they write the records of a single cell."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from correlation.engine.blocks import Block, Control, Outcome
from correlation.engine.heartbeats import CLOSED, RESET, Heartbeat
from correlation.operators import Share
from correlation.shares import join_shares
from correlation.topk.local import SlotShare
from tests.conformance.test_topk import Case, cases, draw_arrivals, expected_lists
from tests.support.query_slots import watermarks_of
from tests.support.topk import (
    STREAMS,
    GridSlots,
    Tagged,
    WrittenLists,
    make_tag_block,
    result_facts,
    topk_control,
)

grids = st.tuples(st.sampled_from([2, 3, 4]), st.sampled_from([1, 2, 3]))
PLAIN = Case(
    similarity="jaccard",
    k=4,
    window=50,
    crossed=False,
    keyed=False,
    every=False,
    limited=False,
    filtered=False,
    seed=0,
)
# Probability that a slot restarts if a part of them does.
SHARE_RESTARTED = 0.5
# Probability that an event which is sent again has other tokens.
SHARE_CHANGED = 0.7
# Incidents of a block beside its events.
EVENTS = ["none"] * 3 + ["version", "pause", "reset", "restart", "part restarts", "close"]


def read_records(outcome: Outcome) -> list[tuple[Any, ...]]:
    """Return the records of a block as they are sent: topic, headers, id, key and value.

    Tombstones are left out, as a list may not exist.
    """
    return [
        (
            heading.topic,
            heading.channel,
            dict(heading.headers),
            record.ident,
            record.key,
            json.loads(record.value),
        )
        for result in outcome.results
        for heading in [result.heading(outcome.detected_at_us)]
        for record in result.records(outcome.detected_at_us)
        if record.value is not None
    ]


def send_again(rng: random.Random, arrivals: Sequence[Tagged]) -> list[Tagged]:
    """Change tokens and colors of some events whose id and time were sent before."""
    found: list[Tagged] = []
    sent = set[int]()
    for it in arrivals:
        is_changed = it.id in sent and rng.random() < SHARE_CHANGED
        tokens = frozenset(rng.sample("abcdefg", rng.choice([0, 2, 3, 4])))
        color = rng.choice(["red", "blue"])
        found.append(replace(it, tokens=tokens, color=color) if is_changed else it)
        sent.add(it.id)
    return found


def draw_blocks(rng: random.Random, case: Case) -> list[tuple[Block, str]]:
    """Draw the blocks of a condition, and what happens to the slots before each."""
    rest: Sequence[Tagged] = send_again(rng, draw_arrivals(rng, case))
    version = 1
    # The changes of some conditions are written to a topic of their own.
    own = rng.choice([{}, {"output_topic": "mine"}])
    found = [(make_tag_block([], [topk_control(0, {**case.fields, **own})]), "none")]
    while rest:
        size = rng.choice([1, 2, 5, 20])
        taken, rest = rest[:size], rest[size:]
        controls, beats = list[Control](), list[Heartbeat]()
        event = rng.choice(EVENTS)
        if event in {"version", "pause"}:
            version += 1
            present = replace(case, k=rng.choice([1, 2, 5]), window=rng.choice([1, 4, 9]))
            fields = {**present.fields, **own}
            controls = [topk_control(version, fields, version, paused=event == "pause")]
        elif event == "reset":
            beats = [Heartbeat(rng.choice(STREAMS), None, RESET, None)]
        elif event == "close":
            beats = [Heartbeat(name, None, CLOSED, None) for name in STREAMS]
        found.append((make_tag_block(taken, controls, beats), event))
    found.append((make_tag_block([], [Control(1000, b"condition/t", None)]), "none"))
    return found


@settings(max_examples=4 * settings().max_examples)
@given(case=cases, grid=grids)
def test_p_topk_merge_cells_write_the_records_of_one_cell(
    case: Case, grid: tuple[int, int]
) -> None:
    """Sets and expiries, late and repeated sets, versions, pauses, resets and closed streams."""
    rng = random.Random(case.seed)  # noqa: S311 - a reproducible choice, no secret
    case = replace(case, keyed=False)
    single, cells = GridSlots(1, 1), GridSlots(*grid)
    plain, merged = WrittenLists(), WrittenLists()
    for block, event in draw_blocks(rng, case):
        if event == "restart":
            single.restart()
            cells.restart()
        elif event == "part restarts":
            cells.restart_part(it for it in range(grid[1]) if rng.random() < SHARE_RESTARTED)
        outcome, other = cells.advance(block), single.advance(block)
        assert read_records(outcome) == read_records(other)
        merged.apply(outcome)
        plain.apply(other)
        assert merged.present == plain.present == plain.changed
        if grid[0] > 1:
            # Only the merged results of several groups are counted, as those of one group are.
            assert result_facts(cells.totals.to_record(0)) == result_facts(other.metrics)
            assert not result_facts(outcome.metrics)
        # A new version lists the sets from this time on, in every slot.
        for name in STREAMS:
            assert len({it.forgotten_below(name) for it in [*single.slots, *cells.slots]}) == 1


def join_blocks(first: Block, second: Block) -> Block:
    """Return the block with the records of two blocks."""
    return replace(
        second,
        controls=[*first.controls, *second.controls],
        events=[*first.events, *second.events],
        progress=[*first.progress, *second.progress],
        heartbeats=[*first.heartbeats, *second.heartbeats],
    )


@settings(max_examples=2 * settings().max_examples)
@given(case=cases, slots=st.sampled_from([2, 3]))
def test_p_topk_merge_slots_that_begin_a_block_apart_write_the_records_of_one_cell(
    case: Case, slots: int
) -> None:
    """Some slots have evaluated a block: they have its controls again, and nothing else."""
    rng = random.Random(case.seed)  # noqa: S311 - a reproducible choice, no secret
    case = replace(case, keyed=False)
    blocks = draw_blocks(rng, case)
    number = rng.randrange(len(blocks))
    single, cells = GridSlots(1, 1), GridSlots(3, slots)
    plain, merged = WrittenLists(), WrittenLists()
    for at, (block, _) in enumerate(blocks):
        expected = single.advance(block)
        if at != number:
            outcome = cells.advance(block)
        else:
            ahead = rng.sample(range(slots), rng.randrange(1, slots))
            outcomes, shares = list[Outcome](), list[list[Share]]()
            for it, slot in enumerate(cells.slots):
                mine = cells.spread(block)[it]
                former = list[Share]()
                if it in ahead:
                    former += slot.advance(mine).shares
                    mine = Block(mine.controls, [], [], [])
                slot.restart()
                outcomes.append(slot.advance(mine))
                shares.append([*former, *outcomes[-1].shares])
            outcome = cells.merge(outcomes, join_shares(shares))
        assert read_records(outcome) == read_records(expected)
        merged.apply(outcome)
        plain.apply(expected)
        assert merged.present == plain.present == plain.changed
    assert merged.present == {}


@settings(max_examples=2 * settings().max_examples)
@given(case=cases, slots=st.sampled_from([2, 3]))
def test_p_topk_merge_shares_of_two_blocks_and_of_both_together_are_those_of_one_cell(
    case: Case, slots: int
) -> None:
    """Some slots have evaluated a block that the others evaluate together with the next one."""
    rng = random.Random(case.seed)  # noqa: S311 - a reproducible choice, no secret
    case = replace(case, keyed=False)
    blocks = draw_blocks(rng, case)
    # The progress of both blocks is applied to the slots that are ahead, without a reset.
    apart = [
        it
        for it in range(len(blocks) - 2)
        if blocks[it][1] != "reset" and blocks[it + 1][1] in {"none", "restart", "part restarts"}
    ]
    assume(apart)
    number = rng.choice(apart)
    single, cells = GridSlots(1, 1), GridSlots(3, slots)
    plain, merged = WrittenLists(), WrittenLists()
    for block, _ in blocks[:number]:
        merged.apply(cells.advance(block))
        plain.apply(single.advance(block))
    first, second = (block for block, _ in blocks[number : number + 2])
    both = join_blocks(first, second)
    ahead = rng.sample(range(slots), rng.randrange(1, slots))
    outcomes, shares = list[Outcome](), list[list[Share]]()
    for it, slot in enumerate(cells.slots):
        mine = [cells.spread(block)[it] for block in (first, second, both)]
        if it in ahead:
            former = slot.advance(mine[0])
            slot.restart()
            outcomes.append(slot.advance(replace(mine[1], progress=both.progress)))
            shares.append([*former.shares, *outcomes[-1].shares])
        else:
            slot.restart()
            outcomes.append(slot.advance(mine[2]))
            shares.append([*outcomes[-1].shares])
    outcome = cells.merge(outcomes, join_shares(shares))
    expected = single.advance(both)
    merged.apply(outcome)
    plain.apply(expected)
    assert merged.present == merged.changed
    if not any(len(events) for it in outcomes for events in it.late):
        assert merged.present == plain.present
        # A list that begins in between is written with its net change.
        blobs = [it.blob for mine in shares for it in mine if it.blob]
        if not any(SlotShare.from_bytes(it).moment.built for it in blobs):
            assert read_records(outcome) == read_records(expected)
    for block, _ in blocks[number + 2 :]:
        merged.apply(cells.advance(block))
        assert merged.present == merged.changed
    assert merged.present == {}


@pytest.mark.parametrize("report", ["batch", "every"])
@pytest.mark.parametrize("seed", range(12))
def test_p_topk_merge_events_that_are_sent_again_with_other_tokens_are_one_set(
    seed: int, report: str
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible choice, no secret

    def draw(number: int, partition: int, offset: int) -> Tagged:
        tokens = frozenset(rng.sample("abcd", 2))
        return Tagged(number, number, tokens, partition=partition, offset=offset)

    tagged = [draw(it, it % 2, it // 2) for it in range(8)]
    tagged += [draw(rng.randrange(8), it % 2, 4 + it // 2) for it in range(6)]
    last = [Tagged(30 + it, 20 + it, frozenset("z"), offset=7 + it) for it in range(2)]
    last += [replace(it, id=it.id + 2, partition=1) for it in last]
    fields = {"k": 12, "window_us": 100, "report": report}
    single, cells = GridSlots(1, 1), GridSlots(3, 2)
    plain, merged = WrittenLists(), WrittenLists()
    cut = rng.randrange(8, 14)
    for block in (
        make_tag_block([], [topk_control(0, fields)]),
        make_tag_block(tagged[:cut]),
        make_tag_block([*tagged[cut:], *last]),
    ):
        outcome, other = cells.advance(block), single.advance(block)
        assert read_records(outcome) == read_records(other)
        merged.apply(outcome)
        plain.apply(other)
        assert merged.present == plain.present
    assert merged.present


@pytest.mark.parametrize("groups", [(3, 1), (1, 3), (3, 2), (2, 2)])
@pytest.mark.parametrize("is_registered", [False, True])
def test_lists_follow_a_change_of_the_groups(
    groups: tuple[int, int], *, is_registered: bool
) -> None:
    """The list is withdrawn, and sets after the change are listed; also of a new version."""
    rng = random.Random(8)  # noqa: S311 - a reproducible choice, no secret
    slots, written = GridSlots(groups[0], 3), WrittenLists()
    fields = {"window_us": 50, "k": 4}
    tagged = [
        Tagged(it, it, frozenset(rng.sample("abcdef", 3)), partition=it % 2, offset=it // 2)
        for it in range(60)
    ]
    written.apply(slots.advance(make_tag_block(tagged[:30], [topk_control(0, fields)])))
    assert len(written.present[None]) == 4
    slots.restart(groups[1])
    controls = [topk_control(1, fields, 2)] if is_registered else []
    outcome = slots.advance(make_tag_block(tagged[30:], controls))
    written.apply(outcome)
    since = -1 if groups[0] == groups[1] else 30
    wanted = [it for it in tagged if since <= it.time <= watermarks_of(outcome)["left"] - 1]
    expected = expected_lists(PLAIN, wanted, watermarks_of(outcome)["left"] - 1, -1)
    assert written.present == written.changed == expected


def test_slots_return_shares_only_if_a_block_may_change_a_list() -> None:
    rng = random.Random(8)  # noqa: S311 - a reproducible choice, no secret
    slots = GridSlots(2, 3)

    def count(tagged: Sequence[Tagged] = (), beats: Sequence[Heartbeat] = ()) -> list[int]:
        return [len(it.shares) for it in slots.outcomes(make_tag_block(tagged, (), beats))]

    sets = [
        Tagged(it, it, frozenset(rng.sample("abcdef", 3)), partition=it % 2, offset=it // 2)
        for it in range(30)
    ]
    controls = [topk_control(0, {"window_us": 50, "k": 4})]
    begun = slots.outcomes(make_tag_block(sets, controls))
    assert [len(it.shares) for it in begun] == [1, 1, 1]
    # No records, and records of a stream that the condition does not read.
    assert count() == count([replace(sets[0], stream="right")]) == [0, 0, 0]
    # A late set is in two of the three cells; the merge needs the lists of all.
    assert count([Tagged(30, 5, frozenset("abc"), offset=15)]) == [1, 1, 1]
    # The time passes up to the last event.
    closed = [Heartbeat("left", None, CLOSED, None)]
    assert count(beats=closed) == [1, 1, 1]
    assert count(beats=closed) == [0, 0, 0]


@pytest.mark.parametrize("report", ["batch", "every"])
def test_merged_pairs_have_the_latency_of_those_of_one_cell(report: str) -> None:
    rng = random.Random(4)  # noqa: S311 - a reproducible choice, no secret
    single, cells = GridSlots(1, 1), GridSlots(3, 2)
    fields = {"window_us": 20, "k": 4, "report": report}
    tagged = [
        Tagged(it, it, frozenset(rng.sample("abcdef", 3)), partition=it % 2, offset=it // 2)
        for it in range(80)
    ]
    controls = [topk_control(0, fields)]
    for low in range(0, 80, 10):
        block = make_tag_block(tagged[low : low + 10], controls)
        cells.advance(block)
        outcome, controls = single.advance(block), []
    found = cells.totals.to_record(0)["histograms"]
    waited = [it for it in outcome.metrics["histograms"] if it[0] == "pipeline_latency_seconds"]
    assert found == waited
    ((_, _, buckets),) = found
    assert buckets["buckets"][-1][1] > 10


def test_slots_that_restart_after_a_reset_begin_like_the_others() -> None:
    """The slots agree on the times of a merge; only one of them remembers when it began."""
    slots, single = GridSlots(2, 2), GridSlots(1, 1)
    tagged = [Tagged(it, it, frozenset("ab"), partition=it % 2, offset=it // 2) for it in range(20)]
    reset = [Heartbeat("left", None, RESET, None)]
    blocks = [
        make_tag_block(tagged[:6]),
        make_tag_block(tagged[6:10], [topk_control(0, {"window_us": 50, "k": 4})]),
        # The progress is unknown until both partitions have events again.
        make_tag_block(tagged[10:11], (), reset),
        make_tag_block(tagged[11:]),
    ]
    for number, block in enumerate(blocks):
        if number == 3:
            slots.restart_part([1])
        found, wanted = slots.advance(block), single.advance(block)
        assert read_records(found) == read_records(wanted)
    assert read_records(wanted)
