"""Mapping of the fields of a record to the fields of an event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from correlation.errors import FieldErrors, InvalidFieldError
from correlation.limits import LENGTH_LIMIT_US
from correlation.resources.durations import format_duration
from correlation.resources.paths import Path
from correlation.resources.times import TimeFormat

Form = Literal["canonical", "time", "range", "template", "histogram", "lasting"]
# Required time fields of each form; the other time fields are not allowed.
_FIELDS: Mapping[Form, tuple[str, ...]] = {
    "canonical": (),
    "time": ("time",),
    "range": ("earliest", "latest"),
    "template": ("detected", "template"),
    "histogram": ("histogram",),
    "lasting": ("begin", "end"),
}
_TIME_FIELDS = tuple(name for names in _FIELDS.values() for name in names)


@dataclass(frozen=True, slots=True)
class EventMapping:
    """Paths of an event's fields in a record, and the format of its times.

    Parameters
    ----------
    form : {"canonical", "time", "range", "template", "histogram", "lasting"}
        Canonical events; one time with `before` and `after`; two times; a detection time and the
        name of a template; a list of buckets; or begin and end of an event that lasts.
    id_path, key_path : path or None
        Fields of the id and the join key. None: the canonical field if the form is "canonical",
        otherwise the record's position (id) or Kafka key (key).
    time_path : path or None
        Field of the time (form "time").
    earliest_path, latest_path : path or None
        Fields of the two times (form "range").
    detected_path, template_path : path or None
        Fields of the detection time and the template's name (form "template").
    histogram_path : path or None
        Field of the buckets (form "histogram").
    begin_path, end_path : path or None
        Fields of begin and end (form "lasting").
    before_us, after_us : int
        The event happened between time - before and time + after, in µs (form "time").
    format : str
        Format of the times: iso8601, epoch_s, epoch_ms, epoch_us or epoch_ns.
    timezone : str
        IANA name of the time zone of ISO times without an offset.

    Raises
    ------
    InvalidFieldError
        A field of the form is missing, or a value is out of range.
    """

    form: Form = "canonical"
    id_path: Path | None = None
    key_path: Path | None = None
    time_path: Path | None = None
    earliest_path: Path | None = None
    latest_path: Path | None = None
    detected_path: Path | None = None
    template_path: Path | None = None
    histogram_path: Path | None = None
    begin_path: Path | None = None
    end_path: Path | None = None
    before_us: int = 0
    after_us: int = 0
    format: TimeFormat = "iso8601"
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        errors = FieldErrors()
        errors.refuse(
            "mapping.format",
            f"{self.format!r} is unknown",
            f"use one of {', '.join(get_args(TimeFormat))}",
            when=self.format not in get_args(TimeFormat),
        )
        with errors:
            self._check_timezone()
        for name, duration_us in (("before", self.before_us), ("after", self.after_us)):
            errors.refuse(
                f"mapping.{name}",
                f"is {format_duration(duration_us)}",
                f"use 0s to {format_duration(LENGTH_LIMIT_US)}",
                when=not 0 <= duration_us <= LENGTH_LIMIT_US,
            )
        for name in ("id", "key", *_TIME_FIELDS):
            path = getattr(self, f"{name}_path")
            errors.refuse(
                f"mapping.{name}",
                "is missing" if path is None else "cannot be combined with the other fields",
                "use either time, or earliest and latest, or detected and template, or histogram, "
                "or begin and end",
                when=name in _TIME_FIELDS and (name in _FIELDS[self.form]) != (path is not None),
            )
            errors.refuse(
                f"mapping.{name}",
                "has an empty part",
                'write a path such as "a.b", or a list of names',
                when=path is not None and not (path and all(path)),
            )
        errors.raise_all()

    def _check_timezone(self) -> None:
        try:
            ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise InvalidFieldError(
                "mapping.timezone",
                f"{self.timezone[:80]!r} is unknown",
                "use an IANA name such as UTC or America/New_York",
            ) from None

    @property
    def time_paths(self) -> tuple[Path, ...]:
        """Paths of a record's time fields; empty for canonical events."""
        found = (getattr(self, f"{name}_path") for name in _TIME_FIELDS)
        return tuple(path for path in found if path is not None)

    @property
    def spread_us(self) -> int | None:
        """Length of every event's interval if the mapping fixes it, in µs; otherwise None."""
        return self.before_us + self.after_us if self.form == "time" else None
