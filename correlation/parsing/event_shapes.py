"""Readers of events whose time is distributed by a template or by the event's own histogram.

Definitions. An event of template φ detected at t has the timestamp H = φ + t - max(φ): its latest
time is t, and its shape is the shape of φ (PTJ Definition 4). Shape and length of each template are
computed once, so reading such an event costs no more than reading an interval. The bounds of a
histogram are times in the record; its masses are exact.

A detection time finer than a microsecond is rounded up. The end of a histogram is rounded up, and
all its other bounds are rounded down, so that adjacent buckets stay adjacent.

Reference. Mok, Woo and Lee 2006, Definitions 1 and 4; spec section 1.

Cost. O(1) per event of a template, O(n) per histogram of n buckets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from correlation.errors import InvalidFieldError, RejectedEventError
from correlation.limits import BUCKET_LIMIT, TIME_LIMIT_US
from correlation.parsing.written_numbers import find_as_written
from correlation.reasons import Reason
from correlation.resources.histogram import Bucket, Histogram, bucket_parts, read_mass
from correlation.resources.paths import Path, find, type_name
from correlation.resources.template import Template
from correlation.resources.times import Span, TimeReader, out_of_range

HistogramEvent = tuple[int, int, bytes | None]
HistogramReader = Callable[[Mapping[str, object], bytes | None], HistogramEvent]
_SHOWN = 80


def time_at(
    value: Mapping[str, object], path: Path, text: bytes | None, read_time: TimeReader
) -> Span:
    """Return the time in a field of a record.

    Parameters
    ----------
    value, path, text
        As of `find_as_written`.
    read_time : callable
        Reader of the time.

    Raises
    ------
    RejectedEventError
        The field is missing, or is not a time; the detail names the field.
    """
    found = find_as_written(value, path, text)
    try:
        return read_time(found)
    except RejectedEventError as error:
        raise _in_field(path, error) from None


def _in_field(path: Path, error: RejectedEventError) -> RejectedEventError:
    """Return an error that names the field."""
    return RejectedEventError(error.reason, f"field {'.'.join(path)!r}: {error.detail}")


def template_reader(
    templates: Iterable[Template], detected_path: Path, template_path: Path, read_time: TimeReader
) -> HistogramReader:
    """Return the reader of events that name a template.

    Parameters
    ----------
    templates : iterable of Template
        Templates that the stream declares.
    detected_path, template_path : path
        Fields of the detection time and the template's name.
    read_time : callable
        Reader of the time.

    Returns
    -------
    callable
        `(value, text) -> (earliest, latest, shape)`; raises RejectedEventError.
    """
    known: dict[object, tuple[int, bytes | None]] = {
        template.name: (template.histogram.length_us, template.histogram.shape_bytes)
        for template in templates
    }

    def read(value: Mapping[str, object], text: bytes | None) -> HistogramEvent:
        latest = time_at(value, detected_path, text, read_time)[1]
        name = find(value, template_path)
        try:
            length, shape = known[name]
        except (KeyError, TypeError):
            raise _no_template(name, known) from None
        return latest - length, latest, shape

    return read


def _no_template(name: object, known: Mapping[object, object]) -> RejectedEventError:
    if not isinstance(name, str):
        return RejectedEventError(
            Reason.WRONG_TYPE, f"the template's name must be a string; got {type_name(name)}"
        )
    declared = ", ".join(map(str, known))
    if len(declared) > _SHOWN:
        declared = f"{len(known)} templates"
    return RejectedEventError(
        Reason.UNKNOWN_TEMPLATE, f"the stream has no template {name[:_SHOWN]!r}; it has: {declared}"
    )


def histogram_reader(path: Path, read_time: TimeReader) -> HistogramReader:
    """Return the reader of events that contain a histogram.

    Parameters
    ----------
    path : path
        Field of the list of buckets, each `[lo, hi, p]` or `{"lo", "hi", "p"}`.
    read_time : callable
        Reader of the bounds.

    Returns
    -------
    callable
        `(value, text) -> (earliest, latest, shape)`; raises RejectedEventError.
    """

    def read(value: Mapping[str, object], text: bytes | None) -> HistogramEvent:
        found = find_as_written(value, path, text)
        try:
            histogram = Histogram(_read_buckets(found, path, read_time))
        except InvalidFieldError as error:
            field = error.field.replace("buckets", "histogram", 1)
            detail = f"{field}: {error.problem}; {error.remedy}"
            raise RejectedEventError(Reason.BAD_HISTOGRAM, detail) from None
        return histogram.earliest_us, histogram.latest_us, histogram.shape_bytes

    return read


def _read_buckets(found: object, path: Path, read_time: TimeReader) -> tuple[Bucket, ...]:
    def read_bound(bound: object, place: int, name: str, *, is_rounded_up: bool) -> int:
        try:
            return _in_range(read_time(bound)[is_rounded_up])
        except RejectedEventError as error:
            raise _in_field((*path[:-1], f"{path[-1]}[{place}]", name), error) from None

    if not isinstance(found, list):
        raise InvalidFieldError(
            "buckets", f"must be a list; got {type_name(found)}", "write [[lo, hi, p], …]"
        )
    if len(found) > BUCKET_LIMIT:
        raise InvalidFieldError("buckets", f"got {len(found)} buckets", f"use 1 to {BUCKET_LIMIT}")
    parts = [bucket_parts(bucket, f"buckets[{place}]") for place, bucket in enumerate(found)]
    masses = [read_mass(part[2], f"buckets[{place}].p") for place, part in enumerate(parts)]
    # Last bucket of the support. Its end, and all bounds after it, are rounded up.
    last = max((place for place, mass in enumerate(masses) if mass), default=-1)
    return tuple(
        Bucket(
            read_bound(lo, place, "lo", is_rounded_up=place > last),
            read_bound(hi, place, "hi", is_rounded_up=place >= last),
            mass,
        )
        for place, ((lo, hi, _), mass) in enumerate(zip(parts, masses, strict=True))
    )


def _in_range(time_us: int) -> int:
    if abs(time_us) > TIME_LIMIT_US:
        raise out_of_range()
    return time_us
