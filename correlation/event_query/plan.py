"""Cost estimate and evaluation plan of an event query, for display."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from correlation.condition_kind import Load
from correlation.event_query.checking import relevance_of
from correlation.event_query.condition import EventQueryCondition
from correlation.event_query.language.writer import describe_time, write_query, write_term
from correlation.event_query.relevance.analysis import Relevance
from correlation.event_query.relevance.describe import describe_relevance
from correlation.event_query.warnings import find_warnings
from correlation.resources.streams import Stream

_SHARING = (
    "one buffer per stream and slot, shared by all conditions on the stream; its events are "
    "deleted when no condition needs them; queries with equal positive parts and different negated "
    "events share one search where the times that they decide overlap"
)


def derive_costs(
    condition: EventQueryCondition, streams: Mapping[str, Stream], load: Load
) -> dict[str, Any]:
    """Compute the expected costs of a query before it is registered.

    Parameters
    ----------
    condition : EventQueryCondition
        The condition.
    streams : mapping of name to Stream
        Its streams.
    load : Load
        Events per second of the streams, as far as known.

    Returns
    -------
    dict
        buffer_horizon_us: how long after its latest time an event of each stream is kept while all
        streams keep their max_delay. worst_case_alarm_latency_us: time from the last end of a
        combination until its result is final. can_be_satisfied: whether any times satisfy the
        relations. If the query can never have a result: warnings, sentences on the reason. If the
        rates of all streams are known: expected_buffered_events.

    Notes
    -----
    The progress of a stream S is behind its clock by max_delay and, if it is live and silent,
    max_skew: delay(S). The progress of the results B = min over S of P(S) + lead(S) is behind by
    max over S of delay(S) - lead(S), and an event with the time v and the keep offset k is deleted
    when B >= v - k. A result with the time T is final when B >= T.
    """
    relevance = relevance_of(condition, streams)
    behind = _behind_us(relevance, streams)
    latency = behind + int(relevance.time_after_last_end()) if relevance.satisfiable else 0
    horizons = {
        name: max(0, behind - int(by)) if math.isfinite(by) else 0
        for name, by in relevance.keep_values(0).items()
    }
    derived: dict[str, Any] = {
        "buffer_horizon_us": horizons,
        "worst_case_alarm_latency_us": latency,
        "can_be_satisfied": relevance.satisfiable,
    }
    if warnings := find_warnings(condition, streams):
        derived["warnings"] = warnings
    if all(name in load.rates for name in condition.streams):
        derived["expected_buffered_events"] = {
            name: round(load.rates[name] * horizon / 1e6) for name, horizon in horizons.items()
        }
    return derived


def plan_query(condition: EventQueryCondition, streams: Mapping[str, Stream]) -> dict[str, Any]:
    """Return a description of how the query is evaluated.

    Parameters
    ----------
    condition : EventQueryCondition
        The condition.
    streams : mapping of name to Stream
        Its streams.

    Returns
    -------
    dict
        sentences, warnings, satisfiable, query (canonical text), result (begin and end as text),
        streams (by alias), progress, keep and closure as in `describe_relevance`, threshold,
        sharing and partitioning.
    """
    described = describe_relevance(relevance_of(condition, streams))
    partitioning = streams[condition.streams[0]].partitioning
    why = "events with equal keys meet in the slot of the key"
    if partitioning.by != "key":
        why = "all events meet in one slot"
    return {
        "sentences": [*describe_time(condition.query), *described.pop("sentences")],
        "warnings": find_warnings(condition, streams),
        "query": write_query(condition.query),
        "result": {
            "begin": write_term(condition.query.begin),
            "end": write_term(condition.query.end),
        },
        "streams": condition.stream_of,
        **described,
        "threshold": None if condition.threshold is None else f"{condition.threshold:f}",
        "sharing": _SHARING,
        "partitioning": {"by": partitioning.by, "why": why},
    }


def _behind_us(relevance: Relevance, streams: Mapping[str, Stream]) -> int:
    """Return the time from the time of a result until it is final, in µs; it may be negative."""
    waits = [
        streams[name].watermark_delay_us - int(by)
        for name, by in relevance.progress.leads.items()
        if math.isfinite(by)
    ]
    return max(waits, default=0)
