"""Buckets of a histogram in a document: lists or objects, with bounds in any unit.

`[lo, hi, p]` and `{"lo", "hi", "p"}` have bounds in whole µs or as strings ("20ms"). An object may
instead have `lo_us`, `lo_ms` or `lo_s`, and likewise for `hi`. Masses are numbers or strings.

The forms are read by hand: a union of pydantic models would report a wrong bucket once for each
form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from correlation.errors import FieldErrors, InvalidFieldError
from correlation.limits import BUCKET_LIMIT
from correlation.resources.durations import parse_duration_us
from correlation.resources.histogram import Histogram, check_count
from service.documents.fields import DURATION_PATTERN, exact_us, spellings

_FIELDS = {*spellings("lo"), *spellings("hi"), "p"}
_BOUND = 'write whole microseconds, or a string such as "20ms"'
_BOUND_SCHEMA = {
    "anyOf": [
        {"type": "integer"},
        {"type": "string", "pattern": DURATION_PATTERN},
    ]
}
_MASS_SCHEMA = {
    "anyOf": [
        {"type": "number", "minimum": 0, "maximum": 1},
        {"type": "string", "pattern": r"^(0|1|0?\.[0-9]{1,10}|1\.0{1,10})$"},
    ]
}
SCHEMA: dict[str, Any] = {
    "type": "array",
    "minItems": 1,
    "maxItems": BUCKET_LIMIT,
    "description": "Each bucket begins at the end of the previous one; the sum of p is exactly 1.",
    "items": {
        "anyOf": [
            {
                "type": "array",
                "description": "lo, hi and p.",
                "minItems": 3,
                "maxItems": 3,
                "items": {"type": ["integer", "number", "string"]},
            },
            {
                "type": "object",
                "properties": {
                    **dict.fromkeys(("lo", "hi"), _BOUND_SCHEMA),
                    **{f"{end}_us": {"type": "integer"} for end in ("lo", "hi")},
                    **{
                        f"{end}_{unit}": {"type": "number"}
                        for end in ("lo", "hi")
                        for unit in ("ms", "s")
                    },
                    "p": _MASS_SCHEMA,
                },
                "required": ["p"],
                "additionalProperties": False,
            },
        ]
    },
}


def read_histogram(buckets: object) -> Histogram:
    """Read a histogram from the `buckets` of a document.

    Raises
    ------
    InvalidFieldError
        When buckets are not valid; names every such field and its remedy.
    """
    if not isinstance(buckets, list):
        raise InvalidFieldError("buckets", "must be a list", "write [[lo, hi, p], …]")
    check_count(len(buckets))
    errors = FieldErrors()
    for place, bucket in enumerate(buckets):
        errors.extend(_unknown_fields(bucket, f"buckets[{place}]"))
    with errors:
        histogram = Histogram.from_buckets(buckets, _read_end)
    errors.raise_all()
    return histogram


def _unknown_fields(bucket: object, field: str) -> Iterator[InvalidFieldError]:
    for name in sorted(set(bucket) - _FIELDS) if isinstance(bucket, Mapping) else ():
        problem = "is not a field of a bucket"
        yield InvalidFieldError(f"{field}.{name}", problem, "write lo, hi and p")


def _read_end(bucket: Mapping[str, Any], end: str, field: str) -> int:
    given = [name for name in spellings(end) if name in bucket]
    if not given:
        raise InvalidFieldError(f"{field}.{end}", "is missing", _BOUND)
    if len(given) > 1:
        problem = f"cannot be combined with {given[0]}"
        raise InvalidFieldError(f"{field}.{given[1]}", problem, "remove one of them")
    return _bound_us(bucket[given[0]], f"{field}.{given[0]}", given[0].partition("_")[2])


def _bound_us(value: object, field: str, unit: str = "") -> int:
    if isinstance(value, str) and not unit:
        return parse_duration_us(value, field)
    try:
        return exact_us(value, unit or "us", field)
    except InvalidFieldError as error:
        raise InvalidFieldError(field, error.problem, _BOUND) from None
