"""Declaration of a stream: its topic, the mapping of its records, and the limits of its events."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from correlation.errors import FieldErrors, InvalidFieldError
from correlation.limits import DURATION_LIMIT_US, LENGTH_LIMIT_US, TEMPLATE_LIMIT
from correlation.resources.attributes import Attribute, check_attributes
from correlation.resources.checks import check_duration, check_name, check_topic
from correlation.resources.durations import format_duration
from correlation.resources.filters import Filter
from correlation.resources.mapping import EventMapping
from correlation.resources.partitioning import Partitioning
from correlation.resources.template import Template
from correlation.resources.tokens import Tokens


@dataclass(frozen=True, slots=True)
class Stream:
    """Declaration of a stream of events (spec: timing, section 1).

    Parameters
    ----------
    name : str
        Name of the stream.
    topic : str
        Kafka topic of its records.
    max_uncertainty_us : int
        π: maximum length of an event's interval of possible times, in µs; 0 if the events last.
    max_delay_us : int
        D: a record reaches Kafka no later than `latest` + D, in µs.
    min_uncertainty_us : int
        ρ: minimum length of an event's interval, in µs.
    mapping : EventMapping
        Mapping of records to events.
    partitioning : Partitioning
        Partitioning of the events over the slots.
    clock : {"live", "replay"}
        Whether the events' times follow the wall clock.
    max_skew_us : int
        Maximum lead of the clocks that stamp events over Kafka's clock, in µs.
    templates : tuple of Template
        Templates that its events may name.
    histograms : bool
        Whether its events may contain their own histograms.
    max_rate : int or None
        Maximum long-term rate in events per second; None: unknown.
    attributes : tuple of Attribute
        Attributes of the events.
    where : Filter or None
        Filter over the attributes: records that do not match are not events. None: all match.
    min_length_us, max_length_us : int or None
        Minimum and maximum of end - begin of events that last, in µs; None: 0, and no maximum.
    tokens : Tokens or None
        How each event gets its set of tokens; None: events have no sets.

    Raises
    ------
    InvalidFieldError
        A value is out of range.
    """

    name: str
    topic: str
    max_uncertainty_us: int
    max_delay_us: int
    min_uncertainty_us: int = 0
    mapping: EventMapping = field(default_factory=EventMapping)
    partitioning: Partitioning = field(default_factory=Partitioning)
    clock: Literal["live", "replay"] = "live"
    max_skew_us: int = 1_000_000
    templates: tuple[Template, ...] = ()
    histograms: bool = False
    max_rate: int | None = None
    attributes: tuple[Attribute, ...] = ()
    where: Filter | None = None
    min_length_us: int | None = None
    max_length_us: int | None = None
    tokens: Tokens | None = None

    def __post_init__(self) -> None:
        errors = FieldErrors()
        with errors:
            check_name(self.name)
        with errors:
            check_topic(self.topic)
        with errors:
            self._check_durations()
        errors.refuse(
            "clock",
            f"unknown: {self.clock!r}",
            "use live or replay",
            when=self.clock not in {"live", "replay"},
        )
        with errors:
            self._check_templates()
        with errors:
            check_attributes(it.name for it in self.attributes)
        with errors:
            if self.where is not None:
                self.where.bind(self.attributes)
        errors.raise_all()

    @property
    def lasts(self) -> bool:
        """Whether its events last: `earliest` is their begin and `latest` their end."""
        return self.mapping.form == "lasting"

    @property
    def has_shapes(self) -> bool:
        """Whether event times may be distributed non-uniformly on their intervals."""
        return self.histograms or bool(self.templates)

    @property
    def watermark_delay_us(self) -> int:
        """Max time after an event until its watermark passes it: of a live stream, with the skew.

        The heartbeats of a silent live stream advance its watermark, minus the skew.
        """
        return self.max_delay_us + (self.max_skew_us if self.clock == "live" else 0)

    @property
    def joined_by(self) -> list[object]:
        """The partitioning, and whether the events last, in the form stored in the state."""
        lasting = ["lasting"] if self.lasts else []
        return [self.partitioning.by, self.partitioning.groups, *lasting]

    def _check_templates(self) -> None:
        form = self.mapping.form
        errors = FieldErrors()
        errors.refuse(
            "templates",
            "must not be empty: the mapping reads templates",
            "add the templates of the events",
            when=form == "template" and not self.templates,
        )
        errors.refuse(
            "templates",
            "are not read by the mapping",
            "remove them, or set mapping.detected and mapping.template",
            when=form not in {"template", "canonical"} and bool(self.templates),
        )
        errors.refuse(
            "histograms",
            f"is {str(self.histograms).lower()}, but the mapping "
            f"{'does not read' if self.histograms else 'reads'} histograms",
            "leave it out" if self.histograms else "set it to true",
            when=(form == "histogram") != self.histograms and form != "canonical",
        )
        names = Counter(template.name for template in self.templates)
        errors.refuse(
            "templates",
            f"got {len(self.templates)} templates",
            f"use at most {TEMPLATE_LIMIT}, or several streams",
            when=len(self.templates) > TEMPLATE_LIMIT,
        )
        for name, count in names.items():
            errors.refuse("templates", f"{name!r} is repeated", "write it once", when=count > 1)
        errors.raise_all()

    def _check_durations(self) -> None:
        errors = FieldErrors()
        for name, limit_us in (
            ("max_uncertainty", LENGTH_LIMIT_US),
            ("min_uncertainty", LENGTH_LIMIT_US),
            ("max_delay", DURATION_LIMIT_US),
            ("max_skew", DURATION_LIMIT_US),
        ):
            with errors:
                check_duration(getattr(self, f"{name}_us"), name, 0, limit_us)
        with errors:
            self._check_lengths()
        errors.raise_all()
        low, high = self.min_uncertainty_us, self.max_uncertainty_us
        if low > high:
            raise InvalidFieldError(
                "min_uncertainty",
                f"{format_duration(low)} exceeds max_uncertainty ({format_duration(high)})",
                "use at most max_uncertainty",
            )
        outside = f"long, which is not from {format_duration(low)} to {format_duration(high)}"
        spread = self.mapping.spread_us
        if spread is not None:
            errors.refuse(
                "max_uncertainty",
                f"the mapping makes every event {format_duration(spread)} {outside}",
                "choose min_uncertainty and max_uncertainty that include before + after",
                when=not low <= spread <= high,
            )
        for template in self.templates:
            length = template.histogram.length_us
            errors.refuse(
                "max_uncertainty",
                f"template {template.name} is {format_duration(length)} {outside}",
                "choose min_uncertainty and max_uncertainty that include its length",
                when=not low <= length <= high,
            )
        errors.raise_all()

    def _check_lengths(self) -> None:
        """Check the limits of lengths, which only events that last have."""
        errors = FieldErrors()
        for name, instead in (("min_uncertainty", "min_length"), ("max_uncertainty", "max_length")):
            errors.refuse(
                name,
                "the events last: begin and end are exact times",
                f"remove it, or declare {instead}",
                when=self.lasts and getattr(self, f"{name}_us") != 0,
            )
            length_us = getattr(self, f"{instead}_us")
            if length_us is None:
                continue
            errors.refuse(
                instead,
                "the mapping has no begin and end",
                f"use {name}, or set mapping.begin and mapping.end",
                when=not self.lasts,
            )
            with errors:
                check_duration(length_us, instead, 0, DURATION_LIMIT_US)
        errors.raise_all()
        low, high = self.min_length_us, self.max_length_us
        if low is not None and high is not None and low > high:
            raise InvalidFieldError(
                "min_length",
                f"{format_duration(low)} exceeds max_length ({format_duration(high)})",
                "use at most max_length",
            )
