"""Typed access to the fields of a result's record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from correlation.errors import InvalidRecordError, UnknownRecordVersionError

Attributes = dict[str, str | int | float | bool | None]
# Max number of characters of a value in an error message.
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a JSON object.

    Every method but `has` raises InvalidRecordError if the field is missing or has another type.

    Parameters
    ----------
    content : mapping
        The object.
    place : str
        Name of the object in error messages, with a dot at its end; empty for a whole record.
    """

    content: Mapping[str, Any]
    place: str = ""

    def has(self, name: str) -> bool:
        """Return whether a field exists."""
        return name in self.content

    def get(self, name: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return the value of a field."""
        if name not in self.content:
            raise InvalidRecordError(f"{self.place}{name}", "is missing")
        return self.content[name]

    def text(self, name: str) -> str:
        """Return a string."""
        value = self.get(name)
        if not isinstance(value, str):
            raise self.refuse(name, "must be a string")
        return value

    def text_or_null(self, name: str) -> str | None:
        """Return a string, or None for null."""
        return None if self.get(name) is None else self.text(name)

    def integer(self, name: str) -> int:
        """Return an integer."""
        value = self.get(name)
        if not _is_integer(value):
            raise self.refuse(name, "must be an integer")
        return int(value)

    def integer_or_null(self, name: str) -> int | None:
        """Return an integer, or None for null."""
        return None if self.get(name) is None else self.integer(name)

    def number(self, name: str) -> float:
        """Return a number."""
        value = self.get(name)
        if not _is_integer(value) and not isinstance(value, float):
            raise self.refuse(name, "must be a number")
        return float(value)

    def flag(self, name: str) -> bool:
        """Return a boolean."""
        value = self.get(name)
        if not isinstance(value, bool):
            raise self.refuse(name, "must be true or false")
        return value

    def inner(self, name: str) -> Fields:
        """Return the fields of an object."""
        value = self.get(name)
        if not isinstance(value, dict):
            raise self.refuse(name, "must be an object")
        return Fields(value, f"{self.place}{name}.")

    def inner_list(self, name: str) -> list[Fields]:
        """Return the fields of each object of a list."""
        values = self.values(name)
        places = (f"{self.place}{name}[{number}]" for number in range(len(values)))
        found = []
        for value, place in zip(values, places, strict=True):
            if not isinstance(value, dict):
                raise InvalidRecordError(place, f"must be an object; got {_show(value)}")
            found.append(Fields(value, f"{place}."))
        return found

    def values(self, name: str) -> list[Any]:
        """Return a list."""
        value = self.get(name)
        if not isinstance(value, list):
            raise self.refuse(name, "must be a list")
        return value

    def texts(self, name: str) -> list[str]:
        """Return a list of strings."""
        values = self.values(name)
        if not all(isinstance(value, str) for value in values):
            raise self.refuse(name, "must be a list of strings")
        return values

    def integers(self, name: str, length: int | None = None) -> list[int]:
        """Return a list of integers, of a length if one is given."""
        values = self.values(name)
        if not all(map(_is_integer, values)) or length not in (None, len(values)):
            count = "" if length is None else f"{length} "
            raise self.refuse(name, f"must be a list of {count}integers")
        return values

    def attributes(self, name: str) -> Attributes:
        """Return the values of attributes by name: strings, numbers, booleans and None."""
        values = self.inner(name)
        for attribute, value in values.content.items():
            if not isinstance(value, str | int | float | None):
                raise values.refuse(attribute, "must be a string, a number, a boolean or null")
        return dict(values.content)

    def refuse(self, name: str, problem: str) -> InvalidRecordError:
        """Build the error of a field whose value is not valid."""
        return InvalidRecordError(
            f"{self.place}{name}", f"{problem}; got {_show(self.content.get(name))}"
        )


def check_version(fields: Fields, version: int) -> None:
    """Check that a record has the format version that this software reads.

    Raises
    ------
    UnknownRecordVersionError
        When the record has another format version, or none.
    """
    found = fields.content.get("v")
    if found != version or isinstance(found, bool):
        raise UnknownRecordVersionError(
            f"v: the record has version {_show(found)}; this software reads version {version}: "
            "install the release that wrote the record"
        )


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _show(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
