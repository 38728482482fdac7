"""Timing conditions: P(lower <= T_B - T_A <= upper) >= threshold (spec: timing, section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from correlation.errors import FieldErrors, InvalidFieldError
from correlation.limits import BLOCK_SIZE_LIMIT, DURATION_LIMIT_US, PAIRS_LIMIT
from correlation.resources.checks import check_duration, check_name, check_topic
from correlation.resources.durations import format_duration
from correlation.resources.partitioning import check_meeting
from correlation.resources.records import require
from correlation.resources.role_filters import bind_role_filters, read_role_filters
from correlation.resources.thresholds import read_threshold
from correlation.timing.intervals.algorithms import ALGORITHMS
from correlation.timing.intervals.choosing import AUTO
from correlation.timing.intervals.window import TimingWindow
from correlation.two_streams import NO_FILTERS, ROLES, Where

if TYPE_CHECKING:
    from collections.abc import Mapping

    from correlation.resources.streams import Stream

ALGORITHM_CHOICES = (AUTO, *ALGORITHMS)
DEFAULT_ALGORITHM = "lazy_lookup"
# How long events wait for a block to fill.
DEFAULT_INTERVAL_US, MAX_INTERVAL_US = 1_000_000, 3_600_000_000
PAIRS, BEST, UNMATCHED = EMIT_CHOICES = ("pairs", "best", "unmatched")
# Output formats: one record for each pair, or many pairs in one record.
FACTORED = "factored"
OUTPUT_CHOICES = (PAIRS, FACTORED)
_Ends = tuple[int | None, int | None, int | None, int | None]


@dataclass(frozen=True, slots=True)
class TimingCondition:
    """A timing condition between streams A and B, or of a stream with itself (A = B).

    Parameters
    ----------
    name, version, kind
        Identify the condition and its kind.
    a, b : str
        Names of the streams.
    window : TimingWindow
        Ends, horizon and threshold.
    threshold : Decimal
        Confidence threshold ct as the user wrote it.
    report_probability : bool
        Whether every alarm carries its probability.
    algorithm : str
        One of ALGORITHM_CHOICES.
    output_topic : str or None
        Topic of the alarms.
    emit : str
        One of EMIT_CHOICES: every satisfied pair, the most probable B of each A, or each A without
        a B.
    output : str
        One of OUTPUT_CHOICES: a record for each pair, or factored records.
    block_size : int or None
        Number of events evaluated as one block; None: every micro-batch is one block.
    block_interval_us : int
        Maximum time that events wait for a block to fill, in µs.
    max_pairs : int or None
        Maximum number of pairs of a block that a slot reports; None: no limit.
    where : Where
        Filters of the events of A and of B.
    """

    name: str
    version: int
    kind: str
    a: str
    b: str
    window: TimingWindow
    threshold: Decimal
    report_probability: bool = True
    algorithm: str = DEFAULT_ALGORITHM
    output_topic: str | None = None
    emit: str = PAIRS
    output: str = PAIRS
    block_size: int | None = None
    block_interval_us: int = DEFAULT_INTERVAL_US
    max_pairs: int | None = None
    where: Where = NO_FILTERS

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of the input streams, without duplicates."""
        return (self.a,) if self.a == self.b else (self.a, self.b)

    def bind_where(self, streams: Mapping[str, Stream]) -> Where:
        """Return the filters for the attributes that the streams declare.

        Raises
        ------
        InvalidFieldError
            A filter does not fit the attributes; names every such field.
        """
        a, b = streams[self.a].attributes, streams[self.b].attributes
        bound = bind_role_filters({"a": (self.where.a, a), "b": (self.where.b, b)}, "where")
        return Where(**bound)


def build_condition(
    kind: str, name: str, version: int, values: Mapping[str, Any]
) -> TimingCondition:
    """Build a condition from the values of its document.

    Parameters
    ----------
    kind : str
        mutual_deadline, within, deadline or delay.
    name, version
        Identify the condition.
    values : mapping
        The normalised document. A missing field is an error; the other fields are still checked.

    Raises
    ------
    InvalidFieldError
        A field is missing or not valid; the error names every such field and its remedy.
    """
    errors = FieldErrors()
    with errors:
        check_name(name)
    for stream in ("a", "b"):
        with errors:
            check_name(require(values, stream), stream)
    with errors:
        ends = _read_ends(kind, values)
    with errors:
        threshold = read_threshold(require(values, "threshold"))
    for field, choices in (
        ("algorithm", ALGORITHM_CHOICES),
        ("emit", EMIT_CHOICES),
        ("output", OUTPUT_CHOICES),
    ):
        found = values.get(field, choices[0])
        remedy = f"use one of: {', '.join(choices)}"
        errors.refuse(field, f"{found!r} is unknown", remedy, when=found not in choices)
    if values.get("output") == FACTORED:
        with errors:
            _check_factored(values)
    output_topic = values.get("output_topic")
    with errors:
        if output_topic is not None:
            check_topic(output_topic, "output_topic")
    with errors:
        block = _read_block(values)
    with errors:
        max_pairs = _read_max_pairs(values)
    with errors:
        where = Where(**read_role_filters(values.get("where"), ROLES, "where"))
    errors.raise_all()
    return TimingCondition(
        name=name,
        version=version,
        kind=kind,
        a=values["a"],
        b=values["b"],
        window=TimingWindow(*ends, Fraction(threshold)),
        threshold=threshold,
        report_probability=bool(values.get("report_probability", True)),
        algorithm=values.get("algorithm", DEFAULT_ALGORITHM),
        output_topic=output_topic,
        emit=values.get("emit", PAIRS),
        output=values.get("output", PAIRS),
        **block,
        max_pairs=max_pairs,
        where=where,
    )


def _read_block(values: Mapping[str, Any]) -> dict[str, Any]:
    """Read the block size and the block interval."""
    size = values.get("block_size")
    interval = values.get("block_interval_us", DEFAULT_INTERVAL_US)
    if size is None:
        if interval != DEFAULT_INTERVAL_US:
            raise InvalidFieldError(
                "block_interval",
                "requires block_size",
                "set block_size, or remove block_interval",
            )
        return {}
    errors = FieldErrors()
    errors.refuse(
        "block_size",
        f"is {size}",
        f"use 1 to {BLOCK_SIZE_LIMIT}",
        when=not 1 <= size <= BLOCK_SIZE_LIMIT,
    )
    errors.refuse(
        "block_size",
        "cannot be combined with emit best or unmatched, which wait for the watermark",
        "remove block_size, or use emit pairs",
        when=values.get("emit", PAIRS) != PAIRS,
    )
    with errors:
        check_duration(interval, "block_interval", 0, MAX_INTERVAL_US)
    errors.raise_all()
    return {"block_size": size, "block_interval_us": interval}


def _read_max_pairs(values: Mapping[str, Any]) -> int | None:
    """Read the limit of the pairs of a block."""
    found: int | None = values.get("max_pairs")
    if found is None:
        return None
    errors = FieldErrors()
    errors.refuse(
        "max_pairs",
        f"is {found}",
        f"use 1 to {PAIRS_LIMIT}, or omit it for no limit",
        when=not 1 <= found <= PAIRS_LIMIT,
    )
    for field in ("emit", "output"):
        way = values.get(field, PAIRS)
        errors.refuse(
            "max_pairs",
            f"cannot be combined with {field} {way}",
            f"remove max_pairs, or use {field} pairs",
            when=way != PAIRS,
        )
    errors.raise_all()
    return found


def _check_factored(values: Mapping[str, Any]) -> None:
    """Refuse field values that factored output does not support."""
    instead = "or use output pairs"
    emit, algorithm = values.get("emit", PAIRS), values.get("algorithm", DEFAULT_ALGORITHM)
    errors = FieldErrors()
    errors.refuse(
        "emit",
        f"{emit} cannot be combined with factored output",
        f"use pairs, {instead}",
        when=emit != PAIRS,
    )
    errors.refuse(
        "algorithm",
        f"{algorithm} cannot write factored output",
        f"use {DEFAULT_ALGORITHM}, {instead}",
        when=algorithm != DEFAULT_ALGORITHM,
    )
    errors.refuse(
        "output",
        "factored output does not support a stream with itself: the order of A and B is decided "
        "pair by pair",
        "use output pairs",
        when="a" in values and values["a"] == values.get("b"),
    )
    errors.raise_all()


def check_streams(condition: TimingCondition, streams: Mapping[str, Stream]) -> None:
    """Refuse streams on which the condition cannot be evaluated.

    Parameters
    ----------
    condition : TimingCondition
        The condition to check.
    streams : mapping of name to Stream
        The streams of the condition.

    Raises
    ------
    InvalidFieldError
        The events of a stream last; or the streams are partitioned differently; or `emit` is best
        or unmatched and a grid of several groups spreads the B of an A over several cells; or
        `output` is factored and the events may carry histograms, which factored records cannot
        represent; or a filter does not fit the attributes of its stream.
    """
    a, b = streams[condition.a].partitioning, streams[condition.b].partitioning
    with_histograms = [name for name in condition.streams if streams[name].has_shapes]
    errors = FieldErrors()
    for side, name in (("a", condition.a), ("b", condition.b)):
        errors.refuse(
            side,
            f"the events of stream {name} last (begin and end); timing conditions compare instants",
            "use a stream of instants, or an event query",
            when=streams[name].lasts,
        )
    with errors:
        check_meeting(a, b)
    errors.refuse(
        "emit",
        f"{condition.emit} requires that every B of an A is in one slot, but {condition.a} is "
        f"partitioned by {a}",
        "use emit pairs, or register the streams with a grid of 1 group",
        when=condition.emit != PAIRS and a.groups > 1,
    )
    errors.refuse(
        "output",
        f"factored output does not support histograms, which events of stream "
        f"{', '.join(with_histograms)} may have",
        "use output pairs",
        when=condition.output == FACTORED and bool(with_histograms),
    )
    with errors:
        condition.bind_where(streams)
    errors.raise_all()


def _read_ends(kind: str, values: Mapping[str, Any]) -> _Ends:
    """Return lower, upper, floor and ceiling of the window, in µs; None is infinite."""

    def read(field: str, min_us: int = 0) -> int:
        duration_us: int = require(values, f"{field}_us")
        return check_duration(duration_us, field, min_us, DURATION_LIMIT_US)

    if kind == "mutual_deadline":
        window = read("window")
        return -window, window, None, None
    errors = FieldErrors()
    if kind == "within":
        with errors:
            lower = read("lower", -DURATION_LIMIT_US)
        with errors:
            upper = read("upper", -DURATION_LIMIT_US)
        errors.raise_all()
        if lower > upper:
            raise InvalidFieldError(
                "upper",
                f"{format_duration(upper)} is below lower ({format_duration(lower)})",
                "swap lower and upper",
            )
        return lower, upper, None, None
    with errors:
        horizon = read("horizon")
    with errors:
        end = read(kind, -DURATION_LIMIT_US)
    errors.raise_all()
    if (end < -horizon) if kind == "deadline" else (end > horizon):
        raise InvalidFieldError(
            "horizon",
            f"{format_duration(horizon)} ends before the {kind} ({format_duration(end)})",
            f"use a horizon beyond the {kind}",
        )
    return (None, end, -horizon, None) if kind == "deadline" else (end, None, None, horizon)
