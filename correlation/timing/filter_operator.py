"""Operator that passes only the events which a condition's filters choose to another operator.

Keep values, bounds and watermarks are those of the inner operator: they depend on the watermarks of
the streams, not on the events. Segments keep their numbers (docs/proofs.md, P-FILTER).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from correlation.buffers.filtering import choose_buffered, choose_events

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from correlation.buffers.filtering import Filters
    from correlation.operators import Evaluation, Operator, View
    from correlation.timing.conditions import TimingCondition
    from correlation.two_streams import Where


class FilterOperator:
    """Operator of a condition with filters.

    Parameters
    ----------
    condition : TimingCondition
        The condition.
    where : Where
        Its filters, with constants of the declared types.
    operator : Operator
        Evaluates the chosen events. In a self-correlation, these are the events that can be A or B.
    """

    def __init__(self, condition: TimingCondition, where: Where, operator: Operator) -> None:
        self._filters = filters_of_streams(condition.a, condition.b, where)
        self._operator = operator

    def begin(
        self, watermarks: Mapping[str, int], held_from: Mapping[str, int], before: bytes
    ) -> None:
        """See `Operator.begin`."""
        self._operator.begin(watermarks, held_from, before)

    def keep_values(self, watermarks: Mapping[str, int]) -> Mapping[str, int]:
        """See `Operator.keep_values`."""
        return self._operator.keep_values(watermarks)

    def held(self) -> Mapping[str, Collection[int]]:
        """See `Operator.held`."""
        return self._operator.held()

    def needs_timestamps(self) -> bool:
        """See `Operator.needs_timestamps`."""
        return self._operator.needs_timestamps()

    def dump(self) -> bytes:
        """See `Operator.dump`."""
        return self._operator.dump()

    def evaluate(self, view: View) -> Evaluation:
        """See `Operator.evaluate`."""
        fresh, stamps = dict(view.fresh), dict(view.record_timestamp_us)
        buffers = dict(view.buffers)
        for stream, filters in self._filters.items():
            buffers[stream] = choose_buffered(buffers[stream], filters)
            if stream not in fresh:
                continue
            chosen, rows = choose_events(fresh.pop(stream), filters)
            if chosen is not None:
                fresh[stream] = chosen
                stamps[stream] = stamps[stream][rows]
        return self._operator.evaluate(
            replace(view, fresh=fresh, record_timestamp_us=stamps, buffers=buffers)
        )


def filters_of_streams(a: str, b: str, where: Where) -> Mapping[str, Filters]:
    """Return the filters of the streams of which only some events can be in a result.

    In a self-correlation these are the events that pass the filter of either role.
    """
    filters: dict[str, Filters] = {}
    unfiltered = set()
    for stream, wanted in ((a, where.a), (b, where.b)):
        if wanted is None:
            unfiltered.add(stream)
        else:
            filters[stream] = filters.get(stream, frozenset()) | {wanted}
    return {stream: it for stream, it in filters.items() if stream not in unfiltered}
