"""The fields of a kind's document, and the streams that a document names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from correlation.errors import TextPlace

Values = Mapping[str, Any]
FieldType = Literal[
    "duration",
    "probability",
    "decimal",
    "count",
    "stream",
    "choice",
    "flag",
    "topic",
    "filters",
    "names",
    "text_or_object",
]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a kind's document; the REST models are built from these fields.

    Parameters
    ----------
    name : str
        Name in the user's document; the stored name of a duration ends with `_us`.
    type : str
        duration (µs), probability (an exact decimal greater than 0 and at most 1; the first of a
        kind is its threshold, at several of which `coincide replay --thresholds` counts), decimal
        (exact), count (an integer), stream (a name), choice, flag, topic, filters (of roles;
        correlation.resources.role_filters), names (an object whose values are names of resources),
        or text_or_object (a string, or a JSON object with the same meaning).
    description : str
        Description in the API's documentation.
    required : bool
        Whether a document must contain the field.
    default : object
        Value when the document omits the field.
    choices : tuple of str
        Accepted values of a choice, or the roles that may have a filter.
    read : callable or None
        `(value) -> stored value` of a text_or_object; raises InvalidFieldError whose field is the
        name of this field, or a path inside the object. The stored value contains only types of
        JSON, without fractions, which JSON parsers round.
    minimum, maximum : int or None
        Min and max of a decimal or a count, both included. None: the min of a count is 1, and the
        absolute value of a decimal is at most correlation.limits.DECIMAL_LIMIT.
    """

    name: str
    type: FieldType
    description: str
    required: bool = True
    default: object = None
    choices: tuple[str, ...] = ()
    read: Callable[[Any], Any] | None = None
    minimum: int | None = None
    maximum: int | None = None

    @property
    def stored_name(self) -> str:
        """Name of the field in the stored document."""
        return f"{self.name}_us" if self.type == "duration" else self.name


class NamedStream(NamedTuple):
    """Name of a stream in a document, and the field that contains it.

    Attributes
    ----------
    field : str
        The field.
    stream : str
        Name of the stream.
    owner : str
        Part of the field that has the name, for error messages; empty: the field itself.
    place : TextPlace or None
        Place in the text of the field.
    """

    field: str
    stream: str
    owner: str = ""
    place: TextPlace | None = None
