"""Attributes of the events of a stream: their declaration, and the stored form of their values.

An attribute is a field of the record, or of its position in Kafka. The values of an attribute are
buffered in a dictionary column as canonical JSON, so that equal values have equal bytes. An event
without a value has the code -1 in the column.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from correlation.errors import FieldErrors, InvalidFieldError
from correlation.resources.checks import check_name
from correlation.resources.paths import Path

AttributeType = Literal["string", "integer", "number", "boolean"]
AttributeValue = str | int | float | bool
ATTRIBUTE_TYPES: tuple[AttributeType, ...] = get_args(AttributeType)
# Maximum number of attributes of a stream: each has a column in every segment.
ATTRIBUTES_LIMIT = 100
# Paths of the record's position in Kafka, and the types of their values. $timestamp is in µs.
RECORD_PATHS: Mapping[str, AttributeType] = {
    "$topic": "string",
    "$partition": "integer",
    "$offset": "integer",
    "$timestamp": "integer",
}
_PREFIX = "attribute."


@dataclass(frozen=True, slots=True)
class Attribute:
    """Declaration of an attribute.

    Parameters
    ----------
    name : str
        Name of the attribute.
    path : path
        Field of the record, or `("$topic",)`, `("$partition",)`, `("$offset",)` or
        `("$timestamp",)`.
    type : {"string", "integer", "number", "boolean"}
        Type of its values: integers fit int64, numbers are float64.

    Raises
    ------
    InvalidFieldError
        A value is not valid.
    """

    name: str
    path: Path
    type: AttributeType = "string"

    def __post_init__(self) -> None:
        errors = FieldErrors()
        field = f"attributes.{self.name}"
        with errors:
            check_name(self.name, f"attributes.{self.name[:80]}")
        errors.refuse(
            f"{field}.path",
            "has an empty part",
            'write a path such as "a.b", or a list of names',
            when=not (self.path and all(self.path)),
        )
        reserved = len(self.path) == 1 and self.path[0].startswith("$")
        errors.refuse(
            f"{field}.path",
            f"{'.'.join(self.path)[:80]!r} is unknown",
            f"use one of {', '.join(RECORD_PATHS)}, or the path of a field",
            when=reserved and self.record_field is None,
        )
        errors.refuse(
            f"{field}.type",
            f"{self.type!r} is unknown",
            f"use one of {', '.join(ATTRIBUTE_TYPES)}",
            when=self.type not in ATTRIBUTE_TYPES,
        )
        natural = RECORD_PATHS.get(self.record_field or "")
        errors.refuse(
            f"{field}.type",
            f"must be {natural} for {self.record_field}; got {self.type}",
            f"write {natural}, or leave it out",
            when=natural is not None and self.type in ATTRIBUTE_TYPES and self.type != natural,
        )
        errors.raise_all()

    @property
    def record_field(self) -> str | None:
        """The field of the record's position in Kafka that it reads; None: a field of the JSON."""
        found = self.path[0] if len(self.path) == 1 else None
        return found if found in RECORD_PATHS else None

    @property
    def column_name(self) -> str:
        """Name of its column in `Events.columns`."""
        return column_name(self.name)


def default_type(path: Path) -> AttributeType:
    """Return the type of an attribute whose declaration has only a path."""
    return RECORD_PATHS.get(path[0], "string") if len(path) == 1 else "string"


def column_name(name: str) -> str:
    """Return the name of an attribute's column in `Events.columns`."""
    return _PREFIX + name


def encode_value(value: AttributeValue) -> bytes:
    """Return the canonical JSON of a value; equal values of one type have equal bytes.

    Parameters
    ----------
    value : str, int, float or bool
        A string, integer, finite float64 or boolean.

    Raises
    ------
    UnicodeEncodeError
        The string is not valid Unicode.

    Examples
    --------
    >>> encode_value("lab"), encode_value(3), encode_value(3.0), encode_value(True)
    (b'"lab"', b'3', b'3', b'true')
    """
    if isinstance(value, float):
        # "-0.0" equals "0.0".
        return repr(value + 0.0).removesuffix(".0").encode()
    return json.dumps(value, ensure_ascii=False).encode()


def decode_value(encoded: bytes) -> AttributeValue:
    """Return the value of canonical JSON; a number without a fraction is an integer."""
    value: AttributeValue = json.loads(encoded)
    return value


def check_attributes(attributes: Iterable[Attribute]) -> None:
    """Raise InvalidFieldError if there are too many attributes, or two with the same name."""
    counts = Counter(attribute.name for attribute in attributes)
    if counts.total() > ATTRIBUTES_LIMIT:
        raise InvalidFieldError(
            "attributes",
            f"got {counts.total()} attributes",
            f"use at most {ATTRIBUTES_LIMIT}",
        )
    for name, count in counts.items():
        if count > 1:
            raise InvalidFieldError(f"attributes.{name}", "is repeated", "write it once")
