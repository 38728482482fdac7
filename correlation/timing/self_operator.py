"""Operator of a self-correlation whose roles have different filters.

Problem. Find the pairs of events of one stream of which A passes one filter and B the other. An
event that passes both does not form a pair with itself.

Algorithm. The search of `timing.operator`, on the events that each role chooses. Its pairs are then
expressed as rows of the whole segments, in which the order of A and B is decided: a pair is
reported in the other order only if the first one does not satisfy the condition or its filters
(docs/proofs.md, P-FILTER). An event that was found with itself is dropped by the same rule: neither
order is the first one, and the other one is satisfied as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from correlation.buffers.filtering import choose_events, matches_rows
from correlation.timing.intervals.meetings import may_meet
from correlation.timing.operator import TimingOperator

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, MutableMapping

    import numpy as np
    from numpy.typing import NDArray

    from correlation.buffers.columns import Int64s
    from correlation.buffers.segment import Segment
    from correlation.operators import Evaluation, View
    from correlation.resources.filters import Filter
    from correlation.resources.streams import Stream
    from correlation.timing.alarms import PairBatch
    from correlation.timing.conditions import TimingCondition
    from correlation.timing.operator import Met, Search
    from correlation.two_streams import Where


class SelfOperator(TimingOperator):
    """Operator of a self-correlation with filters.

    Parameters
    ----------
    condition, streams
        As in `TimingOperator`; A and B are the same stream.
    where : Where
        The filters, with constants of the declared types.
    """

    def __init__(
        self, condition: TimingCondition, streams: Mapping[str, Stream], where: Where
    ) -> None:
        super().__init__(condition, streams)
        self._where = where
        # The whole segment, and the rows in it, of each segment of chosen events of the block.
        self._origins: dict[int, tuple[Segment, Int64s]] = {}

    def evaluate(self, view: View) -> Evaluation:
        """See `Operator.evaluate`."""
        try:
            return super().evaluate(view)
        finally:
            # The searches of the block keep the former ones.
            self._origins = {}

    def _searches(self, view: View) -> Iterator[Search]:
        for search in super()._searches(view):
            yield search._replace(origins=self._origins)

    def _segments(self, view: View) -> Iterator[tuple[Segment, Segment, bool]]:
        for base, target, base_is_a in super()._segments(view):
            roles = self._where if base_is_a else self._where[::-1]
            mine, others = self._choose(base, roles[0]), self._choose(target, roles[1])
            if mine is None or others is None:
                continue
            a, b = (mine, others) if base_is_a else (others, mine)
            if may_meet(a, b, self._reach):
                yield mine, others, base_is_a

    def _choose(self, segment: Segment, wanted: Filter | None) -> Segment | None:
        if wanted is None:
            return segment
        chosen = choose_events(segment, frozenset({wanted}))
        if chosen.segment is not None and chosen.segment is not segment:
            self._origins[id(chosen.segment)] = (segment, chosen.rows)
        return chosen.segment

    def _meet(self, search: Search, shared: MutableMapping[Hashable, object]) -> Met:
        met = super()._meet(search, shared)
        pairs = met.pairs
        (a, a_rows), (b, b_rows) = (
            _original(search, *it) for it in ((pairs.a, pairs.a_rows), (pairs.b, pairs.b_rows))
        )
        return met._replace(pairs=replace(pairs, a=a, a_rows=a_rows, b=b, b_rows=b_rows))

    def _is_satisfied_swapped(self, pairs: PairBatch, places: Int64s) -> NDArray[np.bool_]:
        a_rows, b_rows = pairs.a_rows[places], pairs.b_rows[places]
        may_swap = matches_rows(pairs.b, b_rows, self._where.a)
        may_swap &= matches_rows(pairs.a, a_rows, self._where.b)
        return may_swap & super()._is_satisfied_swapped(pairs, places)


def _original(search: Search, segment: Segment, rows: Int64s) -> tuple[Segment, Int64s]:
    """Return rows of a segment of a search as rows of the whole segment."""
    if id(segment) not in search.origins:
        return segment, rows
    whole, chosen = search.origins[id(segment)]
    return whole, chosen[rows]
