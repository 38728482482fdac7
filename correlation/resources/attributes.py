"""Attributes of the events of a stream: their declaration, and the stored form of their values.

An attribute is a field of the record, or of its position in Kafka. The values of an attribute are
buffered in a dictionary column as canonical JSON, so that equal values have equal bytes. An event
without a value has the code -1 in the column.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, get_args

from correlation.errors import FieldErrors, InvalidFieldError
from correlation.resources.checks import check_name
from correlation.resources.paths import (
    Path,
    is_path_document,
    path_from_document,
    path_to_document,
    type_name,
)

AttributeType = Literal["string", "integer", "number", "boolean"]
AttributeValue = str | int | float | bool
ATTRIBUTE_TYPES: tuple[AttributeType, ...] = get_args(AttributeType)
# Maximum number of attributes of a stream: each has a column in every segment.
ATTRIBUTES_LIMIT = 100
# Maximum number of characters of a string value.
ATTRIBUTE_CHARACTERS = 1000
# Paths of the record's position in Kafka, and the types of their values. $timestamp is in µs.
RECORD_PATHS: Mapping[str, AttributeType] = {
    "$topic": "string",
    "$partition": "integer",
    "$offset": "integer",
    "$timestamp": "integer",
}
_PREFIX = "attribute."
# Maximum of the absolute values; +2**63 does not fit int64.
_LIMITS: Mapping[str, float] = {"integer": 2**63, "number": sys.float_info.max}
_SHOWN = 40
# Maximum number of unknown fields of an attribute that are listed.
_LISTED = 5


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


def is_attribute_column(name: str) -> bool:
    """Return whether a column of `Events.columns` holds an attribute."""
    return name.startswith(_PREFIX)


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


def describe_attributes(values: Mapping[str, object]) -> str:
    """Return the values of attributes as text, without missing ones.

    Examples
    --------
    >>> describe_attributes({"area": "lab", "level": 3, "wet": None})
    'area="lab" level=3'
    """
    return " ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}"
        for name, value in values.items()
        if value is not None
    )


def check_attributes(names: Iterable[str]) -> None:
    """Raise InvalidFieldError if there are too many attributes, or two with the same name."""
    counts = Counter(names)
    if counts.total() > ATTRIBUTES_LIMIT:
        raise InvalidFieldError(
            "attributes",
            f"got {counts.total()} attributes",
            f"use at most {ATTRIBUTES_LIMIT}",
        )
    for name, count in counts.items():
        if count > 1:
            raise InvalidFieldError(f"attributes.{name}", "is repeated", "write it once")


def fit_value(value: object, kind: AttributeType) -> AttributeValue:
    """Return a value of the JSON as a value of an attribute's type.

    Parameters
    ----------
    value : object
        A value of parsed JSON; integers may be Decimals, if they are exact.
    kind : {"string", "integer", "number", "boolean"}
        Type of the attribute.

    Raises
    ------
    ValueError
        The value does not fit the type; the message describes the value.
    """
    if kind == "string" and isinstance(value, str):
        if len(value) > ATTRIBUTE_CHARACTERS:
            raise ValueError(f"a string of {len(value)} characters")
        return value
    if kind == "boolean" and isinstance(value, bool):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError(type_name(value))  # noqa: TRY004 - documented: the caller rejects a record
    return _fit_number(value, kind)


def _fit_number(value: float | Decimal, kind: AttributeType) -> AttributeValue:
    limit = _LIMITS.get(kind)
    if limit is None:
        raise ValueError(type_name(value))
    # The comparisons come first, because integers and exponents may be huge.
    undefined = isinstance(value, Decimal) and not value.is_finite()
    if not undefined and -limit <= value <= limit:
        if kind == "number":
            return float(value)
        if value == int(value) and value != limit:
            return int(value)
    raise ValueError(str(value)[:_SHOWN])


def attributes_to_document(attributes: Iterable[Attribute]) -> dict[str, Any]:
    """Write the declaration of attributes as a part of a stream's normalised document."""
    return {it.name: {"path": path_to_document(it.path), "type": it.type} for it in attributes}


def attributes_from_document(document: object) -> tuple[Attribute, ...]:
    """Read the declaration of attributes: names, each with a path or an object.

    Parameters
    ----------
    document : object
        `{name: path}` or `{name: {"path": path, "type": type}}`; a path is "a.b" or a list.

    Raises
    ------
    InvalidFieldError
        The document is not valid; has one problem per wrong field.
    """
    if not isinstance(document, Mapping):
        raise InvalidFieldError(
            "attributes",
            f"must be an object; got {type_name(document)}",
            'write {"rule": "alert.rule"} or {"severity": {"path": "level", "type": "integer"}}',
        )
    found = []
    errors = FieldErrors()
    for name, declared in document.items():
        with errors:
            found.append(_read_attribute(name, declared))
    with errors:
        # Even if some are not valid, so that all problems are reported.
        check_attributes([*document])
    errors.raise_all()
    return tuple(found)


def _read_attribute(name: str, declared: object) -> Attribute:
    field = f"attributes.{name}"
    fields = declared if isinstance(declared, Mapping) else {"path": declared}
    errors = FieldErrors()
    for unknown in [it for it in fields if it not in ("path", "type")][:_LISTED]:
        errors.refuse(f"{field}.{unknown}", "is unknown", "use path and type", when=True)
    path: Any = fields.get("path")
    kind: Any = fields.get("type")
    valid = is_path_document(path)
    errors.refuse(
        f"{field}.path" if isinstance(declared, Mapping) else field,
        "is missing" if "path" not in fields else "is not a valid path",
        'write a name, a dotted path ("a.b"), or a list of names',
        when=not valid,
    )
    known = isinstance(kind, str) or "type" not in fields
    errors.refuse(
        f"{field}.type",
        f"must be a string; got {type_name(kind)}",
        f"use one of {', '.join(ATTRIBUTE_TYPES)}",
        when=not known,
    )
    read = (path_from_document(path) if valid else None) or ("unnamed",)
    with errors:
        attribute = Attribute(name, read, kind if known and kind else default_type(read))
    errors.raise_all()
    return attribute
