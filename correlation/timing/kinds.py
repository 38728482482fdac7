"""The four kinds of timing conditions: their fields, checks, operators and plans."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from correlation.condition_kind import ConditionKind, Field, Values
from correlation.limits import PAIRS_LIMIT
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
from correlation.timing.counters import METRICS, RATIOS, SUMMARY, find_missing
from correlation.timing.drawing import draw_explanation
from correlation.timing.explain import STEPS, explain_pair
from correlation.timing.factored.operator import FactoredOperator
from correlation.timing.filter_operator import FilterOperator
from correlation.timing.final_operator import FinalOperator
from correlation.timing.operator import TimingOperator
from correlation.timing.plan import derive_costs, find_warnings, measure_chance, plan_condition
from correlation.timing.reading import AlarmReader, events_to_explain
from correlation.timing.record_types import timing_records
from correlation.timing.self_operator import SelfOperator
from correlation.two_streams import NO_FILTERS, ROLES
from correlation.warming import Algorithms, WarmUp, usual_streams

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from correlation.operators import Operator
    from correlation.resources.streams import Stream

_COMMON = (
    Field("a", "stream", "Stream A."),
    Field("b", "stream", "Stream B; the same as A for a self-correlation."),
    Field("threshold", "probability", "Confidence threshold: the min probability, 0 < ct <= 1."),
    Field(
        "report_probability",
        "flag",
        "Whether alarms contain their probability.",
        required=False,
        default=True,
    ),
    Field(
        "algorithm",
        "choice",
        "Algorithm that finds the pairs; all return the same pairs.",
        required=False,
        default=DEFAULT_ALGORITHM,
        choices=ALGORITHM_CHOICES,
    ),
    Field("output_topic", "topic", "Topic of the alarms.", required=False),
    Field(
        "emit",
        "choice",
        "pairs: report every satisfied pair; best: the most probable B of each A; unmatched: each "
        "A without a B. best and unmatched wait until no further B can arrive.",
        required=False,
        default=PAIRS,
        choices=EMIT_CHOICES,
    ),
    Field(
        "output",
        "choice",
        "pairs: write one record per pair; factored: one record per event of a block, which "
        "contains the range and the bitmaps of its matching events.",
        required=False,
        default=PAIRS,
        choices=OUTPUT_CHOICES,
    ),
    Field(
        "block_size",
        "count",
        "Number of events evaluated as one block; default: the events of a micro-batch.",
        required=False,
    ),
    Field(
        "block_interval",
        "duration",
        "Max time that events wait for a full block; requires block_size.",
        required=False,
        default=DEFAULT_INTERVAL_US,
    ),
    Field(
        "max_pairs",
        "count",
        "A slot reports at most this number of pairs of a block. Default: no limit.",
        required=False,
        maximum=PAIRS_LIMIT,
    ),
    Field(
        "where",
        "filters",
        "Filters over the attributes of the events of A and of B.",
        required=False,
        choices=ROLES,
    ),
)
_HORIZON = Field(
    "horizon", "duration", "Max distance of the latest times of A and B; other pairs are ignored."
)
# Durations of the warm-up's conditions: the horizon must reach past the others.
_WARM_UP_US = {"horizon_us": 10_000_000, "lower_us": 0}
_KINDS: Mapping[str, tuple[str, tuple[Field, ...], Mapping[str, str]]] = {
    "mutual_deadline": (
        "A and B occur within a window of each other: |T_A - T_B| <= window.",
        (Field("window", "duration", "Max time between A and B."),),
        {"window": "2s"},
    ),
    "within": (
        "B occurs lower to upper after A: lower <= T_B - T_A <= upper.",
        (
            Field("lower", "duration", "Min time from A to B; may be negative."),
            Field("upper", "duration", "Max time from A to B."),
        ),
        {"lower": "0s", "upper": "30s"},
    ),
    "deadline": (
        "B occurs by T_A + deadline: T_B - T_A <= deadline.",
        (Field("deadline", "duration", "Max time from A to B."), _HORIZON),
        {"deadline": "10s", "horizon": "1min"},
    ),
    "delay": (
        "B occurs at T_A + delay or later: T_B - T_A >= delay.",
        (Field("delay", "duration", "Min time from A to B."), _HORIZON),
        {"delay": "10s", "horizon": "1min"},
    ),
}

_RECORDS = timing_records(tuple(_KINDS))


def _make_operator(condition: TimingCondition, streams: Mapping[str, Stream]) -> Operator:
    if condition.emit != PAIRS:
        return FinalOperator(condition, streams)
    where = condition.bind_where(streams)
    operator: Operator
    if condition.output == FACTORED:
        operator = FactoredOperator(condition, streams)
    elif condition.a == condition.b and where.a != where.b:
        operator = SelfOperator(condition, streams, where)
    else:
        operator = TimingOperator(condition, streams)
    operator = BlockOperator(condition, operator)
    return operator if where == NO_FILTERS else FilterOperator(condition, where, operator)


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
        horizon_field=_horizon_field,
        plan=plan_condition,
        roles=_roles,
        explain=explain_pair,
        draw_explanation=draw_explanation,
        steps=STEPS,
        example={"kind": name, "a": "acoustic", "b": "seismic", **example, "threshold": "0.6"},
        open_reader=AlarmReader,
        events_to_explain=events_to_explain,
        warm_up=partial(_warm_up, name),
        metrics=METRICS,
        ratios=RATIOS,
        chance=measure_chance,
        horizon_remedy="reduce the window, horizon or max_delay",
        records=_RECORDS,
        replay_document=_without_blocks,
        replay_summary=SUMMARY,
        find_missing=find_missing,
        state="timing",
        warn=find_warnings,
    )


def _roles(condition: TimingCondition) -> dict[str, str]:
    return {"a": condition.a, "b": condition.b}


def _without_blocks(document: Values) -> Values:
    """Return the document with one record for each pair, and without a limit of its blocks."""
    return {**document, "output": PAIRS, "max_pairs": None}


def _horizon_field(condition: TimingCondition, stream: str) -> str:
    """Return the field that sets how long the events of a stream are kept.

    Events of A wait for a later B; events of B wait for an A that arrives late.
    """
    _, fields, _ = _KINDS[condition.kind]
    return fields[-1 if stream == condition.a else 0].name


def _warm_up(name: str, algorithms: Algorithms, shapes: str) -> WarmUp:
    return WarmUp(usual_streams(shapes), _list_warm_up(name, algorithms, shapes))


def _list_warm_up(name: str, algorithms: Algorithms, shapes: str) -> Iterator[Values]:
    """Yield conditions with the algorithms and every output mode, on one and on two streams.

    Parameters
    ----------
    name : str
        Name of the kind.
    algorithms : {"defaults", "all"}
        The algorithms.
    shapes : {"intervals", "templates", "histograms"}
        Shapes of the events.
    """
    used = ALGORITHM_CHOICES if algorithms == "all" else (DEFAULT_ALGORITHM,)
    # The first `emit` choice is the default; the conditions of all algorithms use it.
    ways = [("algorithm", it) for it in used] + [("emit", it) for it in EMIT_CHOICES[1:]]
    # Factored output supports only intervals of two different streams.
    ways += [("output", it) for it in OUTPUT_CHOICES[1:] if shapes == "intervals"]
    durations = {
        it.stored_name: _WARM_UP_US.get(it.stored_name, 2_000_000) for it in _KINDS[name][1]
    }
    for way, chosen in ways:
        for b in ("a", "b") if way != "output" else ("b",):
            common = {"kind": name, "a": "a", "b": b, "threshold": "0.6"}
            yield {**common, **durations, way: chosen}


TIMING_KINDS = tuple(_make_kind(name) for name in _KINDS)
