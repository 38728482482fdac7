"""The kind of condition `topk_similarity`: its fields, checks, operator, plan and explanation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from correlation.condition_kind import ConditionKind, Field, Values
from correlation.lists import Lists
from correlation.resources.streams import Stream
from correlation.topk.change_format import KIND
from correlation.topk.condition import (
    BATCH,
    LIST_LIMIT,
    REPORT_CHOICES,
    SEARCH_CHOICES,
    SHORTEST,
    TopKCondition,
    build_condition,
    check_streams,
)
from correlation.topk.explain import STEPS, explain_pair
from correlation.topk.merging import join_shares, merge_shares
from correlation.topk.operator import GAUGES, METRICS, TopKOperator
from correlation.topk.plan import derive_costs, plan_condition
from correlation.topk.reading import COLUMNS, ChangeReader, events_to_explain, list_cells, list_name
from correlation.topk.results import CHANGES, PRESENT, RECORDS
from correlation.topk.similarities import SIMILARITIES
from correlation.topk.sizing import size_sample
from correlation.topk.stored import withdraw_lists
from correlation.two_streams import ROLES
from correlation.warming import Algorithms, WarmUp, usual_streams

_FIELDS = (
    Field("a", "stream", "Stream A, with tokens."),
    Field(
        "b",
        "stream",
        "Stream B: pairs are of one set of A and one of B. Default: pairs of sets of A.",
        required=False,
    ),
    Field("k", "count", "Number of pairs of the list.", maximum=LIST_LIMIT),
    Field("window", "duration", "Time for which a set takes part, after its own time."),
    Field(
        "similarity",
        "choice",
        "Order of the pairs.",
        required=False,
        default="jaccard",
        choices=tuple(SIMILARITIES),
    ),
    Field(
        "per_key",
        "flag",
        "Whether each join key has a list; requires streams partitioned by key.",
        required=False,
        default=False,
    ),
    Field(
        "min_similarity",
        "decimal",
        "Min similarity of a pair, with at most 4 decimal places.",
        required=False,
        minimum=0,
    ),
    Field(
        "max_distance",
        "count",
        "Max distance of a pair, for hamming.",
        required=False,
        minimum=0,
    ),
    Field(
        "report",
        "choice",
        "every: write the changes that each set and each expiry causes; batch: write the net "
        "change of a batch.",
        required=False,
        default=BATCH,
        choices=REPORT_CHOICES,
    ),
    Field(
        "search",
        "choice",
        "Inverted list that is read first: the shortest, or that of the newest token. Both find "
        "the same pairs.",
        required=False,
        default=SHORTEST,
        choices=SEARCH_CHOICES,
    ),
    Field("output_topic", "topic", "Topic of the changes.", required=False),
    Field(
        "where",
        "filters",
        "Filters over the attributes of the events of A and of B.",
        required=False,
        choices=ROLES,
    ),
)


def _horizon_field(condition: TopKCondition, stream: str) -> str:  # noqa: ARG001 - as all kinds
    return "window"


def _in_force(
    condition: TopKCondition,  # noqa: ARG001 - as all kinds
    streams: Mapping[str, Stream],
    held: Mapping[str, Stream],  # noqa: ARG001 - as all kinds
) -> Mapping[str, Stream]:
    """Return the streams in force: a set has one time, whatever its stream declared before."""
    return streams


def _roles(condition: TopKCondition) -> dict[str, str]:
    return {"a": condition.a, "b": condition.b}


def _warm_up(algorithms: Algorithms, shapes: str) -> WarmUp:  # noqa: ARG001 - as all kinds
    return WarmUp(usual_streams(shapes), _list_warm_up() if shapes == "intervals" else ())


def _list_warm_up() -> Iterator[Values]:
    """Yield conditions with every kernel: one and two streams, each report.

    Kernels do not depend on the similarity.
    """
    for b, report in (("d", "every"), (None, "batch")):
        yield {
            "kind": KIND,
            "a": "c",
            "b": b,
            "k": 3,
            "window_us": 2_000_000,
            "report": report,
            "similarity": "jaccard",
            "per_key": True,
            "search": "shortest",
        }


TOPK_KIND = ConditionKind(
    name=KIND,
    summary="The k most similar pairs of the token sets of a window, at every moment.",
    fields=_FIELDS,
    build=build_condition,
    check=check_streams,
    operator=TopKOperator,
    operator_streams=_in_force,
    derive=derive_costs,
    horizon_field=_horizon_field,
    plan=plan_condition,
    roles=_roles,
    explain=explain_pair,
    steps=STEPS,
    example={"kind": KIND, "a": "acoustic", "k": 10, "window": "1h"},
    open_reader=ChangeReader,
    events_to_explain=events_to_explain,
    warm_up=_warm_up,
    metrics=METRICS,
    gauges=GAUGES,
    channels=(CHANGES, PRESENT),
    lists=Lists(PRESENT, COLUMNS, list_cells, list_name),
    withdraw=withdraw_lists,
    merge_shares=merge_shares,
    join_shares=join_shares,
    horizon_remedy="reduce window or max_delay",
    measure=size_sample,
    records=RECORDS,
)
