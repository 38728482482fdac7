"""A kind of condition whose operator fails with large blocks, as if memory was short.

The entry point in `fragile_kind-1.dist-info` registers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from correlation.operators import Evaluation, View
from correlation.warming import Algorithms, WarmUp
from tests.toy.toy_kind import KINDS as TOY_KINDS
from tests.toy.toy_kind import LongEvents, LongEventsOperator

NAME = "fragile_event"
MAX_EVENTS = 100


class FragileOperator(LongEventsOperator):
    """Finds long events, unless a block has too many events."""

    def evaluate(self, view: View) -> Evaluation:
        """See `Operator.evaluate`."""
        for fresh in view.fresh.values():
            if len(fresh) > MAX_EVENTS:
                raise MemoryError(f"a block has {len(fresh)} events")
        return super().evaluate(view)


def _build(name: str, version: int, values: Mapping[str, Any]) -> LongEvents:
    (toy,) = TOY_KINDS
    found = toy.build(name, version, values)
    assert isinstance(found, LongEvents)
    return replace(found, kind=NAME)


def _warm_up(algorithms: Algorithms, shapes: str) -> WarmUp:
    (toy,) = TOY_KINDS
    found: WarmUp = toy.warm_up(algorithms, shapes)
    return found._replace(documents=[{**it, "kind": NAME} for it in found.documents])


KINDS = [
    replace(
        TOY_KINDS[0],
        name=NAME,
        summary="Long events, of small blocks only.",
        build=_build,
        operator=FragileOperator,
        example={**TOY_KINDS[0].example, "kind": NAME},
        warm_up=_warm_up,
        metrics={},
        replay_summary=None,
    )
]
