"""Steps of local lists, applied one by one, against lists that are sorted again for each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from hypothesis import given
from hypothesis import strategies as st

from correlation.operators import OutputRecord, Result
from correlation.topk.condition import TopKCondition
from correlation.topk.listed import ListedPair, Move, SetRef, list_moves
from correlation.topk.local import ADVANCED, LocalList, Moment, Order, SlotShare, Step, is_expiry
from correlation.topk.merging import merge_lists, merge_shares
from correlation.topk.results import KeyedMoves, TopKChanges, present_lists
from correlation.topk.similarities import OVERLAP

MOMENT = Moment(as_of_us=30, previous_us=0)
# Pairs with few different similarities and sets, so that many are equally similar.
PAIRS = [
    ListedPair(key, key, SetRef(older, 0, b"o", 9), SetRef(newer, 0, b"y", 9))
    for key in (1, 2)
    for older in (1, 2)
    for newer in (5, 6)
]


def order_of(pair: ListedPair) -> tuple[object, ...]:
    """Return the place of a pair in the order of pairs."""
    return -pair.key, -pair.older.time_us, pair.newer.time_us


class Sorted:
    """The lists of all cells, sorted for each step."""

    def __init__(self, lists: Sequence[LocalList], k: int) -> None:
        self.copies = Counter(pair for it in lists for pair in it.before)
        self.k = k

    def best(self) -> list[ListedPair]:
        """Return the first k pairs."""
        return sorted(+self.copies, key=order_of)[: self.k]

    def apply(self, steps: Sequence[Step]) -> None:
        """Apply steps of the same event."""
        for step in steps:
            self.copies.subtract(step.left)
            self.copies.update(step.entered)


def grouped(lists: Sequence[LocalList]) -> list[tuple[Order, list[Step]]]:
    """Return the steps of all lists by event, in order."""
    steps = sorted((step for it in lists for step in it.steps), key=attrgetter("order"))
    return [(order, [*group]) for order, group in groupby(steps, attrgetter("order"))]


def expected_records(condition: TopKCondition, lists: Sequence[LocalList]) -> list[OutputRecord]:
    """Return the records of a condition that reports every event."""
    found, moves = Sorted(lists, condition.k), list[Move]()
    for order, steps in grouped(lists):
        before = found.best()
        found.apply(steps)
        reason = "expiry" if is_expiry(order) else "set"
        moves += list_moves(before, found.best(), steps[0].time_us, reason)
    results: list[Result] = []
    if moves:
        changes = TopKChanges(condition, [KeyedMoves(None, moves)])
        results = [changes, present_lists(condition, MOMENT.as_of_us, [(None, found.best())])]
    return [record for it in results for record in it.records(7)]


@st.composite
def local_lists(draw: st.DrawFn) -> list[LocalList]:
    """Draw the local lists of some slots; a pair may be in several of them."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        present = draw(st.sets(st.sampled_from(PAIRS)))
        before, steps = sorted(present), list[Step]()
        times = draw(st.sets(st.integers(1, 6)))
        for time_us in sorted(times):
            left = draw(st.sets(st.sampled_from(sorted(present)))) if present else set()
            entered = draw(st.sets(st.sampled_from(PAIRS))) - present
            order = (ADVANCED, time_us, draw(st.integers(0, 1)), 0, b"")
            steps.append(Step(order, time_us, sorted(left), sorted(entered)))
            present = (present - left) | entered
        found.append(LocalList(before, steps))
    return found


@given(lists=local_lists(), k=st.sampled_from([1, 2, 3, 5, 100]))
def test_changes_of_every_step_are_those_of_sorted_lists(lists: list[LocalList], k: int) -> None:
    condition = TopKCondition("c", 3, "left", "left", k, 10, OVERLAP, every=True)
    blobs = [SlotShare(condition, MOMENT, it).to_bytes() for it in lists]
    written = [record for it in merge_shares(blobs).results for record in it.records(7)]
    assert written == expected_records(condition, lists)


@given(lists=local_lists(), k=st.sampled_from([1, 2, 3, 5, 100]))
def test_steps_of_a_merged_list_lead_from_sorted_list_to_sorted_list(
    lists: list[LocalList], k: int
) -> None:
    merged, found = merge_lists(lists, k), Sorted(lists, k)
    assert merged.before == found.best()
    steps = {it.order: it for it in merged.steps}
    for order, group in grouped(lists):
        before = found.best()
        found.apply(group)
        after = found.best()
        left = [it for it in before if it not in after]
        entered = [it for it in after if it not in before]
        step = steps.pop(order, None)
        # A step without changes is left out.
        assert (step is None) == (before == after)
        if step is not None:
            assert step == Step(order, group[0].time_us, left, entered)
    assert steps == {}
