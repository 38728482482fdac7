"""Checks of an event query against its streams."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal

from correlation.errors import FieldErrors, InvalidFieldError
from correlation.event_query.condition import EventQueryCondition
from correlation.event_query.evaluation.operator import stream_times
from correlation.event_query.language.errors import error_at, error_at_time
from correlation.event_query.language.writer import write_term
from correlation.event_query.query import (
    AttributePattern,
    Comparison,
    Constant,
    EventPattern,
    Query,
    Variable,
)
from correlation.event_query.relevance.analysis import (
    Relevance,
    may_begin_before_it_ends,
    may_end_before_it_begins,
)
from correlation.event_query.relevance.cached import RELEVANCES
from correlation.event_query.relevance.closure import StreamTimes
from correlation.resources.attributes import AttributeType
from correlation.resources.streams import Stream

# Types of attributes that a constant can be compared with.
_COMPARABLE: tuple[tuple[type | tuple[type, ...], frozenset[AttributeType], str], ...] = (
    (bool, frozenset({"boolean"}), "true or false"),
    (str, frozenset({"string"}), "a string"),
    ((int, Decimal), frozenset({"integer", "number"}), "a number"),
)


def times_of(
    condition: EventQueryCondition, streams: Mapping[str, Stream]
) -> dict[str, StreamTimes]:
    """Return the lengths of the events of each type."""
    return {
        event.type: stream_times(streams[condition.stream_of[event.alias]])
        for event in condition.query.events
    }


def relevance_of(condition: EventQueryCondition, streams: Mapping[str, Stream]) -> Relevance:
    """Return the relevance analysis of a condition on its streams.

    Raises
    ------
    InvalidFieldError
        The query is not bounded, or too large; the error has the place of the event or formula.
    """
    try:
        return RELEVANCES.analyse(condition.query, times_of(condition, streams))
    except InvalidFieldError as error:
        errors = FieldErrors()
        for it in error.problems:
            with errors:
                raise error_at(condition.query, it.field, it.problem, it.remedy) from None
        errors.raise_all()
        raise


def check_streams(condition: EventQueryCondition, streams: Mapping[str, Stream]) -> None:
    """Refuse streams on which the query cannot be evaluated.

    Parameters
    ----------
    condition : EventQueryCondition
        The condition.
    streams : mapping of name to Stream
        The streams of the condition.

    Raises
    ------
    InvalidFieldError
        The streams are partitioned differently or by a grid of several groups; an attribute is not
        declared or has another type; a threshold is missing or has no meaning; the query would
        need unbounded memory; or a result may end before it begins.
    """
    errors = FieldErrors()
    with errors:
        _check_partitioning(condition, streams)
    for error in _attribute_errors(condition, streams):
        with errors:
            raise error
    with errors:
        _check_uncertainty(condition, streams)
    with errors:
        relevance_of(condition, streams)
        check_order(condition.query, times_of(condition, streams))
    errors.raise_all()


def check_order(query: Query, types: Mapping[str, StreamTimes]) -> None:
    """Refuse a query whose result may end before it begins.

    Parameters
    ----------
    query : Query
        A query that is bounded on the streams.
    types : mapping of event type to StreamTimes
        Stream of each event type.

    Raises
    ------
    InvalidFieldError
        The relations among the positive events do not imply that the begin is at most the end.
    """
    if may_end_before_it_begins(query, types):
        begin, end = (write_term(it) for it in (query.begin, query.end))
        may, add = "may end", f"add the relation `{begin} <= {end}`, or "
        if not may_begin_before_it_ends(query, types):
            may, add = "ends", ""
        raise error_at_time(
            query,
            f"a result {query.type} {may} before it begins: its begin is {begin} and its end is "
            f"{end}",
            f"{add}state another time of the result",
        )


def is_uncertain(stream: Stream) -> bool:
    """Return whether the instants of a stream's events are uncertain."""
    return not stream.lasts and stream.max_uncertainty_us > 0


def choose_streams(
    condition: EventQueryCondition, streams: Mapping[str, Stream], held: Mapping[str, Stream]
) -> Mapping[str, Stream]:
    """Return the streams that the operator of a query is built with.

    They have the limits of all buffered events if the query can be evaluated on them. Otherwise the
    streams whose instants are declared exact are exact: the operator leaves out their older events
    with uncertain instants.

    Parameters
    ----------
    condition : EventQueryCondition
        The condition.
    streams : mapping of name to Stream
        The streams in force, which `check_streams` accepts.
    held : mapping of name to Stream
        The same streams with the limits of all buffered events.
    """
    try:
        _check_uncertainty(condition, held)
    except InvalidFieldError:
        return {name: _as_declared(streams[name], held[name]) for name in condition.streams}
    return held


def _as_declared(stream: Stream, held: Stream) -> Stream:
    """Return a stream with the limits of its buffered events, but exact if it is declared so."""
    if stream.lasts or is_uncertain(stream):
        return held
    return replace(held, min_uncertainty_us=0, max_uncertainty_us=0)


def _check_partitioning(condition: EventQueryCondition, streams: Mapping[str, Stream]) -> None:
    query, first = condition.query, condition.streams[0]
    for place, name in enumerate(condition.stream_of.values()):
        partitioning = streams[name].partitioning
        if partitioning != streams[first].partitioning:
            raise error_at(
                query,
                f"events[{place}]",
                f"stream {name} is partitioned by {partitioning}, but {first} by "
                f"{streams[first].partitioning}: their events do not meet",
                "register the streams with the same partitioning",
            )
    if streams[first].partitioning.groups > 1:
        raise error_at(
            query,
            "events[0]",
            f"the streams are partitioned by {streams[first].partitioning}: only two events at a "
            "time meet in a cell, and a cell cannot tell that an event is absent from all others",
            "register the streams with a key, or with a grid of 1 group",
        )


def _attribute_errors(
    condition: EventQueryCondition, streams: Mapping[str, Stream]
) -> Iterator[InvalidFieldError]:
    """Yield the attributes that are not declared, and values of other types than declared."""
    # Event, attribute and type at the first mention of each variable.
    bound: dict[str, tuple[str, AttributeType]] = {}
    query = condition.query
    for number, event in enumerate(query.events):
        stream = streams[condition.stream_of[event.alias]]
        types = {it.name: it.type for it in stream.attributes}
        for place, attribute in enumerate(event.attributes):
            path = f"events[{number}].attributes[{place}]"
            shown = f"event {event.alias}: attribute {attribute.name}"
            if attribute.name not in types:
                yield error_at(query, path, *_undeclared(event, attribute, stream))
                continue
            found = types[attribute.name]
            if isinstance(attribute.pattern, Variable):
                variable = attribute.pattern.name
                other, expected = bound.setdefault(variable, (shown, found))
                if found != expected:
                    yield error_at(
                        query,
                        path,
                        f"variable {variable} has the type {expected} ({other}), but {shown} of "
                        f"stream {stream.name} has the type {found}",
                        "declare both attributes with one type, or use two variables",
                    )
            elif (problem := _misfit(attribute.pattern, found)) is not None:
                yield error_at(
                    query,
                    path,
                    f"{shown} of stream {stream.name} has the type {found}, but is compared with "
                    f"{problem}",
                    f"write {_constant_of(found)}, or change the type of the attribute",
                )


def _undeclared(
    event: EventPattern, attribute: AttributePattern, stream: Stream
) -> tuple[str, str]:
    """Return problem and remedy."""
    near = difflib.get_close_matches(attribute.name, [it.name for it in stream.attributes])
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return (
        (
            f"event {event.alias}: stream {stream.name} does not declare the attribute "
            f"{attribute.name}"
        ),
        f"{hint}declare it in attributes of the stream, or remove it",
    )


def _misfit(pattern: Comparison, found: AttributeType) -> str | None:
    """Return the kind of the constant if an attribute of a type cannot be compared with it."""
    shown, types = _kind_of(pattern.constant)
    return None if found in types else shown


def _kind_of(constant: Constant) -> tuple[str, frozenset[AttributeType]]:
    return next((shown, types) for kind, types, shown in _COMPARABLE if isinstance(constant, kind))


def _constant_of(found: AttributeType) -> str:
    return next(shown for _, types, shown in _COMPARABLE if found in types)


def _check_uncertainty(condition: EventQueryCondition, streams: Mapping[str, Stream]) -> None:
    """Check the threshold, and that the probability of a combination can be computed."""
    uncertain = [name for name in condition.streams if is_uncertain(streams[name])]
    query, stream_of = condition.query, condition.stream_of
    paths = {event.alias: f"events[{place}]" for place, event in enumerate(query.events)}
    positive = [it.alias for it in query.positive if stream_of[it.alias] in uncertain]
    errors = FieldErrors()
    with errors:
        if len(positive) > 1:
            raise error_at(
                query,
                paths[positive[1]],
                f"the positive events {' and '.join(positive)} have uncertain instants; the "
                "probability of such combinations is not supported",
                "use at most one positive event of streams whose max_uncertainty is not 0",
            )
    errors.refuse(
        "threshold",
        f"is missing: the instants of {', '.join(uncertain)} are uncertain, so a combination has a "
        "probability",
        "add a threshold, such as 0.9",
        when=bool(uncertain) and condition.threshold is None,
    )
    errors.refuse(
        "threshold",
        "has no meaning: the times of all streams of the query are exact",
        "remove it",
        when=not uncertain and condition.threshold is not None,
    )
    errors.raise_all()
