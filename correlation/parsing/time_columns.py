"""Readers of the times of many records as columns; see `event_times` for single records.

Each reader has the name of the reader of single records whose values it computes. A record is
*regular* if its times are integers, or strings that are read by the same reader as single ones. All
other records, including those in another form than the first record, are left to the reader of
single records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.errors import InvalidFieldError, RejectedEventError
from correlation.limits import TIME_LIMIT_US
from correlation.parsing.event_times import read_canonical_time, time_reader
from correlation.parsing.histogram_columns import regular_histogram_reader
from correlation.parsing.records import Objects, column_at, types_of
from correlation.resources.durations import parse_duration_us
from correlation.resources.times import SHIFTS, TimeReader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from correlation.resources.mapping import EventMapping
    from correlation.resources.paths import Path
    from correlation.resources.streams import Stream
    from correlation.resources.template import Template

_INT64_MAX = 2**63 - 1
_NO_DURATION = -1
_NO_SPAN = (0, 0, 0)


class Timestamps(NamedTuple):
    """Times of n records: intervals in µs, and shapes (None: all are intervals).

    Values of records that are not regular are undefined.
    """

    earliest: Int64s
    latest: Int64s
    is_regular: NDArray[np.bool_]
    shape: list[bytes | None] | None = None


# JSON of the records; None if a record is not JSON.
Texts = Sequence[bytes | None]
TimestampsReader = Callable[[Objects, Texts], Timestamps]


class _Times(NamedTuple):
    """A field of n records, rounded down and up, in µs."""

    low: Int64s
    high: Int64s
    is_regular: NDArray[np.bool_]


_TimesReader = Callable[[Sequence[object]], _Times]


def timestamps_reader(stream: Stream) -> TimestampsReader | None:
    """Return the reader of the times of records; None: the mapping has only single records.

    Parameters
    ----------
    stream : Stream
        Stream with the mapping, the templates and the `histograms` flag.
    """
    mapping = stream.mapping
    if mapping.form == "canonical":
        return _canonical_reader(stream)
    shift = SHIFTS.get(mapping.format)
    if mapping.histogram_path is not None:
        if shift is None or shift < 0:  # bounds are strings, or finer than a microsecond
            return None
        return _histogram_reader(mapping.histogram_path, shift)
    read_times = _times_reader(time_reader(mapping), shift)
    if mapping.detected_path is not None and mapping.template_path is not None:
        return _template_reader(
            stream.templates, mapping.detected_path, mapping.template_path, read_times
        )
    return _interval_reader(stream, read_times)


def _interval_reader(stream: Stream, read_times: _TimesReader) -> TimestampsReader | None:
    mapping, is_exact = stream.mapping, not stream.max_uncertainty_us
    if mapping.time_path is not None:
        return _time_reader(mapping, mapping.time_path, read_times, is_exact=is_exact)
    if mapping.begin_path is not None and mapping.end_path is not None:
        return _range_reader(mapping.begin_path, mapping.end_path, read_times, is_exact=True)
    if mapping.earliest_path is not None and mapping.latest_path is not None:
        return _range_reader(
            mapping.earliest_path, mapping.latest_path, read_times, is_exact=is_exact
        )
    return None


def _range_reader(
    low_path: Path, high_path: Path, read_times: _TimesReader, *, is_exact: bool
) -> TimestampsReader:
    """Return the reader of two times; exact ones are both rounded down."""

    def read(objects: Objects, _texts: Texts) -> Timestamps:
        first = read_times(column_at(objects, low_path))
        last = read_times(column_at(objects, high_path))
        latest = last.low if is_exact else last.high
        return Timestamps(first.low, latest, first.is_regular & last.is_regular)

    return read


def _time_reader(
    mapping: EventMapping, path: Path, read_times: _TimesReader, *, is_exact: bool
) -> TimestampsReader:
    before, after = mapping.before_us, mapping.after_us

    def read(objects: Objects, _texts: Texts) -> Timestamps:
        low, high, is_regular = read_times(column_at(objects, path))
        return Timestamps(low - before, (low if is_exact else high) + after, is_regular)

    return read


def _template_reader(
    templates: Iterable[Template],
    detected_path: Path,
    template_path: Path,
    read_times: _TimesReader,
) -> TimestampsReader:
    known = {
        template.name: (template.histogram.length_us, template.histogram.shape_bytes)
        for template in templates
    }

    def read(objects: Objects, _texts: Texts) -> Timestamps:
        _, latest, is_regular = read_times(column_at(objects, detected_path))
        names = column_at(objects, template_path)
        found = [known.get(name) if type(name) is str else None for name in names]
        is_regular = is_regular & [it is not None for it in found]
        lengths = np.array([it[0] if it else 0 for it in found], np.int64)
        shapes = [it[1] if it else None for it in found]
        return Timestamps(latest - lengths, latest, is_regular, shapes)

    return read


def _canonical_reader(stream: Stream) -> TimestampsReader:
    """Return the reader of canonical events; the first record determines the form of all."""
    read_times = _times_reader(read_canonical_time, SHIFTS["epoch_us"])
    is_exact = not stream.max_uncertainty_us
    read_range = _range_reader(("earliest",), ("latest",), read_times, is_exact=is_exact)
    read_template = _template_reader(stream.templates, ("detected",), ("template",), read_times)
    # Forms that take precedence over an interval, with the fields that choose them.
    forms: list[tuple[str, TimestampsReader]] = []
    if stream.histograms:
        forms.append(("histogram", _histogram_reader(("histogram",), SHIFTS["epoch_us"])))
    if stream.templates:
        forms.append(("template", read_template))

    def read_time(objects: Objects, _texts: Texts) -> Timestamps:
        low, high, is_regular = read_times(column_at(objects, ("time",)))
        before, has_before = _read_durations(objects, "before")
        after, has_after = _read_durations(objects, "after")
        has_ends = ["earliest" in it or "latest" in it for it in objects]
        is_regular = is_regular & has_before & has_after & ~np.array(has_ends, np.bool_)
        return Timestamps(low - before, (low if is_exact else high) + after, is_regular)

    def read(objects: Objects, texts: Texts) -> Timestamps:
        first = next(filter(None, objects), {})
        place = next((at for at, (it, _) in enumerate(forms) if first.get(it) is not None), None)
        if place is None:
            read_form = read_range if "earliest" in first else read_time
        else:
            read_form = forms[place][1]
        found = read_form(objects, texts)
        is_regular = found.is_regular
        for name, _ in forms[:place]:
            is_regular = is_regular & [it is None for it in column_at(objects, (name,))]
        return found._replace(is_regular=is_regular)

    return read


def _histogram_reader(path: Path, shift: int) -> TimestampsReader:
    """Return the reader of histograms whose bounds are in units of 10**shift µs, shift ≥ 0."""
    read_histogram = regular_histogram_reader(10**shift)

    def read(objects: Objects, texts: Texts) -> Timestamps:
        found = [*map(read_histogram, column_at(objects, path), texts)]
        earliest, latest = (
            np.array([it[end] if it else 0 for it in found], np.int64) for end in (0, 1)
        )
        is_regular = np.array([it is not None for it in found], np.bool_)
        return Timestamps(earliest, latest, is_regular, [it and it[2] for it in found])

    return read


def _read_durations(objects: Objects, name: str) -> tuple[Int64s, NDArray[np.bool_]]:
    """Return the durations before or after a time, in µs, and which are regular."""
    found = [value.get(name, 0) for value in objects]
    durations = np.array([_duration_us(it, name) for it in found], np.int64)
    return durations, durations >= 0


def _duration_us(found: object, name: str) -> int:
    """Return a duration in µs; -1 if it is not regular."""
    try:
        duration = parse_duration_us(found, name) if type(found) is str else found
    except InvalidFieldError:
        return _NO_DURATION
    if type(duration) is int and 0 <= duration <= TIME_LIMIT_US:
        return duration
    return _NO_DURATION


def _times_reader(read_time: TimeReader, shift: int | None) -> _TimesReader:
    """Return the reader of a column of times.

    Parameters
    ----------
    read_time : callable
        Reader of a single time.
    shift : int or None
        Integers are in units of 10**shift µs; None: integers are not times.
    """
    multiplier, divisor = 10 ** max(shift or 0, 0), 10 ** max(-(shift or 0), 0)
    limit = min(TIME_LIMIT_US * divisor // multiplier, _INT64_MAX)

    def read(found: Sequence[object]) -> _Times:
        numbers = None if shift is None else _as_integers(found)
        if numbers is None:
            spans = np.array([_span(read_time, it) for it in found], np.int64).reshape(-1, 3)
            return _Times(spans[:, 0], spans[:, 1], spans[:, 2] == 1)
        is_regular = (numbers >= -limit) & (numbers <= limit)
        # Products that overflow are not regular.
        scaled = numbers * multiplier
        low = scaled // divisor
        return _Times(low, low + (low * divisor != scaled), is_regular)

    return read


def _as_integers(found: Sequence[Any]) -> Int64s | None:
    """Return a column of integers; None if a value is another one, or beyond 64 bits."""
    if types_of(found) != {int}:
        return None
    try:
        return np.fromiter(found, np.int64, len(found))
    except OverflowError:
        return None


def _span(read_time: TimeReader, found: object) -> tuple[int, int, int]:
    """Return a time, rounded down and up, and 1 if it is regular."""
    if type(found) is not int and type(found) is not str:
        return _NO_SPAN
    try:
        low, high = read_time(found)
    except RejectedEventError:
        return _NO_SPAN
    return (low, high, 1) if -TIME_LIMIT_US <= low <= high <= TIME_LIMIT_US else _NO_SPAN
