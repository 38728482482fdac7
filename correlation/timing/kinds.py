"""The four kinds of timing conditions, as the rest of the software sees them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from correlation.operators import ConditionKind, Field
from correlation.timing.block_operator import BlockOperator
from correlation.timing.conditions import (
    ALGORITHM_CHOICES,
    DEFAULT_ALGORITHM,
    DEFAULT_INTERVAL_US,
    EMIT_CHOICES,
    FACTORED,
    OUTPUT_CHOICES,
    PAIRS,
    TimingCondition,
    build_condition,
    check_streams,
)
from correlation.timing.explain import explain_pair
from correlation.timing.factored.operator import FactoredOperator
from correlation.timing.final_operator import FinalOperator
from correlation.timing.operator import TimingOperator
from correlation.timing.plan import derive_costs, plan_condition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from correlation.operators import Operator
    from correlation.resources.streams import Stream

_COMMON = (
    Field("a", "stream", "Stream A."),
    Field("b", "stream", "Stream B; the same as A for a self-correlation."),
    Field("threshold", "decimal", "Confidence threshold: the least probability, 0 < ct <= 1."),
    Field(
        "report_probability",
        "flag",
        "Whether alarms carry their probability.",
        required=False,
        default=True,
    ),
    Field(
        "algorithm",
        "choice",
        "How pairs are found; the result is the same.",
        required=False,
        default=DEFAULT_ALGORITHM,
        choices=ALGORITHM_CHOICES,
    ),
    Field("output_topic", "topic", "Topic of the alarms.", required=False),
    Field(
        "emit",
        "choice",
        "What is reported: every satisfied pair, the most probable B of each A, or each A without "
        "a B. The latter two wait until no B can come any more.",
        required=False,
        default=PAIRS,
        choices=EMIT_CHOICES,
    ),
    Field(
        "output",
        "choice",
        "How pairs are written: a record for each, or factored: a record for each event of a "
        "block, with the range and the bitmaps of all that it is a pair with.",
        required=False,
        default=PAIRS,
        choices=OUTPUT_CHOICES,
    ),
    Field(
        "block_size",
        "count",
        "So many events are evaluated together; without it, what a micro-batch brings.",
        required=False,
    ),
    Field(
        "block_interval",
        "duration",
        "Events wait no longer than this for a block to fill; only with block_size.",
        required=False,
        default=DEFAULT_INTERVAL_US,
    ),
)
_HORIZON = Field(
    "horizon", "duration", "Pairs whose latest times are farther apart are not looked at."
)
_KINDS: Mapping[str, tuple[str, tuple[Field, ...], Mapping[str, str]]] = {
    "mutual_deadline": (
        "A and B happen within a window of each other: |T_A - T_B| <= window.",
        (Field("window", "duration", "Greatest distance of A and B."),),
        {"window": "2s"},
    ),
    "within": (
        "B happens lower to upper after A: lower <= T_B - T_A <= upper.",
        (
            Field("lower", "duration", "Least time from A to B; may be negative."),
            Field("upper", "duration", "Greatest time from A to B."),
        ),
        {"lower": "0s", "upper": "30s"},
    ),
    "deadline": (
        "B happens by T_A + deadline: T_B - T_A <= deadline.",
        (Field("deadline", "duration", "Greatest time from A to B."), _HORIZON),
        {"deadline": "10s", "horizon": "1min"},
    ),
    "delay": (
        "B happens no sooner than T_A + delay: T_B - T_A >= delay.",
        (Field("delay", "duration", "Least time from A to B."), _HORIZON),
        {"delay": "10s", "horizon": "1min"},
    ),
}


def _make_operator(condition: TimingCondition, streams: Mapping[str, Stream]) -> Operator:
    if condition.output == FACTORED:
        return BlockOperator(condition, FactoredOperator(condition, streams))
    if condition.emit == PAIRS:
        return BlockOperator(condition, TimingOperator(condition, streams))
    return FinalOperator(condition, streams)


def _make_kind(name: str) -> ConditionKind:
    summary, fields, example = _KINDS[name]
    return ConditionKind(
        name=name,
        summary=summary,
        fields=(*_COMMON[:2], *fields, *_COMMON[2:]),
        build=partial(build_condition, name),
        check=check_streams,
        operator=_make_operator,
        derive=derive_costs,
        plan=plan_condition,
        explain=explain_pair,
        example={"kind": name, "a": "acoustic", "b": "seismic", **example, "threshold": "0.6"},
    )


TIMING_KINDS = tuple(_make_kind(name) for name in _KINDS)
