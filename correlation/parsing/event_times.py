"""Readers of the time of a record: an interval, or a distribution on an interval.

A time finer than a microsecond is rounded outwards (`earliest` down, `latest` up), so that the
interval still contains every possible time. Begin and end of an event that lasts are exact, and so
are the instants of a stream whose max_uncertainty is 0: both ends are rounded down, so that equal
times of several events stay equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from correlation.errors import InvalidFieldError, RejectedEventError
from correlation.parsing.event_shapes import histogram_reader, template_reader, time_at
from correlation.parsing.written_numbers import find_as_written
from correlation.reasons import Reason
from correlation.resources.durations import parse_duration_us, whole_us
from correlation.resources.times import READERS, Span, TimeReader, iso8601_reader

if TYPE_CHECKING:
    from correlation.resources.mapping import EventMapping
    from correlation.resources.paths import Path
    from correlation.resources.streams import Stream

# Earliest and latest time in µs, and the shape (`Histogram.shape_bytes`).
Timestamp = tuple[int, int, bytes | None]
TimestampReader = Callable[[Mapping[str, object], bytes | None], Timestamp]


def timestamp_reader(stream: Stream) -> TimestampReader:
    """Return the reader of a record's time.

    Parameters
    ----------
    stream : Stream
        Stream with the mapping, the templates and the `histograms` flag.

    Returns
    -------
    callable
        `(value, text) -> (earliest, latest, shape)`; raises RejectedEventError.
    """
    mapping = stream.mapping
    if mapping.detected_path is not None and mapping.template_path is not None:
        read_time = time_reader(mapping)
        return template_reader(
            stream.templates, mapping.detected_path, mapping.template_path, read_time
        )
    if mapping.begin_path is not None and mapping.end_path is not None:
        return _lasting_reader(mapping.begin_path, mapping.end_path, time_reader(mapping))
    if mapping.histogram_path is not None:
        return histogram_reader(mapping.histogram_path, time_reader(mapping))
    return _interval_reader(stream) or _canonical_reader(stream)


def time_reader(mapping: EventMapping) -> TimeReader:
    """Return the reader of a time in the format of a mapping."""
    return READERS.get(mapping.format) or iso8601_reader(mapping.timezone)


def _end_reader(stream: Stream, reader: TimeReader) -> TimeReader:
    """Return the reader of the ends of intervals: of exact instants, both are rounded down."""
    if stream.max_uncertainty_us:
        return reader

    def read(value: object) -> Span:
        low = reader(value)[0]
        return low, low

    return read


def _lasting_reader(begin_path: Path, end_path: Path, reader: TimeReader) -> TimestampReader:
    """Return the reader of an event that lasts; equal times of several events stay equal."""

    def read(value: Mapping[str, object], text: bytes | None) -> Timestamp:
        begin = time_at(value, begin_path, text, reader)[0]
        return begin, time_at(value, end_path, text, reader)[0], None

    return read


def _interval_reader(stream: Stream) -> TimestampReader | None:
    """Return the reader of an interval, or None if the mapping does not name its fields."""
    mapping = stream.mapping
    reader = _end_reader(stream, time_reader(mapping))
    if mapping.time_path is not None:
        time_path, before, after = mapping.time_path, mapping.before_us, mapping.after_us

        def read_time(value: Mapping[str, object], text: bytes | None) -> Timestamp:
            low, high = time_at(value, time_path, text, reader)
            return low - before, high + after, None

        return read_time
    if mapping.earliest_path is not None and mapping.latest_path is not None:
        earliest_path, latest_path = mapping.earliest_path, mapping.latest_path

        def read_range(value: Mapping[str, object], text: bytes | None) -> Timestamp:
            low = time_at(value, earliest_path, text, reader)[0]
            return low, time_at(value, latest_path, text, reader)[1], None

        return read_range
    return None


def _canonical_reader(stream: Stream) -> TimestampReader:
    """Return the reader of canonical events: histogram, template, interval, in this order."""
    read_interval = _canonical_interval_reader(_end_reader(stream, read_canonical_time))
    if not stream.has_shapes:
        return read_interval
    templates, histograms = bool(stream.templates), stream.histograms
    read_template = template_reader(
        stream.templates, ("detected",), ("template",), read_canonical_time
    )
    read_histogram = histogram_reader(("histogram",), read_canonical_time)

    def read(value: Mapping[str, object], text: bytes | None) -> Timestamp:
        if histograms and value.get("histogram") is not None:
            return read_histogram(value, text)
        if templates and value.get("template") is not None:
            return read_template(value, text)
        return read_interval(value, text)

    return read


_read_iso_utc = iso8601_reader("UTC")


def read_canonical_time(value: object) -> Span:
    """Read integer microseconds, or an RFC 3339 string."""
    return _read_iso_utc(value) if isinstance(value, str) else READERS["epoch_us"](value)


def _canonical_interval_reader(reader: TimeReader) -> TimestampReader:
    def read(value: Mapping[str, object], text: bytes | None) -> Timestamp:
        earliest, latest = value.get("earliest"), value.get("latest")
        if type(earliest) is int and type(latest) is int:
            return earliest, latest, None  # the most frequent case
        if "earliest" in value or "latest" in value:
            low = time_at(value, ("earliest",), text, reader)[0]
            return low, time_at(value, ("latest",), text, reader)[1], None
        if "time" not in value:
            raise _no_time(value)
        low, high = time_at(value, ("time",), text, reader)
        before = _read_duration(value, "before", text)
        return low - before, high + _read_duration(value, "after", text), None

    return read


def _no_time(value: Mapping[str, object]) -> RejectedEventError:
    """Return the error of an event without a time."""
    if value.get("histogram") is not None:
        return RejectedEventError(
            Reason.UNDECLARED_HISTOGRAM, "the stream does not declare histograms"
        )
    if value.get("template") is not None:
        return RejectedEventError(Reason.UNKNOWN_TEMPLATE, "the stream declares no templates")
    return RejectedEventError(
        Reason.MISSING_FIELD,
        "an event needs earliest and latest, or time, or detected and template, or histogram",
    )


def _read_duration(value: Mapping[str, object], name: str, text: bytes | None) -> int:
    if name not in value:
        return 0
    duration = find_as_written(value, (name,), text)
    try:
        if isinstance(duration, str):
            duration = parse_duration_us(duration, name)
        elif isinstance(duration, Decimal | float) and math.isfinite(duration):
            duration = whole_us(Decimal(duration), name)
    except InvalidFieldError as error:
        raise RejectedEventError(Reason.WRONG_TYPE, str(error)) from None
    if isinstance(duration, bool) or not isinstance(duration, int) or duration < 0:
        raise RejectedEventError(
            Reason.WRONG_TYPE, f"{name} must be a duration: microseconds, or a string such as '2s'"
        )
    return duration
