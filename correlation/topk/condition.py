"""Conditions of the kind `topk_similarity`: their document, and the streams they accept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from correlation.errors import FieldErrors, InvalidFieldError
from correlation.limits import DURATION_LIMIT_US
from correlation.resources.checks import check_duration, check_name, check_topic
from correlation.resources.decimals import read_decimal
from correlation.resources.durations import format_duration
from correlation.resources.partitioning import check_meeting
from correlation.resources.records import require
from correlation.resources.role_filters import bind_role_filters, read_role_filters
from correlation.resources.streams import Stream
from correlation.topk.change_format import KIND
from correlation.topk.similarities import (
    MINIMUM_PLACES,
    SIMILARITIES,
    SIZE_LIMIT,
    Similarity,
)
from correlation.two_streams import NO_FILTERS, ROLES, Where

# Maximum length of a list: about 3 MB as a record.
LIST_LIMIT = 10_000
EVERY, BATCH = REPORT_CHOICES = ("every", "batch")
SHORTEST = "shortest"
SEARCH_CHOICES = (SHORTEST, "newest")
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class TopKCondition:
    """The k most similar pairs of the sets of a window.

    Parameters
    ----------
    name, version
        Identify the condition.
    a, b : str
        Names of the streams; equal for pairs of sets of one stream.
    k : int
        Length of the list.
    window_us : int
        Age up to which a set takes part, in µs; 1 or more.
    similarity : Similarity
        Order of the pairs.
    per_key : bool
        Whether each join key has a list.
    minimum : Fraction or None
        Minimum similarity of a pair, or maximum distance; None: no limit.
    every : bool
        Whether every set and expiry reports its changes, otherwise each batch.
    shortest : bool
        Whether the shortest inverted list is read first, otherwise that of the newest token.
    output_topic : str or None
        Topic of the changes.
    where : Where
        Filters of the events of A and of B.
    """

    name: str
    version: int
    a: str
    b: str
    k: int
    window_us: int
    similarity: Similarity
    per_key: bool = False
    minimum: Fraction | None = None
    every: bool = False
    shortest: bool = True
    output_topic: str | None = None
    where: Where = NO_FILTERS
    kind: str = KIND

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of its input streams, without duplicates."""
        return tuple(dict.fromkeys((self.a, self.b)))

    @property
    def crossed(self) -> bool:
        """Whether pairs are of sets of different streams."""
        return self.a != self.b

    @property
    def measure(self) -> str:
        """Name of the value of a pair in results: similarity or distance."""
        return "distance" if self.similarity.is_distance else "similarity"


def build_condition(name: str, version: int, values: Mapping[str, Any]) -> TopKCondition:
    """Build a condition from the values of its document.

    Raises
    ------
    InvalidFieldError
        A value is not valid; names every such field.
    """
    errors = FieldErrors()
    with errors:
        check_name(name)
    with errors:
        a = require(values, "a")
    with errors:
        k = _read_length(require(values, "k"))
    with errors:
        window_us = _read_window(require(values, "window_us"))
    with errors:
        similarity = _find_similarity(require(values, "similarity"))
        minimum = _read_minimum(similarity, values)
    with errors:
        topic = require(values, "output_topic")
        if topic is not None:
            check_topic(topic, "output_topic")
    with errors:
        every = _choose(values, "report", REPORT_CHOICES) == EVERY
    with errors:
        shortest = _choose(values, "search", SEARCH_CHOICES) == SHORTEST
    with errors:
        b = require(values, "b")
        where = Where(**read_role_filters(require(values, "where"), ROLES, "where"))
        if where.b is not None and b in {None, values.get("a")}:
            raise InvalidFieldError(
                "where.b", "has no stream: the pairs are of stream A alone", "use where.a"
            )
    with errors:
        per_key = bool(require(values, "per_key"))
    errors.raise_all()
    other = a if b is None else b
    return TopKCondition(
        name,
        version,
        a,
        other,
        k,
        window_us,
        similarity,
        per_key,
        minimum,
        every,
        shortest,
        topic,
        where,
    )


def _choose(values: Mapping[str, Any], field: str, choices: Sequence[str]) -> str:
    found: str = require(values, field)
    if found not in choices:
        raise InvalidFieldError(field, f"unknown: {found!r}", f"use {' or '.join(choices)}")
    return found


def _read_length(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LIST_LIMIT:
        raise InvalidFieldError(
            "k", f"must be 1 to {LIST_LIMIT}; got {value!r}", "use the number of pairs to list"
        )
    return value


def _read_window(window_us: int) -> int:
    if window_us <= 0:
        # A window of 0 would contain only sets of one time.
        raise InvalidFieldError(
            "window",
            f"must be at least 1us; got {format_duration(window_us)[:_SHOWN]}",
            'use the time for which a set takes part, for example "1h"',
        )
    return check_duration(window_us, "window", 1, DURATION_LIMIT_US)


def _find_similarity(name: object) -> Similarity:
    found = SIMILARITIES.get(name) if isinstance(name, str) else None
    if found is None:
        raise InvalidFieldError(
            "similarity", f"unknown: {name!r}", f"use one of {', '.join(SIMILARITIES)}"
        )
    return found


def _read_minimum(similarity: Similarity, values: Mapping[str, Any]) -> Fraction | None:
    """Return the minimum similarity or the maximum distance of a document."""
    given = {name: require(values, name) for name in ("min_similarity", "max_distance")}
    field = "max_distance" if similarity.is_distance else "min_similarity"
    for name, value in given.items():
        if name != field and value is not None:
            which = "a distance" if similarity.is_distance else "not a distance"
            raise InvalidFieldError(name, f"{similarity.name} is {which}", f"use {field}")
    if given[field] is None:
        return None
    value = read_decimal(given[field])
    if value is None or value < 0:
        raise InvalidFieldError(
            field, f"must be a number of 0 or more; got {given[field]!r}", "correct it"
        )
    if -_exponent(value.normalize()) > MINIMUM_PLACES:
        raise InvalidFieldError(
            field,
            f"must have at most {MINIMUM_PLACES} decimal places; got {value:f}",
            "round it",
        )
    minimum = Fraction(value)
    if similarity.minimum_key(minimum) > similarity.key(SIZE_LIMIT, SIZE_LIMIT, SIZE_LIMIT):
        most = similarity.value(SIZE_LIMIT, SIZE_LIMIT, SIZE_LIMIT)
        raise InvalidFieldError(
            field,
            f"must be at most {most:g}, the {similarity.name} similarity of equal sets; "
            f"got {value:f}",
            f"use at most {most:g}",
        )
    return minimum


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def check_streams(condition: TopKCondition, streams: Mapping[str, Stream]) -> None:
    """Refuse streams whose sets the condition cannot join.

    Parameters
    ----------
    condition : TopKCondition
        The condition to check.
    streams : mapping of name to Stream
        The streams of the condition.

    Raises
    ------
    InvalidFieldError
        A stream has no tokens, its events last or have uncertain times, the streams are partitioned
        differently or in another way than `per_key` says, or a filter does not fit the attributes.
    """
    errors = FieldErrors()
    sides = (("a", condition.a), ("b", condition.b)) if condition.crossed else (("a", condition.a),)
    for side, name in sides:
        stream = streams[name]
        errors.refuse(
            side,
            f"stream {name} declares no tokens",
            "declare tokens, the path of a list or text, for the stream",
            when=stream.tokens is None,
        )
        errors.refuse(
            side,
            f"the events of stream {name} last (begin and end); a set has one time",
            "use a stream of instants",
            when=stream.lasts,
        )
        errors.refuse(
            side,
            f"the times of stream {name} are uncertain; the order of sets must be certain",
            "declare max_uncertainty 0 and exact times for the stream",
            when=not stream.lasts and stream.max_uncertainty_us > 0,
        )
    a, b = streams[condition.a].partitioning, streams[condition.b].partitioning
    with errors:
        check_meeting(a, b)
    errors.refuse(
        "per_key",
        f"is true, but {condition.a} is partitioned by {a}",
        "use false, or register the streams with partitioning by key",
        when=condition.per_key and a.by != "key",
    )
    errors.refuse(
        "per_key",
        f"is false, but {condition.a} is partitioned by {a}: sets of different keys do not meet",
        "use true, or register the streams with a grid",
        when=not condition.per_key and a.by == "key",
    )
    with errors:
        bind_where(condition, streams)
    errors.raise_all()


def bind_where(condition: TopKCondition, streams: Mapping[str, Stream]) -> Where:
    """Return the filters for the attributes that the streams declare.

    Raises
    ------
    InvalidFieldError
        A filter does not fit the attributes; names every such field.
    """
    where, a, b = condition.where, streams[condition.a], streams[condition.b]
    filters = {"a": (where.a, a.attributes), "b": (where.b, b.attributes)}
    return Where(**bind_role_filters(filters, "where"))
