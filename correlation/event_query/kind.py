"""The kind of condition `event_query`: its fields, checks, operator, plan and explanation."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from correlation.condition_kind import ConditionKind, Field, Values
from correlation.event_query.absence.drawing import draw_explanation
from correlation.event_query.alarm_format import KIND
from correlation.event_query.building import build_condition, named_streams, stored_query
from correlation.event_query.checking import check_streams, choose_streams
from correlation.event_query.evaluation.operator import METRICS, EventQueryOperator
from correlation.event_query.explain import STEPS, explain_combination, find_stopping
from correlation.event_query.picture import draw_constraints
from correlation.event_query.plan import derive_costs, plan_query
from correlation.event_query.reading import QueryResultReader, events_to_explain
from correlation.event_query.record_types import RECORDS
from correlation.event_query.warnings import find_warnings
from correlation.explaining import SearchEffect
from correlation.warming import Algorithms, WarmUp, usual_streams

if TYPE_CHECKING:
    from correlation.event_query.condition import EventQueryCondition

_RUNNING_EXAMPLE = """\
DETECT Alarm {area {var X}}
ON event s: Smoke {area {var X}}
   not event r: Report {area {var X}}
WHERE s.rt.end <= r.rt.begin,
      r.rt.begin <= s.rt.end + 5 min
END"""
# One positive event and a negated one, later or earlier, with windows that share a search; several
# positive events; both, with alternatives.
_WARM_UP = (
    *(
        f"""DETECT W {{area {{var X}}}} ON event x: c {{area {{var X}}}}
        not event y: d {{area {{var X}}}}
        WHERE {first}.rt.end < {last}.rt.begin, {last}.rt.begin <= {first}.rt.end + {window} ms END
        """
        for first, last in ("xy", "yx")
        for window in (200, 250)
    ),
    """DETECT W ON event x: c {area {var X}} event y: d {area {var X}, level {>= 1}}
    WHERE x.rt.end <= y.rt.begin, y.rt.end <= x.rt.end + 300 ms END""",
    """DETECT W ON event x: c {level {3}} event y: d not event z: c {area {"area 1"}}
    WHERE (x.rt.end <= y.rt.end and y.rt.end <= x.rt.end + 200 ms)
      or (y.rt.end < x.rt.end and x.rt.end <= y.rt.end + 100 ms),
      z.rt.end > max(x.rt.end, y.rt.end), z.rt.end <= min(x.rt.end, y.rt.end) + 400 ms END""",
)
# An uncertain positive event with a relation, with exact and uncertain negated events, one of which
# is related to another exact event; and exact positive events. The first one's own stream is
# negated.
_WARM_UP_UNCERTAIN = (
    """DETECT W ON event x: a event e: c not event y: d not event z: a not event w: b
    WHERE x.rt.end >= e.rt.end, x.rt.end <= e.rt.end + 200 ms,
      y.rt.end >= x.rt.end + 20 ms, y.rt.end <= x.rt.end + 30 ms,
      z.rt.end > x.rt.end, z.rt.end < x.rt.end + 10 ms,
      w.rt.end > x.rt.end, w.rt.end < e.rt.end + 210 ms END""",
    """DETECT W {area {var X}} ON event x: c {area {var X}} event y: d {area {var X}} not event z: b
    WHERE x.rt.end <= y.rt.begin, y.rt.end <= x.rt.end + 300 ms,
      z.rt.end > x.rt.end + 10 ms, z.rt.end < y.rt.end + 20 ms END""",
)
_FIELDS = (
    Field(
        "query",
        "text_or_object",
        "The query: text of the event query language, or its JSON form.",
        read=stored_query,
    ),
    Field(
        "types",
        "names",
        "Streams of event types; a type that is missing names its stream in lower case.",
        required=False,
    ),
    Field(
        "threshold",
        "probability",
        "Min probability of a result, 0 < ct <= 1; required if a stream has uncertain instants, "
        "otherwise not allowed.",
        required=False,
    ),
    Field("output_topic", "topic", "Topic of the results.", required=False),
)
_HORIZON_REMEDY = (
    "narrow the relations of the query, or reduce max_delay, or max_length of events that last"
)


def _horizon_field(condition: EventQueryCondition, stream: str) -> str:  # noqa: ARG001 - as all kinds
    """Return the field whose relations set how long the events of every stream are kept."""
    return "query"


def _roles(condition: EventQueryCondition) -> dict[str, str]:
    return condition.stream_of


def _optional_roles(condition: EventQueryCondition) -> Collection[str]:
    return [event.alias for event in condition.query.negated]


def _warm_up(algorithms: Algorithms, shapes: str) -> WarmUp:  # noqa: ARG001 - as all kinds
    return WarmUp(usual_streams(shapes), _list_warm_up(shapes))


def _list_warm_up(shapes: str) -> Iterator[Values]:
    """Yield a query for each way of evaluation, on streams of exact and of uncertain instants.

    The algorithm is not chosen by the user. Templates take the kernels of histograms.
    """
    if shapes == "intervals":
        for text in _WARM_UP:
            yield {"kind": KIND, "query": text}
    for text in _WARM_UP_UNCERTAIN:
        yield {"kind": KIND, "query": text, "threshold": "0.3"}


EVENT_QUERY_KIND = ConditionKind(
    name=KIND,
    summary="Combinations of positive events for which no negated event exists.",
    fields=_FIELDS,
    build=build_condition,
    check=check_streams,
    operator=EventQueryOperator,
    operator_streams=choose_streams,
    derive=derive_costs,
    horizon_field=_horizon_field,
    plan=plan_query,
    roles=_roles,
    explain=explain_combination,
    draw_explanation=draw_explanation,
    steps=STEPS,
    example={"kind": KIND, "query": _RUNNING_EXAMPLE},
    open_reader=QueryResultReader,
    warm_up=_warm_up,
    metrics=METRICS,
    named_streams=named_streams,
    optional_roles=_optional_roles,
    events_to_explain=events_to_explain,
    search=find_stopping,
    search_effect=SearchEffect("stop", "the combination"),
    picture=draw_constraints,
    names_events=True,
    horizon_remedy=_HORIZON_REMEDY,
    warn=find_warnings,
    records=RECORDS,
)
